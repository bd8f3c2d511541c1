// What the reader and the writer of safetensors share.
#pragma once

#include <cstdint>
#include <string_view>

#include "ferrite/core/dtype.hpp"

namespace ferrite::io_detail {

constexpr std::uint64_t max_header = 100'000'000;  // the limit of the Python package
constexpr std::string_view metadata_key = "__metadata__";

struct FormatDType {
  std::string_view name;
  DType dtype;
};
/// In the order in which the Python package lays out tensors.
constexpr FormatDType format_dtypes[] = {{"I64", DType::i64}, {"F64", DType::f64},   {"F32", DType::f32},
                                         {"U32", DType::u32}, {"I32", DType::i32},   {"BF16", DType::bf16},
                                         {"F16", DType::f16}, {"U16", DType::u16},   {"I8", DType::i8},
                                         {"U8", DType::u8},   {"BOOL", DType::bool_}};

}  // namespace ferrite::io_detail
