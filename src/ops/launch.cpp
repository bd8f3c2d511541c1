// Launches of kernels: arrays against parameters, values into memory, and the text of a launch.
#include "ferrite/ops/launch.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "ferrite/kernel/parse.hpp"
#include "ferrite/tensor/launch.hpp"
#include "kernel/builtins/call.hpp"
#include "kernel/ir/dtypes.hpp"
#include "kernel/ir/element_layout.hpp"

#include "ops/cost.hpp"

namespace ferrite {
namespace kernel {

namespace {

[[noreturn]] void no_value(const Kernel& kernel, int p, std::string_view given) {
  const Variable& v = kernel.parameter(p);
  throw ValueError(fmt::format("[{}] argument '{}' is {}: the kernel takes {}", kernel.name(), v.name, given,
                               to_string(v.type, kernel.module().struct_names())));
}

/// A whole number that the parameter cannot hold is an error, as in Python, and not another number.
template <class T>
void check_range(const Kernel& kernel, int p, T number) {
  const Variable& v = kernel.parameter(p);
  const ScalarType s = v.type.scalar;
  const std::uint64_t most = ~std::uint64_t{0} >> (64 - bits_of(s) + (is_unsigned(s) ? 0 : 1));
  const std::int64_t least = is_unsigned(s) ? 0 : -static_cast<std::int64_t>(most) - 1;
  if (std::cmp_less_equal(least, number) && std::cmp_less_equal(number, most)) return;
  throw ValueError(fmt::format("[{}] argument '{}' is {}: {} holds {} to {}", kernel.name(), v.name, number,
                               to_string(v.type), least, most));
}

}  // namespace

std::optional<ArrayArgument> array_argument(Type type, const Array& array) {
  ArrayArgument argument;
  argument.data = array.data();
  const std::vector<std::int64_t> inner = component_axes(type.element());
  const Layout& layout = array.layout();
  std::int64_t size = 1;  // scalars of an element, which must lie one after the other
  for (std::size_t i = inner.size(); i-- > 0; size *= inner[i])
    if (layout.strides[type.dims + static_cast<int>(i)] != size) return std::nullopt;
  for (int axis = 0; axis < type.dims; ++axis) {
    if (layout.strides[axis] % size != 0) return std::nullopt;
    argument.shape[axis] = static_cast<std::int32_t>(layout.shape[axis]);
    argument.strides[axis] = layout.strides[axis] / size;
  }
  return argument;
}

bool share_elements(const Array& a, const Array& b) {
  if (a.buffer() != b.buffer() || a.shape().numel() == 0 || b.shape().numel() == 0) return false;
  const Layout &la = a.layout(), &lb = b.layout();
  if (la.offset == lb.offset && la.shape == lb.shape && la.strides == lb.strides) return true;
  struct Range : ByteRange {
    bool dense;
  };
  const auto range_of = [](const Array& x) -> Range {
    const ByteRange bytes = byte_range(x);
    return {bytes, static_cast<std::int64_t>(x.meta().bytes()) == bytes.end - bytes.begin};
  };
  const Range r = range_of(a), s = range_of(b);
  const auto has_first_of = [](const Range& dense, const Array& other) {
    const std::int64_t first = other.layout().offset * static_cast<std::int64_t>(size_of(other.dtype()));
    return dense.dense && dense.begin <= first && first < dense.end;
  };
  const bool every_nth = la.shape.rank() == 1 && lb.shape.rank() == 1 && la.strides[0] == lb.strides[0] &&
                         la.strides[0] != 0 && (la.offset - lb.offset) % la.strides[0] == 0;
  return (r.meets(s) && ((r.dense && s.dense) || every_nth)) || has_first_of(r, b) || has_first_of(s, a);
}

Value number_argument(const Kernel& kernel, int p, Scalar number) {
  const Type type = kernel.parameter(p).type;
  const bool real = number.kind() == Scalar::Kind::real;
  if (!type.is_scalar()) no_value(kernel, p, "a number");
  if (real && !type.is_float()) no_value(kernel, p, fmt::format("{}", number.to_double()));
  if (type.is_bool() != (number.kind() == Scalar::Kind::boolean))
    no_value(kernel, p, type.is_bool() ? "a number" : "a bool");
  if (is_integer(type.scalar)) check_range(kernel, p, number.to_int());
  Value value{type, {}, {}, {}};
  const auto from = real ? ScalarType::f64 : ScalarType::i64;
  const Number given = real ? from_real(number.to_double()) : from_integer(number.to_int());
  value.numbers.push_back(cast_number(from, type.scalar, Precision::native, given));
  return value;
}

Value unsigned_argument(const Kernel& kernel, int p, std::uint64_t number) {
  const Type type = kernel.parameter(p).type;
  if (number <= INT64_MAX || !is_integer(type.scalar) || !type.is_scalar() || type.is_bool())
    return number_argument(kernel, p,
                           number <= INT64_MAX ? Scalar(number) : Scalar(static_cast<double>(number)));
  check_range(kernel, p, number);
  return {type, {from_integer(static_cast<std::int64_t>(number))}, {}, {}};
}

Value value_argument(const Kernel& kernel, int p, Value value) {
  const auto names = kernel.module().struct_names();
  if (kernel.parameter(p).type.is_array() || value.type != kernel.parameter(p).type)
    no_value(kernel, p, to_string(value.type, names));
  return value;
}

std::vector<std::byte> packed_value(const Module& module, const Value& value) {
  const ElementLayout layout = layout_of(module, value.type);
  std::vector<std::byte> bytes(layout.size);
  std::vector<Number> numbers;
  const auto collect = [&](const Value& v, const auto& self) -> void {
    numbers.insert(numbers.end(), v.numbers.begin(), v.numbers.end());
    for (const Value& f : v.fields) self(f, self);
  };
  collect(value, collect);
  if (numbers.size() != layout.parts.size())
    throw ValueError(fmt::format("[launch] a value of {} numbers: {} has {}", numbers.size(),
                                 to_string(value.type, module.struct_names()), layout.parts.size()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    write_scalar(layout.parts[i].type, bytes.data() + layout.parts[i].offset, numbers[i]);
  return bytes;
}

namespace detail {
void check_apart(const Kernel& kernel, std::span<const Array* const> arrays) {
  for (std::size_t p = 0; p < arrays.size(); ++p)
    for (std::size_t q = 0; arrays[p] != nullptr && kernel.uses()[p].changes() && q < arrays.size(); ++q)
      if (p != q && arrays[q] != nullptr && share_elements(*arrays[p], *arrays[q]))
        throw ValueError(fmt::format(
            "[{}] arguments '{}' and '{}' share memory, and the kernel changes '{}': give it a clone() "
            "of one",
            kernel.name(), kernel.parameter(static_cast<int>(p)).name,
            kernel.parameter(static_cast<int>(q)).name, kernel.parameter(static_cast<int>(p)).name));
}
void check_count(const Kernel& kernel, std::size_t arguments) {
  if (arguments != static_cast<std::size_t>(kernel.parameters()))
    throw ValueError(
        fmt::format("[{}] {} arguments: the kernel takes {}", kernel.name(), arguments, kernel.parameters()));
}
void check_kind(const Kernel& kernel, int p, bool is_tensor) {
  if (kernel.parameter(p).type.is_array() != is_tensor)
    no_value(kernel, p, is_tensor ? "a tensor" : "a value");
}
}  // namespace detail

std::string LaunchCall::to_json() const {
  nlohmann::json j;
  j["source"] = print(kernel.module());
  j["kernel"] = kernel.name();
  j["dim"] = std::vector<std::int64_t>(grid.dim.begin(), grid.dim.end());
  j["block_dim"] = grid.block_dim;
  nlohmann::json all = nlohmann::json::array();
  for (const Value& v : values) {
    nlohmann::json list = nlohmann::json::array();
    const auto collect = [&](const Value& part, const auto& self) -> void {
      for (const Number n : part.numbers) list.push_back(n.integer);  // the bits
      for (const Value& f : part.fields) self(f, self);
    };
    collect(v, collect);
    all.push_back(std::move(list));
  }
  j["values"] = std::move(all);
  return j.dump();
}

LaunchCall LaunchCall::from_json(std::string_view text) {
  const nlohmann::json j = nlohmann::json::parse(text);
  LaunchCall call;
  call.kernel = Kernel::from_source(j.at("source").get<std::string>(), j.at("kernel").get<std::string>());
  const auto dim = j.at("dim").get<std::vector<std::int64_t>>();
  call.grid = Grid(Shape(dim), j.at("block_dim").get<int>());
  for (int p = 0; p < call.kernel.parameters(); ++p) {
    Value v;
    if (!call.kernel.parameter(p).type.is_array()) v.type = call.kernel.parameter(p).type;
    for (const auto& bits : j.at("values").at(static_cast<std::size_t>(p)))
      v.numbers.push_back(from_integer(bits.get<std::int64_t>()));
    call.values.push_back(std::move(v));
  }
  return call;
}

}  // namespace kernel

namespace op {

std::vector<Launch::Slot> Launch::slots() const {
  std::vector<Slot> list;
  int outputs = 0;
  for (int p = 0; p < call.kernel.parameters(); ++p)
    if (call.kernel.parameter(p).type.is_array())
      list.push_back({p, call.kernel.uses()[static_cast<std::size_t>(p)].changes() ? outputs++ : -1});
  return list;
}

bool Launch::widened(MetaSpan in) const {
  bool narrow = false, wide = false;
  std::size_t i = 0;
  for (const Slot& slot : slots()) {
    const Meta& meta = in[i++];
    const bool is_f64 = call.kernel.parameter(slot.parameter).type.scalar == kernel::ScalarType::f64;
    if (!kernel::is_float(call.kernel.parameter(slot.parameter).type.scalar)) continue;
    wide |= meta.dtype == DType::f64 && !is_f64;
    narrow |= meta.dtype != DType::f64;
  }
  return wide && !narrow;
}

Metas Launch::example(DType d) {
  call.kernel = kernel::Kernel::from_source(
      "import warp as wp\n\n@wp.kernel\ndef double_all(x: wp.array[float]):\n    x[wp.tid()] *= 2.0\n");
  call.grid = 6;
  call.values.resize(1);
  return {{{6}, d}};
}

Metas Launch::infer(MetaSpan in) const {
  const kernel::Kernel& k = call.kernel;
  const std::vector<Slot> arrays = slots();
  if (in.size() != arrays.size())
    throw ValueError(fmt::format("[{}] {} arrays: the kernel takes {}", k.name(), in.size(), arrays.size()));
  const bool in_f64 = widened(in);
  Metas out;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const kernel::Variable& v = k.parameter(arrays[i].parameter);
    const std::string type = kernel::to_string(v.type, k.module().struct_names());
    const auto dtype = kernel::dtype_of_elements(v.type.element());
    if (!dtype)
      throw DTypeError(
          fmt::format("[{}] argument '{}' is {}: no tensor holds such elements", k.name(), v.name, type));
    const bool in_u32 = v.type.scalar == kernel::ScalarType::u32 && in[i].dtype == DType::u32;
    if (in[i].dtype != *dtype && !in_u32 && !(in_f64 && is_floating(*dtype)))
      throw DTypeError(fmt::format("[{}] argument '{}' is a tensor of {}: {} takes {}", k.name(), v.name,
                                   to_string(in[i].dtype), type, to_string(*dtype)));
    const auto inner = kernel::component_axes(v.type.element());
    const int rank = v.type.dims + static_cast<int>(inner.size());
    bool fits = in[i].shape.rank() == rank;
    for (int axis = 0; fits && axis < static_cast<int>(inner.size()); ++axis)
      fits = in[i].shape[v.type.dims + axis] == inner[static_cast<std::size_t>(axis)];
    if (!fits)
      throw ShapeError(fmt::format(
          "[{}] argument '{}' has shape {}: {} takes {} axes{}", k.name(), v.name, to_string(in[i].shape),
          type, rank, inner.empty() ? "" : fmt::format(", the last of [{}]", fmt::join(inner, ", "))));
    for (const std::int64_t n : in[i].shape)
      if (n > std::numeric_limits<std::int32_t>::max())
        throw ShapeError(fmt::format("[{}] argument '{}' has shape {}: extents are below 2^31", k.name(),
                                     v.name, to_string(in[i].shape)));
    if (arrays[i].output >= 0) out.push_back(in[i]);
  }
  return out;
}

Cost Launch::cost(MetaSpan in, MetaSpan out) const {
  std::size_t operations = 0;
  kernel::for_each_expr(call.kernel.function().body, [&](const kernel::Expr& e) {
    operations += e.kind == kernel::ExprKind::apply && e.type.is_float();
  });
  return cost_of(static_cast<double>(operations) * static_cast<double>(call.grid.dim.numel()), in, out);
}

double Launch::reduction_length(MetaSpan) const {
  bool sums = false;
  for (const kernel::ArrayUse& use : call.kernel.uses()) sums |= use.adds;
  double steps = 0;
  kernel::for_each_expr(call.kernel.function().body,
                        [&](const kernel::Expr& e) { steps += e.kind == kernel::ExprKind::apply; });
  return sums ? steps * static_cast<double>(call.grid.dim.numel()) : std::max(steps, 2.0);
}

}  // namespace op
}  // namespace ferrite
