// argreduce: names and shape rule.
#include "ferrite/ops/argreduce.hpp"

#include <fmt/format.h>

namespace ferrite::op {

std::string_view to_string(ArgReduceFn fn) { return fn == ArgReduceFn::argmax ? "argmax" : "argmin"; }

Metas ArgReduce::infer(MetaSpan in) const {
  detail::check_arity(name(), in.size(), 1, 1);
  const int a = normalize_axis(name(), axis, in[0].shape.rank());
  if (in[0].shape[a] == 0)
    throw ShapeError(fmt::format("[{}] axis {} of {}: no elements to choose from", name(), a,
                                 ferrite::to_string(in[0].shape)));
  return {Meta{reduced_shape(in[0].shape, {a}, keepdim), DType::i64}};
}

}  // namespace ferrite::op
