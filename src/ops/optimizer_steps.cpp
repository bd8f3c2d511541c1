// Shape rules of the multi-tensor ops.
#include "ferrite/ops/optimizer_steps.hpp"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <utility>

#include "ops/cost.hpp"

namespace ferrite::op {

namespace {
/// `lists` lists of n tensors each, one clip factor, and a schedule or none; every list repeats the
/// parameters' shapes, and those after the gradients, the state, are as wide as the statistics of the
/// parameters.
std::size_t check_lists(std::string_view op, MetaSpan in, std::size_t lists) {
  if (in.size() <= lists || (in.size() - 1) % lists > 1)
    throw ShapeError(fmt::format(
        "[{}] {} inputs given: needs {} lists of equal length, a clip factor and perhaps a schedule", op,
        in.size(), lists));
  const std::size_t n = (in.size() - 1) / lists;
  for (std::size_t i = 0; i < n; ++i) {
    detail::check_floating(op, "parameter", in[i].dtype);
    detail::check_floating(op, "gradient", in[n + i].dtype);
    detail::check_shape(op, "gradient", in[n + i].shape, in[i].shape);
    const DType wide = wide_dtype(in[i].dtype);
    for (std::size_t list = 2; list < lists; ++list) {
      const Meta& state = in[list * n + i];
      detail::check_shape(op, "state", state.shape, in[i].shape);
      if (state.dtype != wide)
        throw DTypeError(fmt::format("[{}] state is {}: needs {} for a parameter of {}", op,
                                     to_string(state.dtype), to_string(wide), to_string(in[i].dtype)));
    }
  }
  detail::check_floating(op, "clip factor", in[lists * n].dtype);
  detail::check_shape(op, "clip factor", in[lists * n].shape, {});
  if (in.size() > lists * n + 1) {
    const Meta& schedule = in.back();
    detail::check_shape(op, "schedule", schedule.shape, {2});
    detail::check_dtype(op, "schedule", schedule.dtype, DType::f64);
  }
  return n;
}

void check_finite(std::string_view op,
                  std::initializer_list<std::pair<std::string_view, double>> attributes) {
  for (const auto& [attribute, value] : attributes)
    detail::check_attribute(op, attribute, value, std::isfinite(value), "must be finite");
}
}  // namespace

Metas GlobalNorm::infer(MetaSpan in) const {
  if (in.empty()) throw ShapeError("[global_norm] no tensors given: needs at least one");
  bool wide = true;
  for (const Meta& m : in) {
    detail::check_floating(type_name, "tensor", m.dtype);
    wide = wide && m.dtype == DType::f64;
  }
  if (dtype && *dtype != DType::f32 && *dtype != DType::f64)
    throw DTypeError(fmt::format("[global_norm] a norm in {}: needs f32 or f64", to_string(*dtype)));
  return {Meta{{}, dtype.value_or(wide ? DType::f64 : DType::f32)}};
}

double GlobalNorm::reduction_length(MetaSpan in) const {
  double total = 0;
  for (const Meta& m : in) total += static_cast<double>(m.shape.numel());
  return total;
}

Metas Sgd::infer(MetaSpan in) const {
  const std::size_t n = check_lists(type_name, in, 3);
  check_finite(type_name, {{"lr", lr}, {"momentum", momentum}, {"weight_decay", weight_decay}});
  Metas out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(in[i]);
  for (std::size_t i = 0; i < n; ++i) out.push_back(in[2 * n + i]);
  return out;
}

Metas Adam::infer(MetaSpan in) const {
  const std::size_t n = check_lists(name(), in, 4);
  check_finite(name(), {{"lr", lr}, {"eps", eps}, {"weight_decay", weight_decay}});
  for (const auto& [attribute, beta] : {std::pair{"beta1", beta1}, std::pair{"beta2", beta2}})
    detail::check_attribute(name(), attribute, beta, beta >= 0 && beta < 1, "must lie in [0, 1)");
  const bool has_schedule = in.size() > 4 * n + 1;
  if (step < (has_schedule ? 0 : 1))
    throw ValueError(fmt::format("[{}] step {}: counts from 1", name(), step));
  Metas out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(in[i]);
  for (std::size_t i = 0; i < 2 * n; ++i) out.push_back(in[2 * n + i]);
  if (!copies) return out;
  if (!is_floating(*copies) || size_of(*copies) != 2)
    throw DTypeError(fmt::format("[{}] copies of {}: needs bf16 or f16", name(), to_string(*copies)));
  for (std::size_t i = 0; i < n; ++i) {
    detail::check_dtype(name(), "parameter with a copy", in[i].dtype, DType::f32);
    out.push_back({in[i].shape, *copies});
  }
  return out;
}

Cost Adam::cost(MetaSpan in, MetaSpan out) const {
  double flops = 0;
  for (const Meta& m : out) flops += 5 * static_cast<double>(m.shape.numel());
  return cost_of(flops, in, out);
}

}  // namespace ferrite::op
