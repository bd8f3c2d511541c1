#include "models/irsynth/adjoint_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/kernel/adjoint.hpp"

namespace ferrite::irsynth {

namespace {

using kernel::Value;

kernel::InterpretOptions exact(const Program& program) {
  kernel::InterpretOptions options;
  options.precision = kernel::Precision::f64;
  options.block_dim = program.block_dim;
  return options;
}

/// The place of a field among the numbers of its struct.
std::size_t offset_of(const kernel::Module& module, kernel::Type type, const std::vector<int>& path) {
  std::size_t offset = 0;
  for (const int at : path) {
    const auto& fields = module.structs[type.structure].fields;
    for (int i = 0; i < at; ++i)
      offset += static_cast<std::size_t>(fields[static_cast<std::size_t>(i)].type.components());
    type = fields[static_cast<std::size_t>(at)].type;
  }
  return offset;
}

bool has_extrema(const kernel::Function& f) {
  bool found = false;
  kernel::for_each_expr(f.body, [&](const kernel::Expr& e) {
    found |= e.kind == kernel::ExprKind::apply &&
             (e.builtin == kernel::Builtin::atomic_min || e.builtin == kernel::Builtin::atomic_max);
  });
  return found;
}

}  // namespace

AdjointCheck check_adjoint(const Program& program, const kernel::Module& back,
                           const std::vector<Value>& arguments, RandomKey key) {
  const kernel::Function& k = program.kernel();
  if (has_extrema(k)) return {false, "not checked: atomic extrema"};
  const auto parameters = kernel::adjoint_parameters(program.module, k);
  if (parameters.empty()) return {false, "not checked: no floats"};
  std::uint64_t drawn = 0;
  const auto draw = [&] { return 2 * uniform_at<double>(key, drawn++) - 1; };
  struct Part {  // of one parameter: weights of what the kernel leaves, and the direction it moves in
    std::size_t parameter, first;
    std::vector<double> weights, direction;
  };
  std::vector<Part> parts;
  std::vector<Value> all = arguments;
  for (const kernel::AdjointParameter& p : parameters) {
    const auto at = static_cast<std::size_t>(p.parameter);
    const kernel::Type type = k.variables[at].type;
    Value v{p.type, {}, {1}, {}};
    if (type.is_array()) v.shape = arguments[at].shape;
    const std::size_t count =
        type.is_array() ? arguments[at].numbers.size() : static_cast<std::size_t>(p.type.components());
    Part part{at, offset_of(program.module, type, p.fields), {}, {}};
    for (std::size_t i = 0; i < count; ++i) {
      part.weights.push_back(type.is_array() ? draw() : 0);
      part.direction.push_back(draw());
      v.numbers.push_back(kernel::from_real(part.weights.back()));
    }
    parts.push_back(std::move(part));
    all.push_back(std::move(v));
  }
  const auto after = [&](double step) {
    std::vector<Value> moved = arguments;
    for (const Part& p : parts)
      for (std::size_t i = 0; i < p.direction.size(); ++i)
        moved[p.parameter].numbers[p.first + i].real += step * p.direction[i];
    kernel::interpret(program.module, k, program.grid, moved, exact(program));
    double sum = 0;
    for (const Part& p : parts)
      for (std::size_t i = 0; i < p.weights.size(); ++i)
        if (p.weights[i] != 0) sum += p.weights[i] * moved[p.parameter].numbers[p.first + i].real;
    return sum;
  };
  kernel::interpret(back, back.kernels[0], program.grid, all, exact(program));
  double backward = 0;
  for (std::size_t a = 0; a < parts.size(); ++a)
    for (std::size_t i = 0; i < parts[a].direction.size(); ++i)
      backward += parts[a].direction[i] * all[arguments.size() + a].numbers[i].real;
  // A kink between the two points spoils a difference; closer points have fewer kinks between them.
  double slopes[2] = {}, jump = 0, size = 1;
  for (int turn = 0; turn < 2; ++turn) {
    const double h = turn == 0 ? 1e-5 : 1e-7;
    const double up = after(h), down = after(-h);
    slopes[turn] = (up - down) / (2 * h);
    size = std::max({1.0, std::abs(slopes[turn]), std::abs(up)});
    if (std::abs(backward - slopes[turn]) <= 1e-5 * size) return {false, "finite differences"};
    const double middle = after(0);
    jump = std::abs((up - middle) - (middle - down)) / h;
  }
  if (jump > 1e-3 * size || std::abs(slopes[1] - slopes[0]) > 1e-4 * size)
    return {false, "not checked: not smooth at these inputs"};
  return {true, fmt::format("the adjoint says {}, differences {}", backward, slopes[1])};
}

}  // namespace ferrite::irsynth
