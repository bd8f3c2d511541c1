// Gradients against central differences, both by the interpreter in f64.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ferrite/kernel/adjoint.hpp"
#include "ferrite/kernel/interpreter.hpp"
#include "ferrite/kernel/parse.hpp"

namespace ferrite::kernel {

using Extents = std::vector<std::int64_t>;
using Arguments = std::vector<Value>;

inline Value reals_value(Type type, std::vector<std::int64_t> shape, std::mt19937& random) {
  int count = type.components();
  for (const std::int64_t n : shape) count *= static_cast<int>(n);
  Value v{type, {}, std::move(shape), {}};
  std::normal_distribution<double> normal;
  for (int i = 0; i < count; ++i)
    v.numbers.push_back(is_float(type.scalar) ? from_real(normal(random)) : from_integer(random() % 100));
  return v;
}

inline InterpretOptions exact() {
  InterpretOptions options;
  options.precision = Precision::f64;
  return options;
}

/// The numbers in the struct or value that a path leads to: its place among the value's numbers.
inline int numbers_in(const Module& module, Type type) {
  if (type.is_array()) return 1;
  if (!type.is_struct()) return type.components();
  int count = 0;
  for (const Variable& f : module.structs[type.structure].fields) count += numbers_in(module, f.type);
  return count;
}
inline int offset_of(const Module& module, Type type, const std::vector<int>& path) {
  int offset = 0;
  for (const int at : path) {
    const auto& fields = module.structs[type.structure].fields;
    for (int i = 0; i < at; ++i) offset += numbers_in(module, fields[static_cast<std::size_t>(i)].type);
    type = fields[static_cast<std::size_t>(at)].type;
  }
  return offset;
}

/// For a random linear function of all floating arrays after the kernel: its derivative by every floating
/// number before it.
struct Gradients {
  std::vector<std::vector<double>> backward, differences;  // for each adjoint parameter
};
inline Gradients gradients(const Module& module, const Function& kernel, const Extents& grid,
                           const Arguments& arguments, const std::vector<int>& extrema = {}) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  const std::vector<AdjointParameter> adjoints = adjoint_parameters(module, kernel);
  const auto is_array = [&](const AdjointParameter& p) {
    return kernel.variables[static_cast<std::size_t>(p.parameter)].type.is_array();
  };
  std::vector<std::vector<double>> weights;
  for (const AdjointParameter& p : adjoints) {
    const std::size_t count = is_array(p) ? arguments[static_cast<std::size_t>(p.parameter)].numbers.size()
                                          : static_cast<std::size_t>(p.type.components());
    weights.emplace_back(count, 0.0);
    for (double& w : weights.back()) w = is_array(p) ? normal(random) : 0;
  }
  const auto after = [&](const Arguments& before) {
    Arguments run = before;
    interpret(module, kernel, grid, run, exact());
    return run;
  };
  const auto difference = [&](const Arguments& up,
                              const Arguments& down) {  // what did not move cancels exactly
    double sum = 0;
    for (std::size_t a = 0; a < adjoints.size(); ++a) {
      const auto p = static_cast<std::size_t>(adjoints[a].parameter);
      for (std::size_t i = 0; is_array(adjoints[a]) && i < weights[a].size(); ++i)
        sum += weights[a][i] * (up[p].numbers[i].real - down[p].numbers[i].real);
    }
    return sum;
  };

  Gradients result;
  const Module back = adjoint(module, kernel);
  EXPECT_TRUE(parse(print(back)) == back) << print(back);  // it is a kernel like any other
  Arguments all = arguments;
  const Arguments left = after(arguments);
  for (const int e : extrema) all[static_cast<std::size_t>(e)] = left[static_cast<std::size_t>(e)];
  for (std::size_t a = 0; a < adjoints.size(); ++a) {
    Value v{adjoints[a].type, {}, {1}, {}};
    if (is_array(adjoints[a])) v.shape = arguments[static_cast<std::size_t>(adjoints[a].parameter)].shape;
    for (const double w : weights[a]) v.numbers.push_back(from_real(w));
    all.push_back(std::move(v));
  }
  interpret(back, back.kernel(), grid, all, exact());
  for (std::size_t a = 0; a < adjoints.size(); ++a) {
    std::vector<double> got;
    for (const Number n : all[arguments.size() + a].numbers) got.push_back(n.real);
    result.backward.push_back(std::move(got));
    const auto p = static_cast<std::size_t>(adjoints[a].parameter);
    const int first = offset_of(module, arguments[p].type, adjoints[a].fields);
    std::vector<double> wanted;
    for (std::size_t i = 0; i < weights[a].size(); ++i) {
      Arguments moved = arguments;
      double& x = moved[p].numbers[static_cast<std::size_t>(first) + i].real;
      const double middle = x, h = 1e-6 * std::max(1.0, std::fabs(middle));
      x = middle + h;
      const Arguments up = after(moved);
      x = middle - h;
      wanted.push_back(difference(up, after(moved)) / (2 * h));
    }
    result.differences.push_back(std::move(wanted));
  }
  return result;
}

/// Expects the two to agree.
inline void expect_gradients(const Module& module, const Function& kernel, const Extents& grid,
                             const Arguments& arguments, const std::vector<int>& extrema = {}) {
  const std::vector<AdjointParameter> adjoints = adjoint_parameters(module, kernel);
  const Gradients g = gradients(module, kernel, grid, arguments, extrema);
  for (std::size_t a = 0; a < adjoints.size(); ++a) {
    if (std::find(extrema.begin(), extrema.end(), adjoints[a].parameter) != extrema.end()) continue;
    for (std::size_t i = 0; i < g.differences[a].size(); ++i) {
      const double want = g.differences[a][i];
      ASSERT_NEAR(g.backward[a][i], want, 1e-5 * std::max(1.0, std::fabs(want)))
          << kernel.name << ": " << adjoints[a].name << "[" << i << "]\n"
          << print(adjoint(module, kernel));
    }
  }
}

}  // namespace ferrite::kernel
