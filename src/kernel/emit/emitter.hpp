// Writes kernels as C++, for CUDA or for the CPU. Types, helper functions and the kernels' own functions are
// collected as they are used, and written before the kernels.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ferrite/kernel/emit.hpp"
#include "kernel/emit/rules.hpp"
#include "kernel/ir/index_range.hpp"

namespace ferrite::kernel {

class Emitter {
 public:
  Emitter(const Module& module, Target target, const EmitOptions& options);
  void add_kernel(const Function& kernel);
  /// The whole text.
  std::string text() const;

 private:
  /// How tightly expressions bind: an operand that binds less than its place requires gets parentheses.
  enum Precedence : int {
    lowest,
    ternary,
    logical_or,
    logical_and,
    bits,
    compare,
    shift,
    sum,
    product,
    unary,
    primary
  };

  /// The function being written.
  struct Scope {
    const Function* function = nullptr;
    std::vector<std::string> names;        // of its variables, as written
    std::vector<const Stmt*> declared_by;  // the statement that declares a variable
    std::vector<const Stmt*> ahead_of;     // or the one before which it is declared
    std::set<std::string> taken;
    std::string on_return = "return;";  // how a thread ends
    bool lockstep = false;              // variables are members of the thread's record
    int temporaries = 0, last_line = 0;
    IndexRange range;  // which indices need no look at their sign
  };

  // names.cpp
  std::string struct_name(const std::string& name) const;
  std::string field_name(const std::string& name) const;
  std::string function_name(int index) const;

  // types.cpp
  std::string type_name(Type type);
  std::string scalar_name(ScalarType scalar);
  std::string literal(ScalarType scalar, Number number);
  std::string zero(Type type);
  /// A value converted to another type: scalars by casts, composites component by component; a scalar fills
  /// them.
  std::string converted(std::string text, Type from, Type to);

  // support.cpp
  bool is_defined(const std::string& key) const { return defined_.contains(key); }
  void define(const std::string& key, const std::string& text);
  void support(std::string_view name);
  /// Makes sure that the function of a rule exists.
  void need(Builtin id, std::vector<Type> types, Type result);
  void needs(const EmitRule& rule, Types types, Type result);
  std::string expand(std::string_view text, Types types, Type result,
                     const std::vector<std::string>& args = {});

  // expressions.cpp
  std::string value(const Expr& e, int wanted = lowest);
  std::string expression(const Expr& e, int wanted = lowest);
  std::vector<std::string> operands(const Expr& e, const std::vector<int>& wanted);
  std::string apply(const Expr& e, int wanted);
  std::string atomic(const Expr& e);
  std::string_view atomic_text(Builtin id, const std::vector<Type>& types, Place place);
  std::string assertion(Place place, std::string_view text) const;
  std::string choice(const Expr& e, int wanted);
  std::string element(const Expr& e);
  /// An element by the texts of its array and indices, which `first` points at.
  std::string element_text(const std::vector<std::string>& parts, std::size_t axes, const Expr* first);
  std::string component(const Expr& e);
  std::string constructed(const Expr& e);
  std::string called(const Expr& e);
  std::string temporary(Type type, const std::string& text);
  std::string new_name();
  /// An expression that is written as this name.
  Expr named(const std::string& name, Type type);

  // statements.cpp
  void line(const std::string& text);
  void block(const std::vector<Stmt>& body);
  void statement(const Stmt& s);
  void assign(const Stmt& s);
  void store(const Expr& target, const std::string& text, const Stmt& s);
  void update(const Stmt& s);
  void update(const Stmt& s, bool shared);
  void if_else(const Stmt& s);
  void return_values(const Stmt& s);
  void thread_indices(const Stmt& s);

  // loops.cpp
  void for_loop(const Stmt& s);
  void while_loop(const Stmt& s);
  std::string counter_type(Type type);
  /// The head of a loop over a range: counting in `counter`, which `type` (if any) declares.
  std::string range_head(const Stmt& s, const std::string& type, const std::string& counter);

  // variables.cpp
  void begin(const Function& f);
  void plan_variables();
  void declare_before(const Stmt& s);
  void array_storage(const Stmt& s, const std::string& qualifier);
  void declare_array(const Stmt& s);
  std::string array_view(const Stmt& s);
  bool is_own_array(const Expr& target) const;
  bool changes(const std::vector<Stmt>& body, int first, int end) const;  // one of these variables

  // emit.cpp
  void add_function(int index);
  std::string parameters();
  void cuda_kernel(const Function& kernel);
  void cpp_kernel(const Function& kernel);
  void close_cpp(const Function& kernel);

  // lockstep.cpp: kernels with barriers on the CPU
  void lockstep_kernel(const Function& kernel);
  void lockstep(const std::vector<Stmt>& body, bool outermost);
  void lockstep(const Stmt& s);
  void phase(const Stmt* first, const Stmt* end, bool final);
  void name_threads(const std::string& record);

  [[noreturn]] void fail(Place place, std::string_view problem) const;

  const Module& module_;
  const Target target_;
  const EmitOptions options_;
  std::set<std::string> defined_;
  struct Needed {
    Builtin id;
    std::vector<Type> types;
    Type result;
    friend bool operator==(const Needed&, const Needed&) = default;
  };
  std::vector<Needed> needed_;     // whose functions exist
  std::set<std::string> aliases_;  // scalar types by other names, "uint32"
  std::set<std::size_t> axes_;     // of arrays: the element functions that are used,
  std::set<std::size_t> wrapped_;  // and those that take negative indices
  bool has_half_ = false, has_bfloat_ = false, has_arrays_ = false;
  std::string definitions_, functions_, kernels_;
  Scope scope_;
  std::string* out_ = nullptr;
  int indent_ = 0;
  bool ordered_ = false;  // the expression being written has effects: operands keep their order
};

}  // namespace ferrite::kernel
