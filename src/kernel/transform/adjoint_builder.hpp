// Builds the body of a backward kernel from a lowered kernel.
#pragma once

#include <functional>

#include "ferrite/kernel/adjoint.hpp"
#include "kernel/transform/derivative.hpp"
#include "kernel/transform/lower.hpp"

namespace ferrite::kernel {

/// Whether it contains a float.
bool has_float(const Module& module, Type type);

/// Every statement becomes two sequences of statements: forward, which computes it again and saves what it
/// overwrites, and reverse, which restores that and moves adjoints. The reverse sequences are in opposite
/// order. So at the start of a reverse sequence all variables are as they were before its statement.
class AdjointBuilder {
 public:
  AdjointBuilder(const Module& module, const Function& kernel);
  Function run();

 private:
  using Block = std::vector<Stmt>;
  struct Sweep {
    Block forward, reverse;
  };
  /// An expression whose active operands are atoms.
  struct Node {
    Expr expr, atom;  // atom: where its value is; expr itself if that is an atom
    bool active = false;
    std::vector<Node> args;
  };

  // adjoint.cpp
  void add_parameters(const Function& kernel);
  void find_active();
  void check_arrays() const;
  bool varies(const Expr& e) const;
  void mark_useful(const Expr& e, std::vector<bool>& useful) const;
  void finish_parameters(Block& out);
  void check_repeatable(const Function& f) const;
  [[noreturn]] void refuse(Place place, std::string_view why) const;

  // adjoint_statements.cpp
  Sweep block(const Block& body);
  void statement(const Stmt& s, Sweep& sweep);
  void assignment(const Stmt& s, Sweep& sweep);
  void array_store(const Stmt& s, Sweep& sweep);
  void atomic(const Stmt& s, Sweep& sweep);
  void branch(const Stmt& s, Sweep& sweep);
  void declare(const Stmt& s, Sweep& sweep);
  void custom(const CustomCall& call, Sweep& sweep);
  /// Statements that are used unchanged: their arrays are declared before everything else.
  Block as_it_is(const Block& body);
  void save(const Expr& place, Sweep& sweep);
  bool is_external(const Stmt& s) const;
  /// The original body, without effects outside the thread.
  Block plain(const Block& body);

  // adjoint_loops.cpp
  void for_loop(const Stmt& s, Sweep& sweep);
  void while_loop(const Stmt& s, Sweep& sweep);
  void counted(Stmt loop, const Expr& start, const Expr& step, Sweep& sweep);
  std::set<int> changed_in(const Block& body) const;
  /// Saves the variables in `forward`; what restores them.
  Block snapshot(const std::set<int>& variables, Block& forward);
  Block fill(const Expr& array, const std::vector<Expr>& extents,
             const std::function<Expr(std::vector<Expr>)>& value);

  // adjoint_expressions.cpp
  Node build(const Expr& e, Block& forward, bool top = false);
  void reverse(const Node& node, const Expr& seed, Block& out);
  void pass(const Node& node, Expr contribution, Block& out);
  void accumulate(const Expr& place, Expr value, Block& out);
  Expr adjoint_of(const Expr& place);
  bool is_own(const Expr& place) const;  // a variable of the thread or a part of one
  Expr bind(Expr value, Block& out, const std::string& name);
  Expr fresh(const std::string& name, Type type);

  bool active(const Expr& v) const { return active_[static_cast<std::size_t>(v.index)]; }
  Expr whole(int index) const { return variable(f_, index); }

  const Module& module_;
  Lowered l_;
  Function f_;
  Names names_;
  std::vector<AdjointParameter> parameters_;
  std::vector<bool> active_;
  std::vector<int> assignments_;  // how many statements assign each variable
  std::map<int, int> adjoint_;    // variable of the thread: its adjoint; array parameter: its adjoint
  std::map<int, std::vector<Expr>> extents_;  // of the thread's arrays
  std::vector<Expr> counters_;                // for loops over arrays
  Block start_;                               // before everything: zeros and declarations
  int depth_ = 0;
};

}  // namespace ferrite::kernel
