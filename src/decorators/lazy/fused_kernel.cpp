#include "decorators/lazy/fused_kernel.hpp"

#include <optional>

#include "decorators/lazy/functions.hpp"

namespace ferrite::lazy {

using kernel::Expr;
using kernel::ScalarType;
using kernel::Type;

namespace {

DType dtype_of_operand(const Group& group, const Operand& x) {
  return x.op >= 0 ? group.ops[at(x.op)].out.dtype() : group.arrays[at(x.array)].dtype();
}

/// The dtype that the op's operands are converted to; Cpu and Cuda compute in it.
DType operand_dtype(const Group& group, const Recorded& r) {
  const DType out = r.out.dtype();
  if (const auto* unary = std::get_if<op::Unary>(&r.op)) {
    if (unary->fn == op::UnaryFn::logical_not) return DType::bool_;
    return compute_dtype(is_floating(out) ? out : dtype_of_operand(group, r.operands[0]));
  }
  if (const auto* binary = std::get_if<op::Binary>(&r.op)) {
    if (op::is_logical(binary->fn)) return DType::bool_;
    Metas metas;
    for (std::size_t i = 0; i < (binary->side == op::ScalarSide::none ? 2u : 1u); ++i)
      metas.push_back({{}, dtype_of_operand(group, r.operands[i])});
    return compute_dtype(binary->operand_dtype(metas));
  }
  if (std::holds_alternative<op::UnaryBackward>(r.op)) return compute_dtype(out);
  return r.accumulates ? compute_dtype(out) : out;  // fill, copy and where pass elements through
}

bool has_alpha(op::UnaryFn fn) {
  return fn == op::UnaryFn::softplus || fn == op::UnaryFn::elu || fn == op::UnaryFn::leaky_relu;
}

/// `scalar` rounded to one dtype, as an argument of another; 16-bit floats travel as f32.
ScalarArgument argument(Scalar scalar, DType rounded, DType dtype) {
  const bool narrow = dtype == DType::f16 || dtype == DType::bf16;
  const ScalarType type = narrow ? ScalarType::f32 : scalar_type(dtype);
  return visit_dtype(rounded, [&]<class T>() -> ScalarArgument {
    const T value = scalar.to<T>();
    if (kernel::is_float(type)) return {type, kernel::from_real(convert<double>(value))};
    return {type, kernel::from_integer(convert<std::int64_t>(value))};
  });
}

/// The scalar of an op, if it has one.
std::optional<ScalarArgument> scalar_of(const Group& group, const Recorded& r) {
  const DType operand = operand_dtype(group, r);
  if (const auto* fill = std::get_if<op::Fill>(&r.op)) return argument(fill->value, r.out.dtype(), operand);
  if (const auto* unary = std::get_if<op::Unary>(&r.op); unary && has_alpha(unary->fn))
    return argument(unary->alpha, operand, operand);
  if (const auto* backward = std::get_if<op::UnaryBackward>(&r.op); backward && has_alpha(backward->fn))
    return argument(backward->alpha, operand, operand);
  if (const auto* where = std::get_if<op::Where>(&r.op); where && where->side != op::ScalarSide::none)
    return argument(where->scalar, r.out.dtype(), operand);
  if (const auto* binary = std::get_if<op::Binary>(&r.op); binary && binary->side != op::ScalarSide::none) {
    const Meta meta{{}, dtype_of_operand(group, r.operands[0])};
    const DType rounded = binary->operand_dtype({&meta, 1});
    return argument(binary->operand(rounded), rounded, operand);
  }
  return std::nullopt;
}

/// Bools are read as bytes: memory from outside may hold values other than 0 and 1.
ScalarType stored_type(DType dtype) { return dtype == DType::bool_ ? ScalarType::u8 : scalar_type(dtype); }

class Builder {
 public:
  Builder(const Group& group, const Plan& plan)
      : group_(group), plan_(plan), kernel_(module_.kernels.emplace_back()), top_(kernel_, kernel_.body) {}

  FusedKernel build() {
    kernel_.name = "fused";
    declare();
    if (plan_.axis >= 0)
      reduce();
    else
      map();
    // For the same bits as the ops themselves: packs are aligned (plan_packs), and products are rounded
    // before they are added.
    kernel::EmitOptions options;
    options.aligned_vectors = true;
    options.separate_products = true;
    result_.compiled = kernel::Kernel(std::move(module_), {}, options);
    return std::move(result_);
  }

 private:
  using Values = std::vector<Expr>;  // by op, or by array of the plan

  bool moves(std::size_t array) const {
    for (int i = 0; i < plan_.rank; ++i)
      if (plan_.strides[array][at(i)] != 0) return true;
    return false;
  }
  bool is_packed(std::size_t array) const {
    return plan_.pack > 1 && plan_.strides[array][at(plan_.rank - 1)] != 0;
  }

  int parameter(const std::string& name, Type type) {
    ++kernel_.parameters;
    return kernel::add_variable(kernel_, name, type);
  }
  Type array_type(DType dtype, bool packed) const {
    const ScalarType s = stored_type(dtype);
    return (packed ? Type::vector(plan_.pack, s) : Type::of(s)).array(plan_.rank);
  }
  void declare() {
    for (std::size_t i = 0; i < plan_.arrays.size(); ++i)
      parameter("x" + std::to_string(i),
                array_type(group_.arrays[at(plan_.arrays[i])].dtype(), is_packed(i)));
    first_stored_ = kernel_.parameters;
    for (std::size_t i = 0; i < plan_.stored.size(); ++i)
      parameter("y" + std::to_string(i),
                array_type(group_.ops[at(plan_.stored[i])].out.dtype(), plan_.pack > 1));
    first_partial_ = kernel_.parameters;
    for (std::size_t i = 0; i < plan_.reductions.size(); ++i)
      parameter("p" + std::to_string(i),
                array_type(partial_dtype(group_.reductions[at(plan_.reductions[i])]), false));
    for (std::size_t i = 0; i < group_.ops.size(); ++i) {
      scalars_.push_back(-1);
      if (!plan_.needed[i]) continue;
      result_.ops += (result_.ops.empty() ? "" : " ") +
                     std::string(std::visit([](const auto& o) { return op_name(o); }, group_.ops[i].op));
      if (const auto scalar = scalar_of(group_, group_.ops[i]))
        scalars_.back() = parameter("s" + std::to_string(i), Type::of(scalar->type));
    }
    for (const int i : plan_.reductions) result_.ops += " " + std::string(group_.reductions[at(i)].op.name());
    if (plan_.axis >= 0) {
      extent_parameter_ = parameter("extent", kernel::int_type);
      step_parameter_ = parameter("step", kernel::int_type);
    }
    if (plan_.rounds > 1) threads_parameter_ = parameter("threads", kernel::int_type);
  }

  /// i, j = wp.tid()
  Values thread_indices() {
    kernel::Stmt s;
    Values indices;
    for (int i = 0; i < plan_.rank; ++i) {
      const int v = kernel::add_variable(kernel_, "i" + std::to_string(i), kernel::int_type);
      indices.push_back(kernel::variable(kernel_, v));
    }
    Expr tid = kernel::apply(kernel::Builtin::tid, {});
    if (plan_.rank > 1) tid.type = Type::tuple(indices.size());
    s.targets = indices;
    s.values.push_back(std::move(tid));
    kernel_.body.push_back(std::move(s));
    return indices;
  }

  Expr place(int parameter_index, const Values& indices) const {
    return kernel::element(kernel::variable(kernel_, parameter_index), indices);
  }
  Values zeros() const { return Values(at(plan_.rank), kernel::literal(ScalarType::i32, std::int64_t{0})); }

  /// Everything is read before anything is written: results may go where operands came from.
  void map() {
    const Values thread = thread_indices();
    std::vector<Values> places{thread};
    if (plan_.rounds > 1) {
      const Expr count = kernel::variable(kernel_, threads_parameter_);
      for (int r = 1; r < plan_.rounds; ++r)
        places.push_back({top_.let(kernel::apply(kernel::Builtin::add, {places.back()[0], count}), "i")});
    }
    std::vector<Values> loaded;
    for (const Values& indices : places) loaded.push_back(load(top_, indices));
    std::vector<std::vector<Values>> results;  // by round, lane, op
    for (const Values& arrays : loaded) results.push_back(compute_lanes(top_, arrays));
    for (std::size_t r = 0; r < places.size(); ++r) store(top_, places[r], results[r]);
  }

  void reduce() {
    const Values thread = thread_indices();
    const Expr extent = kernel::variable(kernel_, extent_parameter_);
    const Expr step = kernel::variable(kernel_, step_parameter_);
    Values sums;
    for (const int i : plan_.reductions) {
      const Reduction& r = group_.reductions[at(i)];
      const ScalarType type = scalar_type(sum_dtype(r));
      const int v = kernel::add_variable(kernel_, "sum" + std::to_string(i), Type::of(type));
      sums.push_back(kernel::variable(kernel_, v));
      top_.assign(sums.back(), reduce_identity(r.op.fn, type));
    }
    kernel::Stmt loop;
    loop.kind = kernel::StmtKind::for_;
    const int k = kernel::add_variable(kernel_, "k", kernel::int_type);
    loop.targets.push_back(kernel::variable(kernel_, k));
    loop.values = {thread[at(plan_.axis)], extent, step};
    Statements inside(kernel_, loop.body);
    Values indices = thread;
    indices[at(plan_.axis)] = kernel::variable(kernel_, k);
    const std::vector<Values> lanes = compute_lanes(inside, load(inside, indices));
    store(inside, indices, lanes);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Reduction& r = group_.reductions[at(plan_.reductions[i])];
      for (const Values& values : lanes) {
        Expr x = kernel::cast(sums[i].type.scalar, values[at(r.of)]);
        inside.assign(sums[i], reduce_step(inside, r.op.fn, sums[i], std::move(x)));
      }
    }
    kernel_.body.push_back(std::move(loop));
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const Expr target = place(first_partial_ + static_cast<int>(i), thread);
      top_.assign(target, kernel::cast(target.type.scalar, sums[i]));
    }
  }

  static DType sum_dtype(const Reduction& r) {
    const bool truth = r.op.fn == op::ReduceFn::any || r.op.fn == op::ReduceFn::all;
    return truth ? DType::bool_ : compute_dtype(partial_dtype(r));
  }

  Values load(Statements& to, const Values& indices) {
    Values values;
    for (std::size_t i = 0; i < plan_.arrays.size(); ++i)
      values.push_back(to.let(place(static_cast<int>(i), moves(i) ? indices : zeros()), "a"));
    return values;
  }

  std::vector<Values> compute_lanes(Statements& to, const Values& arrays) {
    std::vector<Values> lanes;
    for (int lane = 0; lane < plan_.pack; ++lane) lanes.push_back(compute(to, arrays, lane));
    return lanes;
  }
  Values compute(Statements& to, const Values& arrays, int lane) {
    Values values(group_.ops.size());
    std::vector<Expr> elements(group_.arrays.size());
    for (std::size_t i = 0; i < plan_.arrays.size(); ++i) {
      Expr x = arrays[i];
      if (is_packed(i)) x = kernel::component(x, {kernel::literal(ScalarType::i32, std::int64_t{lane})});
      const DType dtype = group_.arrays[at(plan_.arrays[i])].dtype();
      elements[at(plan_.arrays[i])] = to.let(kernel::cast(scalar_type(dtype), std::move(x)));
    }
    for (std::size_t i = 0; i < group_.ops.size(); ++i) {
      if (!plan_.needed[i]) continue;
      const Recorded& r = group_.ops[i];
      Values operands;
      for (const Operand& x : r.operands)
        operands.push_back(x.op >= 0 ? values[at(x.op)] : elements[at(x.array)]);
      Expr scalar;
      if (scalars_[i] >= 0)
        scalar = kernel::cast(scalar_type(operand_dtype(group_, r)), kernel::variable(kernel_, scalars_[i]));
      Expr y = expression(to, r, operands, scalar);
      if (r.accumulates) {
        const ScalarType wide = scalar_type(compute_dtype(r.out.dtype()));
        y = binary_expression(to, op::BinaryFn::add, kernel::cast(wide, operands.back()),
                              kernel::cast(wide, std::move(y)));
      }
      // Rounded to its dtype, as a separate op would round it.
      values[i] = to.let(kernel::cast(scalar_type(r.out.dtype()), std::move(y)));
    }
    return values;
  }

  Expr expression(Statements& to, const Recorded& r, const Values& operands, const Expr& scalar) {
    const ScalarType type = scalar_type(operand_dtype(group_, r));
    const auto operand = [&](std::size_t i) { return to.let(kernel::cast(type, operands[i])); };
    if (std::holds_alternative<op::Fill>(r.op)) return scalar;
    if (std::holds_alternative<op::Copy>(r.op)) return operand(0);
    if (const auto* unary = std::get_if<op::Unary>(&r.op))
      return unary_expression(to, unary->fn, operand(0), scalar);
    if (const auto* backward = std::get_if<op::UnaryBackward>(&r.op))
      return backward_expression(to, backward->fn, operand(0), operand(1), scalar);
    using enum op::ScalarSide;
    if (const auto* where = std::get_if<op::Where>(&r.op)) {
      const Expr a = where->side == left ? scalar : operand(1);
      const Expr b = where->side == right ? scalar : operand(where->side == left ? 1 : 2);
      return kernel::apply(kernel::Builtin::where, {operands[0], a, b});
    }
    const auto& binary = std::get<op::Binary>(r.op);
    const Expr a = binary.side == left ? scalar : operand(0);
    const Expr b = binary.side == right ? scalar : operand(binary.side == left ? 0 : 1);
    return binary_expression(to, binary.fn, a, b, binary.side);
  }

  void store(Statements& to, const Values& indices, const std::vector<Values>& lanes) {
    for (std::size_t i = 0; i < plan_.stored.size(); ++i) {
      Expr target = place(first_stored_ + static_cast<int>(i), indices);
      Values parts;
      for (const Values& values : lanes)
        parts.push_back(kernel::cast(target.type.scalar, values[at(plan_.stored[i])]));
      Expr value = plan_.pack > 1 ? kernel::construct(target.type, std::move(parts)) : parts[0];
      to.assign(std::move(target), std::move(value));
    }
  }

  const Group& group_;
  const Plan& plan_;
  FusedKernel result_;
  kernel::Module module_;
  kernel::Function& kernel_;
  Statements top_;
  std::vector<int> scalars_;  // by op: its parameter, or -1
  int first_stored_ = 0, first_partial_ = 0;
  int extent_parameter_ = -1, step_parameter_ = -1, threads_parameter_ = -1;
};

}  // namespace

DType partial_dtype(const Reduction& reduction) {
  const DType out = reduction.out.dtype();
  return out == DType::f16 || out == DType::bf16 ? DType::f32 : out;
}

FusedKernel build_kernel(const Group& group, const Plan& plan) { return Builder(group, plan).build(); }

std::vector<ScalarArgument> scalar_arguments(const Group& group, const Plan& plan) {
  std::vector<ScalarArgument> scalars;
  for (std::size_t i = 0; i < group.ops.size(); ++i)
    if (plan.needed[i])
      if (const auto scalar = scalar_of(group, group.ops[i])) scalars.push_back(*scalar);
  return scalars;
}

std::string structure_of(const Group& group, const Plan& plan) {
  std::string key;
  const auto add_one = [&](auto value) {
    const auto number = static_cast<std::int32_t>(value);
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  const auto add = [&](auto... values) { (add_one(values), ...); };
  add(plan.rank, plan.axis, plan.pack, plan.rounds, plan.arrays.size(), plan.stored.size());
  std::vector<int> array_number(group.arrays.size()), op_number(group.ops.size());
  for (std::size_t i = 0; i < plan.arrays.size(); ++i) {
    array_number[at(plan.arrays[i])] = static_cast<int>(i);
    bool moves = false;
    for (int axis = 0; axis < plan.rank; ++axis) moves = moves || plan.strides[i][at(axis)] != 0;
    add(group.arrays[at(plan.arrays[i])].dtype(), moves, plan.strides[i][at(plan.rank - 1)] != 0);
  }
  int next = 0;
  for (std::size_t i = 0; i < group.ops.size(); ++i) {
    if (!plan.needed[i]) continue;
    op_number[i] = next++;
    const Recorded& r = group.ops[i];
    add(r.op.index(), r.out.dtype(), r.accumulates, operand_dtype(group, r));
    std::visit(
        [&]<class Op>(const Op& op) {
          if constexpr (requires { op.fn; }) add(op.fn);
          if constexpr (requires { op.side; }) add(op.side);
        },
        r.op);
    for (const Operand& x : r.operands)
      x.op >= 0 ? add('o', op_number[at(x.op)]) : add('a', array_number[at(x.array)]);
  }
  for (const int i : plan.stored) add(op_number[at(i)]);
  for (const int i : plan.reductions)
    add('r', group.reductions[at(i)].op.fn, op_number[at(group.reductions[at(i)].of)],
        group.reductions[at(i)].out.dtype());
  return key;
}
}  // namespace ferrite::lazy
