// The types that tokens have in memory.
#pragma once

#include "ferrite/core/dtype.hpp"

namespace ferrite::quantile_tokenizer {

/// Calls f.template operator()<T>() with the type of tokens of this dtype (tensor_dtype).
template <class F>
void visit_tokens(DType dtype, F&& f) {
  if (dtype == DType::u8)
    f.template operator()<std::uint8_t>();
  else if (dtype == DType::u16)
    f.template operator()<std::uint16_t>();
  else
    f.template operator()<std::int32_t>();
}

}  // namespace ferrite::quantile_tokenizer
