// The inside of an .npy file, shared by read_npy and the members of .npz archives.
#pragma once

#include <string>

#include "io/format.hpp"

namespace ferrite::io_detail {

struct NpyHeader {
  DType dtype;
  Shape shape;
  bool fortran_order;
  std::size_t data_offset;

  std::size_t file_size() const {
    return data_offset + static_cast<std::size_t>(shape.numel()) * size_of(dtype);
  }
};

/// `place` begins every message. `bytes` may end anywhere after the header.
NpyHeader parse_npy_header(const Source& source, std::string_view place, Bytes bytes);

/// The tensor of a whole file or member; rejects missing and surplus bytes.
HostTensor parse_npy(const Source& source, std::string_view place, Bytes bytes);

/// Everything before the data, for version 1.0. `writer` names the function in the error for bf16.
std::string npy_preamble(std::string_view writer, const HostTensor& tensor);

}  // namespace ferrite::io_detail
