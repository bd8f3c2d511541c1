// The elementwise ops in the kernel language: one table for unary, backward and binary functions. Operands
// and results have the dtype that ops compute in (f32 for 16-bit floats, i64 for integers, as in Cpu and
// Cuda).
#pragma once

#include <string_view>
#include <vector>

#include "ferrite/core/dtype.hpp"
#include "ferrite/kernel/ir.hpp"
#include "ferrite/ops/binary.hpp"
#include "ferrite/ops/reduce.hpp"
#include "ferrite/ops/unary.hpp"
#include "kernel/ir/dtypes.hpp"

namespace ferrite::lazy {

using kernel::scalar_type;

/// Writes statements into a body; every value that is used twice gets a variable.
class Statements {
 public:
  Statements(kernel::Function& function, std::vector<kernel::Stmt>& body)
      : function_(function), body_(body) {}

  kernel::Function& function() { return function_; }
  std::vector<kernel::Stmt>& body() { return body_; }
  /// A variable with this value; variables and literals are returned unchanged.
  kernel::Expr let(kernel::Expr value, std::string_view name = "v");
  void assign(kernel::Expr target, kernel::Expr value);

 private:
  kernel::Function& function_;
  std::vector<kernel::Stmt>& body_;
};

/// Integer pow and remainder are loops and divisions that may trap: they are not fused.
bool has_expression(op::BinaryFn fn, DType compute);

/// `x` and `alpha` are of the compute dtype (bool for logical_not); truth values come out as bool.
kernel::Expr unary_expression(Statements& to, op::UnaryFn fn, kernel::Expr x, const kernel::Expr& alpha);
/// dy f'(s), by the rules of op::UnaryBackward.
kernel::Expr backward_expression(Statements& to, op::UnaryFn fn, kernel::Expr s, kernel::Expr dy,
                                 const kernel::Expr& alpha);
/// `side`: which of them is a scalar. Extrema expect that it is not NaN.
kernel::Expr binary_expression(Statements& to, op::BinaryFn fn, kernel::Expr a, kernel::Expr b,
                               op::ScalarSide side = op::ScalarSide::none);

/// The initial value of a reduction, and the step that takes in one more value.
kernel::Expr reduce_identity(op::ReduceFn fn, kernel::ScalarType type);
kernel::Expr reduce_step(Statements& to, op::ReduceFn fn, kernel::Expr sum, kernel::Expr x);

}  // namespace ferrite::lazy
