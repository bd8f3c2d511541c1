// cat: shape rule.
#include "ferrite/ops/cat.hpp"

#include <fmt/format.h>

namespace ferrite::op {

Metas Cat::infer(MetaSpan in) const {
  if (in.empty()) throw ShapeError("[cat] no tensors given: needs at least one");
  Meta result = in[0];
  const int a = normalize_axis(type_name, axis, in[0].shape.rank());
  for (std::size_t i = 1; i < in.size(); ++i) {
    Shape expected = in[i].shape;
    if (expected.rank() == result.shape.rank()) expected[a] = result.shape[a];
    if (!(expected == result.shape))
      throw ShapeError(
          fmt::format("[cat] tensor 0 {} and tensor {} {}: extents must agree on every axis but {}",
                      ferrite::to_string(in[0].shape), i, ferrite::to_string(in[i].shape), a));
    result.shape[a] += in[i].shape[a];
    if (result.dtype != in[i].dtype && (is_storage(result.dtype) || is_storage(in[i].dtype)))
      throw DTypeError(fmt::format(
          "[cat] tensor 0 is {} and tensor {} is {}: a dtype for storage goes with itself only; cast "
          "one of them, e.g. cast(x, DType::i32)",
          ferrite::to_string(result.dtype), i, ferrite::to_string(in[i].dtype)));
    result.dtype = promote(result.dtype, in[i].dtype);
  }
  return {result};
}

}  // namespace ferrite::op
