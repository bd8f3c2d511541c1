// where: shape and dtype rule.
#include "ferrite/ops/where.hpp"

#include <fmt/format.h>

namespace ferrite::op {

Metas Where::infer(MetaSpan in) const {
  const std::size_t arity = side == ScalarSide::none ? 3 : 2;
  detail::check_arity(type_name, in.size(), arity, arity);
  if (in[0].dtype != DType::bool_)
    throw DTypeError(fmt::format("[where] condition is {}: needs bool; compare it first (x != 0)",
                                 to_string(in[0].dtype)));
  Shape shape = broadcast(type_name, in[0].shape, in[1].shape);
  DType dtype = in[1].dtype;
  if (arity == 3) {
    shape = broadcast(type_name, shape, in[2].shape);
    dtype = promote(dtype, in[2].dtype);
  } else {
    dtype = promote(dtype, scalar);
  }
  return {Meta{shape, dtype}};
}

}  // namespace ferrite::op
