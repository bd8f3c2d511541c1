// Kernels in a simpler form, for transformations such as the adjoint.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// A function without return, break and continue: flags and branches replace them. `results` are the
/// variables that hold the returned values.
struct Structured {
  Function function;
  std::vector<int> results;
};
Structured remove_jumps(const Function& function);

/// A variable whose value cannot be computed again from the arguments, and why.
struct Unrepeatable {
  Place place;
  std::string reason;
};

/// A call of a function with its own gradient. All variables are those of the lowered function.
struct CustomCall {
  std::vector<Expr> arguments;          // variables
  std::vector<Expr> results;            // variables that `forward` assigns
  std::vector<Stmt> forward;            // what the function computes, or its replay
  std::vector<Stmt> gradient;           // moves adjoints from seeds to arguments,
  std::vector<int> seeds;               // where these variables are the adjoints of the results,
  std::map<int, std::size_t> adjoints;  // and these the adjoints of arguments
};

/// A kernel with its functions written out and without jumps, in these statements only:
///   assign    one target; the value has no calls, and no effect but a draw or an atomic that is all of it. A
///             tuple only from tid
///   update    += and -= of an element of a parameter, or of a part of it
///   evaluate  an atomic
///   if_ for_ while_ declare_array
///   evaluate  a call: Lowered::customs[index], which is not part of the body. Its targets are the results
/// Assertions are removed. Elements of arrays that the kernel writes are read by separate assignments.
struct Lowered {
  Function function;
  std::map<int, Unrepeatable> unrepeatable;
  std::vector<CustomCall> customs;

  /// The custom call that a statement is, or null.
  const CustomCall* custom(const Stmt& s) const {
    const bool is = s.kind == StmtKind::evaluate && s.values[0].kind == ExprKind::call;
    return is ? &customs[static_cast<std::size_t>(s.values[0].index)] : nullptr;
  }
};
/// Throws KernelError for shared arrays, barriers and arrays that are assigned or in structs.
Lowered lower(const Module& module, const Function& kernel);

/// Adds the reads of parameters' elements that the thread may have written before to `unrepeatable`.
void find_stale_reads(Lowered& lowered);

/// Gives variables names that are not taken.
class Names {
 public:
  Names() = default;
  explicit Names(const Function& function) {
    for (const Variable& v : function.variables) taken_.insert(v.name);
  }
  std::string unique(const std::string& wish);

 private:
  std::set<std::string> taken_;
};

// Functions that make statements, and queries about them.
Stmt assign(Expr target, Expr value);
Stmt update(Builtin builtin, Expr target, Expr value);
Stmt evaluate(Expr value);
Stmt if_else(Expr condition, std::vector<Stmt> body, std::vector<Stmt> orelse = {});
Stmt for_range(Expr variable, Expr start, Expr stop, Expr step, std::vector<Stmt> body);
/// The variable that a place is a part of, or an element of.
const Expr& root_of(const Expr& place);
/// Whether the place is, or is a part of, an element of an array.
bool in_array(const Expr& place);
void append(std::vector<Stmt>& to, std::vector<Stmt> more);

}  // namespace ferrite::kernel
