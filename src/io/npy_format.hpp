// The inside of an .npy file, shared by read_npy and the members of .npz archives.
#pragma once

#include <string>

#include "io/format.hpp"

namespace ferrite::io_detail {

struct NpyHeader {
  DType dtype;
  bool stored_as_u16;  // the elements are <u2, which become i32
  Shape shape;
  bool fortran_order;
  std::size_t data_offset;

  std::size_t file_size() const {
    return data_offset + static_cast<std::size_t>(shape.numel()) * (stored_as_u16 ? 2 : size_of(dtype));
  }
};

/// `place` begins every message. `bytes` may end anywhere after the header.
NpyHeader parse_npy_header(const Source& source, std::string_view place, Bytes bytes);

/// The tensor of a whole file or member; rejects missing and surplus bytes.
HostTensor parse_npy(const Source& source, std::string_view place, Bytes bytes);

/// Everything before the data, for version 1.0. `writer` names the function in the error for bf16.
std::string npy_preamble(std::string_view writer, const HostTensor& tensor);
std::string npy_preamble_u16(const Shape& shape);

}  // namespace ferrite::io_detail
