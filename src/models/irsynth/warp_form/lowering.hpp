// Lowers one kernel or function to Warp's form. Warp walks the Python tree and writes as it goes: every value
// gets the next number, every call a line of forward code, a line to replay it and a line of its adjoint.
// This walk makes the same steps in the same order, because the numbers depend on it.
#pragma once

#include <deque>
#include <set>

#include "kernel/check/checker.hpp"
#include "models/irsynth/warp_form/value.hpp"

namespace ferrite::irsynth::warp {

/// Lines of straight code: the body of the function, or the condition or body of a loop.
struct Block {
  std::string label;
  std::vector<std::string> forward, replay, reverse;  // reverse: last line first
  std::vector<Variable*> variables;
};

/// A function in Warp's form, before it is printed for a device.
struct Lowered {
  const syntax::Definition* definition = nullptr;
  const Function* function = nullptr;
  std::deque<Variable> storage = {};
  std::vector<Variable*> parameters = {}, variables = {};
  std::vector<Variable*> results = {};  // of the last return
  Block body = {};
  std::vector<std::string> calls = {};          // functions of the module, in the order of use
  bool rolled_constant_loop = false;            // a loop over more than 16 constants
  std::optional<KernelError> no_backward = {};  // why Warp refuses to write a backward kernel
};

class Lowering {
 public:
  Lowering(ModuleChecker& names, const Source& source, const syntax::Definition& definition,
           const Function& function);
  Lowered run();

 private:
  using Kind = syntax::ExprKind;
  static constexpr std::size_t most_variables = 200'000;  // unrolled loops inside each other

  // lowering.cpp: variables and lines
  Variable* add(ValueType type, std::optional<Constant> constant = {});
  Variable* unnumbered(ValueType type, std::optional<Constant> constant);  // until a call takes it
  void number(Variable* v);
  Variable* add(const Constant& constant);
  Variable* load(Variable* v);
  void forward(const std::string& line, const std::string& replay = {});
  void forward_only(const std::string& line);
  void reverse(const std::string& line);
  void at(Place place);
  Block& begin_block(const std::string& name = "block");
  Block end_block();
  std::vector<Variable*> call(const Callee& callee, const std::vector<Variable*>& arguments,
                              const std::vector<ValueType>& results);
  Variable* call(const Callee& callee, const std::vector<Variable*>& arguments, ValueType result);
  Variable* copy(Variable* v);
  std::optional<Origin> origin_of(const Variable* v) const;

  // statements.cpp
  void statements(const std::vector<syntax::Stmt>& body);
  void statement(const syntax::Stmt& s);
  void assign(const syntax::Stmt& s);
  void assign_tuple(const syntax::Stmt& s);
  void assign_name(const syntax::Expr& target, const syntax::Expr& value, Variable* v);
  void update(const syntax::Stmt& s);
  void update_element(const syntax::Stmt& s);
  void update_field(const syntax::Stmt& s);
  void rewrite_slot(const Slot& slot, Variable* after, const syntax::Stmt& s);
  void return_(const syntax::Stmt& s);
  void assertion(const syntax::Stmt& s);

  // loops.cpp: branches and loops
  void if_(const syntax::Stmt& s, std::size_t branch);
  void begin_if(Variable* condition, bool negated);
  void end_if(Variable* condition, bool negated);
  void for_(const syntax::Stmt& s);
  void unrolled(const syntax::Stmt& s, std::int64_t start, std::int64_t count, std::int64_t step);
  struct ConstantRange {
    std::int64_t start, stop, step, last;
  };
  void rolled(const syntax::Stmt& s, Variable* range, const std::optional<ConstantRange>& constants);
  void while_(const syntax::Stmt& s);
  void leave(const syntax::Stmt& s, bool to_start);
  void store_back(const Symbols& before);
  void unfreeze_counters(const std::vector<syntax::Stmt>& body);
  std::optional<std::int64_t> known_integer(const syntax::Expr& e, Variable*& evaluated);
  std::vector<syntax::Stmt> without_continue(const std::vector<syntax::Stmt>& body, const std::string& active,
                                             bool& continues, std::size_t from = 0);

  // places.cpp: what is assigned to
  struct Subscripted {
    Variable* target;
    std::vector<const syntax::Expr*> indices;  // those not used up
  };
  Subscripted subscripted(const syntax::Expr& e, bool as_target);
  Subscripted descend(const syntax::Expr& e, std::vector<std::vector<const syntax::Expr*>> indices,
                      bool as_target, std::vector<std::vector<const syntax::Expr*>>& left);
  Variable* indexed(Variable* target, const std::vector<const syntax::Expr*>& indices, bool as_target);
  Variable* target_of(const syntax::Expr& e);
  Variable* aggregate_of(const syntax::Expr& e);
  Variable* member_of(const syntax::Expr& e);
  Variable* slot_reference(Slot slot, std::optional<Origin> origin);
  std::optional<Slot> slot_at(const Variable* target, const std::vector<Variable*>& indices);
  std::optional<Slot> slot_field(const Variable* target, const std::string& name);
  void write_slot(const Slot& slot, Variable* value, const std::string& operation);
  void store_element(const syntax::Expr& e, Variable* target, const std::vector<Variable*>& indices,
                     Variable* value);
  void store_field(const syntax::Expr& e, Variable* aggregate, Variable* value);

  // expressions.cpp
  Variable* value(const syntax::Expr& e);
  Variable* name(const syntax::Expr& e);
  Variable* attribute(const syntax::Expr& e);
  Variable* attribute(const syntax::Expr& e, Variable* aggregate, bool as_target);
  Variable* component_index(const std::string& attribute);
  Variable* unary(const syntax::Expr& e);
  Variable* compare(const syntax::Expr& e);
  Variable* logical(const syntax::Expr& e);
  Variable* conditional(const syntax::Expr& e);
  Variable* apply(Builtin builtin, const std::vector<Variable*>& arguments);
  Variable* extract(Variable* target, const std::vector<Variable*>& indices);
  std::optional<Constant> static_value(const syntax::Expr& e, Type* type) const;
  std::optional<Constant> composite(const syntax::Expr& e, Type* type) const;

  // calls.cpp
  std::vector<Variable*> called(const syntax::Expr& e, std::size_t outputs);
  std::vector<Variable*> arguments(const syntax::Expr& e, const std::vector<std::string>& parameters = {});
  Variable* argument(const syntax::Expr& e);
  Variable* cast(ScalarType scalar, const std::string& native, const syntax::Expr& e);
  Variable* constructed(Type type, const syntax::Expr& e);
  std::int64_t known(const Variable* v, const syntax::Expr& e) const;
  Variable* fixed_array(const syntax::Expr& e);
  Variable* identity(Builtin builtin, const syntax::Expr& e);
  std::vector<Variable*> builtin(const BuiltinInfo& row, const syntax::Expr& e, std::size_t outputs);
  std::vector<Variable*> function(const Function& callee, const syntax::Expr& e);
  std::vector<Variable*> function(const Function& callee, const std::vector<Variable*>& arguments);

  [[noreturn]] void fail(Place place, std::string_view problem) const {
    throw KernelError(&source_, place, problem);
  }

  ModuleChecker& names_;
  const Source& source_;
  const Module& module_;
  std::vector<std::string_view> lines_;
  Lowered out_;
  std::deque<Block> blocks_;
  Symbols symbols_;
  std::vector<Symbols> loop_symbols_;  // as they were when each loop began
  std::vector<std::string> loop_labels_;
  std::set<std::string> counters_;  // variables of unrolled loops
  std::string indent_;
  int line_ = 0, labels_ = 0;
};

/// Whether a component of this type can be updated by the atomic "add", "and", ...
bool is_atomic(Type type, const std::string& operation);

/// Where Python says that a node begins.
Place start_of(const syntax::Expr& e);
Place start_of(const syntax::Stmt& s);

}  // namespace ferrite::irsynth::warp
