// Which cases test which op. Every op has cases of its own name ("softmax", "softmax/axis"), one of them with
// a gradient if it has a vjp. The two tables are all exceptions: ops that are tested under another name, and
// ops without a case.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "case.hpp"

namespace ferrite::conformance {

struct TestedAs {
  std::string_view op, cases;
};
/// Ops that users call by other names, and ops that only others call.
inline constexpr TestedAs tested_as[] = {
    {"copy", "cast"},
    {"reduce", "sum"},
    {"argreduce", "argmax"},
    {"scan", "cumsum"},
    {"statistic", "mean"},
    {"triangle", "view/tril"},
    {"reshape", "view/reshape"},
    {"permute", "view/permute"},
    {"slice", "view/slice"},
    {"expand", "view/expand"},
    {"windows", "view/windows"},
    {"pad", "view/pad"},
    {"cross_entropy_loss", "softmax_cross_entropy"},
    {"solve_factored", "solve"},  // by the gradient
};

struct Untested {
  std::string_view op, reason;
};
inline constexpr Untested untested[] = {
    {"launch", "it runs a kernel of the user: tests/ops/launch_test.cpp, tests/autodiff/launch_test.cpp"},
};

/// What comes behind the name of an op in that of an op which its gradient calls. A case with a gradient runs
/// both, and the second derivatives go through the latter's gradient.
inline constexpr std::string_view gradient_suffixes[] = {"_backward", "_input_grad", "_weight_grad",
                                                         "_with_gradient"};

inline bool is_case_of(std::string_view name, std::string_view op) {
  return name == op || (name.starts_with(op) && name[op.size()] == '/');
}

struct Coverage {
  bool forward = false;
  bool gradient = false;
};

inline Coverage coverage_of(std::string_view op, const std::vector<Spec>& cases) {
  std::string_view name = op, forward;
  for (const TestedAs& other : tested_as)
    if (other.op == op) name = other.cases;
  for (std::string_view suffix : gradient_suffixes)
    if (op.ends_with(suffix)) forward = op.substr(0, op.size() - suffix.size());
  Coverage coverage;
  for (const Spec& spec : cases) {
    const bool called_by_gradient = !forward.empty() && is_case_of(spec.name, forward) && spec.differentiable;
    if (!called_by_gradient && !is_case_of(spec.name, name)) continue;
    coverage.forward = true;
    coverage.gradient = coverage.gradient || spec.differentiable;
  }
  return coverage;
}

}  // namespace ferrite::conformance
