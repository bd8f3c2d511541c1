// The surface tree: Python as written, with names unresolved and nothing checked. Used only between parser
// and checker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/kernel/builtin.hpp"
#include "ferrite/kernel/error.hpp"

namespace ferrite::kernel::syntax {

/// Conditions of one if statement.
inline constexpr std::size_t longest_chain = 60;

enum class ExprKind : std::uint8_t {
  name,     // text
  integer,  // integer
  real,     // real
  boolean,  // integer: 0 or 1
  string,   // text
  none,
  attribute,  // args[0].text
  call,       // args[0](args[1], ...), keywords[i] names args[i + 1] or is empty
  subscript,  // args[0][args[1], ...]
  unary,      // builtin args[0]
  binary,     // args[0] builtin args[1]
  compare,    // args[0] comparisons[0] args[1] comparisons[1] args[2] ...
  logical_and,
  logical_or,
  conditional,  // args[1] if args[0] else args[2]
  tuple,
};

struct Expr {
  ExprKind kind;
  Place place;
  std::string text = {};
  std::uint64_t integer = 0;
  double real = 0;
  Builtin builtin = Builtin::neg;
  std::vector<Builtin> comparisons = {};
  std::vector<std::string> keywords = {};
  std::vector<Expr> args = {};
  int depth = 1;           // of the tree: bounded, so that recursion over it is
  Place parenthesis = {};  // the one that opens around it, if any
};

enum class StmtKind : std::uint8_t {
  expression,  // values[0]
  assign,      // targets = values[0]
  update,      // targets[0] builtin= values[0]
  if_,         // values[k] guards branches[k]; one more branch than values is the else
  for_,        // targets in values[0], branches[0]
  while_,      // values[0], branches[0]
  break_,
  continue_,
  pass,
  return_,  // values: none or one
  assert_,  // values: the condition and, perhaps, the message
};

struct Stmt {
  StmtKind kind;
  Place place;
  Builtin builtin = Builtin::neg;
  std::vector<Expr> targets = {}, values = {};
  std::vector<std::vector<Stmt>> branches = {};
};

struct Parameter {
  std::string name;
  Place place;
  Expr annotation;
  std::optional<Expr> any;  // the type that `Any` in the annotation stands for
};

/// NAME = expression. `none` is a name without a known value; its text is the parameter to bind, if there is
/// one.
using Constants = std::map<std::string, Expr, std::less<>>;

/// A struct, function or kernel, or an addition to a function: @wp.func_grad(f), @wp.func_replay(f).
struct Definition {
  enum class Kind : std::uint8_t { structure, function, gradient, replay, kernel } kind;
  std::string name;         // in the module, where it is the only one
  std::string called = {};  // in the text, if that is another
  std::string scope = {};   // the Python functions and classes around it: "test.inner"
  Place place;              // of the name
  Place head = {};          // of `def`
  std::string of = {};      // of gradients and replays: the function,
  Place of_place = {};      // and where it is named
  bool enable_backward = true;
  bool is_library = false;            // not of the text: counts only if called
  std::vector<Parameter> parameters;  // of structs: the fields
  std::vector<Expr> result;           // the annotation after ->, if there is one
  std::vector<Stmt> body;
  std::shared_ptr<const Constants> captured = {};  // of the Python functions around it, if any

  const std::string& python_name() const { return called.empty() ? name : called; }
};

struct File {
  std::vector<Definition> definitions;
  Constants constants;                                      // of the top level
  std::map<std::string, std::string, std::less<>> modules;  // what `import` calls warp, math and numpy
};

}  // namespace ferrite::kernel::syntax
