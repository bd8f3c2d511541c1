// From the IR of a kernel to a tile program. Values that are used once are computed where they are used; all
// others become variables. Stores come last, so that results may go where operands came from.
#pragma once

#include <algorithm>
#include <optional>

#include "kernel/cpu/tile/code.hpp"

namespace ferrite::kernel {

class TileCompiler {
 public:
  /// Thrown for a kernel that tile programs cannot run.
  struct Refused {
    std::string reason;
  };

  /// With `extremes`, the code has them.
  TileCompiler(const Function& kernel, TileCode& code, bool extremes)
      : kernel_(kernel), code_(code), extremes_(extremes) {}

  void compile();

 private:
  struct Operand {
    TileOperand kind;
    int index;
  };
  /// where(x < y, x, c) and its like: a comparison of a variable that is one of the choices too.
  struct Choice {
    TileChoice form;
    const Expr *variable, *compared, *other;
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  template <class Test>
  static bool contains(const Expr& e, const Test& test) {
    return test(e) ||
           std::any_of(e.args.begin(), e.args.end(), [&](const Expr& x) { return contains(x, test); });
  }

  void count_uses();
  /// All but the first, which reads the thread's indices.
  void statements();
  void assign(const Stmt& s);
  void emit(TileInstruction i);
  void move_places();

  std::optional<Choice> choice_of(const Expr& e) const;
  /// The nesting of definitions: value() recurses through them.
  int depth(const Expr& e) const;
  /// Leaves the value in the tile.
  void value(const Expr& e);
  void cast(const Expr& e);
  /// Treats a choice between the tile and the scalar it is compared with as an extreme, if it is one.
  bool extreme(const Choice& choice);
  /// The operand in memory, if it needs no computation.
  std::optional<Operand> simple(const Expr& e);
  /// The same for any operand: computed, and kept in a variable.
  Operand kept(const Expr& e);
  void checked(TileInstruction i, Builtin builtin);

  int array_place(const Expr& e);
  int scalar(const TileCode::ScalarPlace& s) {
    if (TileCode::scalar_offset(code_.scalars.size()) >= array_base) throw Refused{"too many scalars"};
    code_.scalars.push_back(s);
    return TileCode::scalar_offset(code_.scalars.size() - 1);
  }
  /// The places in the frame are known only when all scalars and arrays are. Until then arrays have the
  /// places array_base and so on, and variables, which come after them, -1, -2, ...
  static constexpr int array_base = 1 << 24;
  static int operand_of(int array) { return array_base + array; }
  int fresh_place() { return -++code_.variables; }
  int place_of(int variable) {
    int& place = places_[at(variable)];
    if (place == 0) place = fresh_place();
    return place;
  }

  const Function& kernel_;
  TileCode& code_;
  bool extremes_;
  std::vector<int> thread_;  // variables with its indices
  int held_ = -1;            // the variable whose value the tile has
  bool stored_ = false;      // whether a statement before this one stores something
  std::vector<int> uses_, assignments_, places_, depths_;
  std::vector<const Expr*> definitions_;
};

}  // namespace ferrite::kernel
