// The derivative column of the builtin table: how the adjoint of a result reaches the arguments.
#pragma once

#include <span>
#include <vector>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// One application that is being differentiated. All parts are atoms (variables, their parts, literals), so a
/// formula can use them as often as it needs.
struct Application {
  std::span<const Expr> args;
  const Expr& result;
  const Expr& seed;  // the adjoint of the result
};

/// The contribution to the adjoint of each argument: an expression of its type, or one of type none for
/// nothing.
using Partials = std::vector<Expr> (*)(const Application&);

struct Derivative {
  enum class Kind : std::uint8_t {
    zero,        // piecewise constant, of integers, or without arguments to differentiate
    partials,    // by a formula
    definition,  // by the derivative of its own text in the kernel language
    statement,   // changes an array: the adjoint knows it
    refused,     // changes an array in a way that cannot be undone; fine for integers
  };
  Builtin id;
  Kind kind;
  Partials partials = nullptr;
};

/// All rows, in the order of the enum.
std::span<const Derivative> derivatives();
inline const Derivative& derivative(Builtin id) { return derivatives()[static_cast<std::size_t>(id)]; }

/// The function that a definition row stands for, for arguments of these types.
const Function& definition_of(Builtin id, std::span<const Type> arguments);

/// The zero of a scalar, composite or struct.
Expr zero_of(Type type);
/// The sum of products of all components.
Expr inner(Expr a, Expr b);

}  // namespace ferrite::kernel
