// The kernel IR: a typed tree. Names are resolved (to indices), overloads chosen, casts explicit. Control
// flow stays structured, and variables stay variables. Parsers and programs make it; the printer, the
// interpreter, emitters and the adjoint read it.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "ferrite/kernel/builtin.hpp"
#include "ferrite/kernel/error.hpp"
#include "ferrite/kernel/type.hpp"

namespace ferrite::kernel {

/// One scalar. Floats of every width are doubles, exact in their type; integers of every width are 64 bits,
/// sign-extended (u64: the same bits); bools are 0 and 1.
union Number {
  double real;
  std::int64_t integer = 0;
};
constexpr Number from_real(double x) { return {.real = x}; }
constexpr Number from_integer(std::int64_t x) { return {.integer = x}; }

/// The kind of an expression; `args` are its operands, evaluated from left to right.
enum class ExprKind : std::uint8_t {
  literal,      // number, of a scalar type
  variable,     // Function::variables[index]
  apply,        // builtin(args...): operators too
  call,         // Module::functions[index](args...)
  cast,         // args[0], a scalar, to the scalar `type`
  construct,    // a composite or struct `type`: of nothing (zeros), of all components or fields in order, of
                // one scalar (all components), or of a composite of the same form (each component cast)
  element,      // args[0] is an array, the rest are its indices
  component,    // args[0] is a vector, quaternion or matrix, the rest indices; one index of a matrix is a row
  field,        // field `index` of the struct args[0]
  logical_and,  // args[1] is evaluated only if args[0] is true
  logical_or,   // ... only if args[0] is false
  conditional,  // args[1] if args[0] else args[2]; only one of them is evaluated
};

struct Expr {
  ExprKind kind = ExprKind::literal;
  Builtin builtin = Builtin::neg;  // of apply; neg elsewhere
  Type type;
  int index = 0;  // of variable, call, field; 0 elsewhere
  Number number;  // of literal; 0 elsewhere
  std::vector<Expr> args;
  Place place;  // no part of equality

  friend bool operator==(const Expr& a, const Expr& b) {
    return a.kind == b.kind && a.builtin == b.builtin && a.type == b.type && a.index == b.index &&
           a.number.integer == b.number.integer && a.args == b.args;  // bits: NaN equals itself, -0 is not 0
  }
};

/// The kind of a statement, and the members it uses.
///   assign         targets = values: as many values as targets, all evaluated before the first is stored, or
///                  one value that is a tuple
///   update         targets[0] builtin= values[0]: the indices of the target, then the value, then the target
///                  is read. On an array element add, sub, bit_and, bit_or and bit_xor are atomic, as in Warp
///   evaluate       values[0], for its effect
///   declare_array  targets[0], a new array of extents `values` (literals), initially zero: local to the
///                  thread or, if `shared`, one for all threads of the block
///   if_            values[0], body, orelse
///   for_           targets[0] in range(values[0], values[1], values[2]); the range is evaluated once, and
///                  what the body does to the variable does not change it
///   while_         values[0], body
///   break_ continue_
///   return_        values: none, or one for each of Function::results
///   assert_        values[0], text
/// Targets are places: a variable, an element of an array, or a field or component of a place.
// clang-format off
enum class StmtKind : std::uint8_t {
  assign, update, evaluate, declare_array, if_, for_, while_, break_, continue_, return_, assert_,
};
// clang-format on

struct Stmt {
  StmtKind kind = StmtKind::assign;
  Builtin builtin = Builtin::neg;  // of update
  bool shared = false;             // of declare_array
  std::vector<Expr> targets, values;
  std::vector<Stmt> body, orelse;
  std::string text;  // of assert_: its message
  Place place;       // no part of equality

  friend bool operator==(const Stmt& a, const Stmt& b) {
    return a.kind == b.kind && a.builtin == b.builtin && a.shared == b.shared && a.targets == b.targets &&
           a.values == b.values && a.body == b.body && a.orelse == b.orelse && a.text == b.text;
  }
};

/// A name with a type: a parameter, a local variable or a field of a struct.
struct Variable {
  std::string name;
  Type type;
  friend bool operator==(const Variable&, const Variable&) = default;
};

/// A function or a kernel. Its first `parameters` variables are the parameters; they and all locals live for
/// the whole call. A variable that is read before it is written is zero in compiled code and an error in the
/// interpreter.
struct Function {
  std::string name;
  std::vector<Variable> variables;
  int parameters = 0;
  std::vector<Type> results;  // none for kernels
  std::vector<Stmt> body;
  bool enable_backward = true;  // of kernels: @wp.kernel(enable_backward=False)
  /// For functions: the functions of @wp.func_grad and @wp.func_replay in Module::functions, or -1. The
  /// adjoint uses this gradient instead of deriving one, and computes the function again by its replay.
  int gradient = -1, replay = -1;
  /// For a gradient, which is never called: for each parameter of its function the variable that is
  /// wp.adjoint[parameter], or -1. Its own parameters are those of the function, then the adjoints of the
  /// results.
  std::vector<int> adjoints;
  Place place;  // no part of equality

  friend bool operator==(const Function& a, const Function& b) {
    return a.name == b.name && a.variables == b.variables && a.parameters == b.parameters &&
           a.results == b.results && a.body == b.body && a.enable_backward == b.enable_backward &&
           a.gradient == b.gradient && a.replay == b.replay && a.adjoints == b.adjoints;
  }
};

struct Struct {
  std::string name;
  std::vector<Variable> fields;
  friend bool operator==(const Struct&, const Struct&) = default;
};

/// Structs, functions and kernels that belong together. The fields of a struct use only earlier structs;
/// functions do not call themselves, directly or indirectly.
struct FERRITE_API Module {
  std::vector<Struct> structs;
  std::vector<Function> functions;
  std::vector<Function> kernels;
  std::shared_ptr<const Source> source;  // what places refer to, or null; no part of equality

  /// The only kernel, or the one of this name. "outer.name" also finds a kernel inside a Python function if
  /// several kernels share the name (docs/kernels.md). Throws ValueError listing the kernels.
  const Function& kernel(std::string_view name = {}) const;
  std::vector<std::string> struct_names() const;

  friend bool operator==(const Module& a, const Module& b) {
    return a.structs == b.structs && a.functions == b.functions && a.kernels == b.kernels;
  }
};

// Functions that make expressions and set their types.

FERRITE_API Expr literal(ScalarType type, double value);
FERRITE_API Expr literal(ScalarType type, std::int64_t value);
FERRITE_API Expr literal(bool value);
FERRITE_API Expr variable(const Function& function, int index);
/// Throws ValueError if the builtin has no such overload.
FERRITE_API Expr apply(Builtin builtin, std::vector<Expr> args);
FERRITE_API Expr cast(ScalarType type, Expr value);
FERRITE_API Expr construct(Type type, std::vector<Expr> args);
FERRITE_API Expr element(Expr array, std::vector<Expr> indices);
FERRITE_API Expr component(Expr value, std::vector<Expr> indices);
FERRITE_API Expr field(const Module& module, Expr value, int index);

/// Adds a local variable and returns its index.
FERRITE_API int add_variable(Function& function, std::string name, Type type);

/// Whether values of the type are arrays, or structs with an array among their fields.
FERRITE_API bool holds_array(const Module& module, Type type);
/// How many thread indices the kernel asks wp.tid() for: 1 to 4, or 0 if it never calls it.
FERRITE_API int tid_dims(const Function& kernel);
/// Whether a statement is, or contains, wp.sync_threads().
FERRITE_API bool has_barrier(const Stmt& statement);
FERRITE_API bool has_barrier(const std::vector<Stmt>& body);
/// True if it can be left out or repeated: no builtin with an effect and no function that has one.
FERRITE_API bool is_pure(const Module& module, const Expr& value);

// Walks, over constant trees or over trees that `visit` changes.

template <class T, class Node>
concept NodeOf = std::is_same_v<std::remove_const_t<T>, Node>;

/// Calls `visit` for the expression and all below it, operands first.
template <NodeOf<Expr> E, class Visit>
void for_each_expr(E& e, Visit&& visit) {
  for (auto& arg : e.args) for_each_expr(arg, visit);
  visit(e);
}
/// Calls `visit` for every statement, outer ones first.
template <NodeOf<std::vector<Stmt>> Body, class Visit>
void for_each_stmt(Body& body, Visit&& visit) {
  for (auto& s : body) {
    visit(s);
    for_each_stmt(s.body, visit);
    for_each_stmt(s.orelse, visit);
  }
}
/// Calls `visit` for every expression of every statement.
template <NodeOf<std::vector<Stmt>> Body, class Visit>
void for_each_expr(Body& body, Visit&& visit) {
  for_each_stmt(body, [&](auto& s) {
    for (auto& e : s.targets) for_each_expr(e, visit);
    for (auto& e : s.values) for_each_expr(e, visit);
  });
}

}  // namespace ferrite::kernel
