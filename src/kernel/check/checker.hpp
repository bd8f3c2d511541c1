// From the surface tree to the IR: resolves names, types and overloads, and enforces every rule of the
// language.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/kernel/parse.hpp"
#include "kernel/check/python_numbers.hpp"
#include "kernel/parse/syntax.hpp"

namespace ferrite::kernel {

/// Checks a file's definitions; functions are checked when the first caller needs their results.
class ModuleChecker {
 public:
  ModuleChecker(syntax::File file, std::shared_ptr<const Source> source);

  /// Adds the errors that it finds to `errors`.
  void run(std::vector<KernelError>& errors);
  /// The module that run() made; names cannot be resolved after this.
  Module release() { return std::move(module_); }

  /// Thrown when a definition is used whose own error is already reported.
  struct Dependent {
    std::string cause;
  };
  /// For definitions that run() left out without an error: the definition that has the error.
  std::map<std::string, std::string> causes() const { return causes_; }

  [[noreturn]] void fail(Place place, std::string_view problem) const;
  void check_name(std::string_view name, Place place) const;
  std::string show(Type type) const { return to_string(type, struct_names_); }
  const Module& module() const { return module_; }
  const syntax::File& file() const { return file_; }

  /// The index of the struct or function; nothing if there is none of this name.
  std::optional<int> find_struct(std::string_view name) const;
  /// Checks it first if necessary; recursion is an error at `place`.
  std::optional<int> find_function(std::string_view name, Place place);

  /// Whether a function of the file has this name at the current place.
  bool is_function(std::string_view name) const {
    return find_definition(name, syntax::Definition::Kind::function).has_value();
  }
  /// The user's function that stands for an operator of these types, as in Warp: `def add(x: float, y:
  /// float)` is what + of two floats means.
  std::optional<int> find_operator(Builtin builtin, Type left, Type right, Place place);

  /// A type as annotations and dtype= write it; `any` is the type for Any. Fails if it is not a type.
  Type annotation(const syntax::Expr& e, const syntax::Expr* any = nullptr) const;
  /// The same for scalars, composites and structs; nothing if it is not one of them.
  std::optional<Type> simple_type(const syntax::Expr& e, int depth = 0) const;
  /// The name if the expression is one of Warp's namespace: "wp.vec3" is "vec3".
  std::optional<std::string_view> warp_name(const syntax::Expr& e) const;
  /// The value of a module's constant as Python computes it: wp.pi, math.pi, NAME, 2.0 * NAME.
  /// Fails where Python does, and for integers of more than 64 bits; nothing if it is not a number, or needs
  /// more than Python's arithmetic.
  using Constant = PythonNumber;
  std::optional<Constant> constant(const syntax::Expr& e, int depth = 0) const;
  static constexpr int deepest_constant = 400;

  /// While it lives, names have their meaning in a definition that captured these, or at the top level.
  class InScope {
   public:
    InScope(const ModuleChecker& checker, const syntax::Definition& d)
        : checker_(checker),
          outer_(std::exchange(checker.captured_, d.captured.get())),
          outer_scope_(std::exchange(checker.scope_, d.scope)) {}
    InScope(const ModuleChecker& checker, const syntax::Constants* captured)
        : checker_(checker),
          outer_(std::exchange(checker.captured_, captured)),
          outer_scope_(checker.scope_) {}
    ~InScope() {
      checker_.captured_ = outer_;
      checker_.scope_ = outer_scope_;
    }
    InScope(const InScope&) = delete;
    InScope& operator=(const InScope&) = delete;

   private:
    const ModuleChecker& checker_;
    const syntax::Constants* outer_;
    const std::string outer_scope_;
  };
  /// Calls `use` with the value of a name, in its scope; false if there is no such constant.
  template <class Use>
  bool with_constant(std::string_view name, Use&& use) const {
    for (const auto* names : {captured_, &file_.constants}) {
      if (names == nullptr) continue;
      const auto found = names->find(name);
      if (found == names->end()) continue;
      const InScope scope(*this, names == captured_ ? captured_ : nullptr);
      use(found->second);
      return true;
    }
    return false;
  }
  /// Fails if the expression needs a parameter of a Python function that has no value.
  void check_bound(const syntax::Expr& e) const;

 private:
  enum class State : std::uint8_t { open, checking, done, failed };
  bool check(std::size_t definition, std::vector<KernelError>& errors);
  void name_apart();
  bool check_gradients(std::size_t function, std::vector<KernelError>& errors);
  /// The definition that a name means at the current place: the one in the innermost Python function around
  /// it; if Python would see none, the only one.
  std::optional<std::size_t> find_definition(std::string_view name,
                                             std::optional<syntax::Definition::Kind> kind = {}) const;
  void check_struct(const syntax::Definition& d);
  std::optional<Constant> compared_constant(const syntax::Expr& e, int depth) const;
  std::optional<std::string> constant_text(const syntax::Expr& e, int depth) const;
  std::optional<Constant> named_constant(const syntax::Expr& e, int depth) const;
  std::optional<Constant> called_constant(const syntax::Expr& e, int depth) const;
  std::optional<Constant> operated_constant(const syntax::Expr& e, int depth) const;

  syntax::File file_;
  std::shared_ptr<const Source> source_;
  Module module_;
  std::vector<std::string> struct_names_;
  std::vector<State> states_;
  std::vector<int> indices_;  // of each definition in module_
  std::vector<KernelError>* errors_ = nullptr;
  mutable const syntax::Constants* captured_ =
      nullptr;                 // of the definition that is read; null at the top level
  mutable std::string scope_;  // the same
  mutable std::map<const syntax::Expr*, std::optional<Constant>> known_;  // values of names, once computed
  std::map<std::string, std::string> causes_;
};

/// The names before the colons of "clamp(x: Scalar, low: Scalar, high: Scalar) -> Scalar".
std::vector<std::string> parameter_names(std::string_view signature);

/// Checks the body of one function or kernel.
class FunctionChecker {
 public:
  FunctionChecker(ModuleChecker& module, const syntax::Definition& definition)
      : module_(module), definition_(definition) {}
  Function run();

 private:
  using Kind = syntax::ExprKind;

  // statements.cpp
  std::vector<Stmt> block(const std::vector<syntax::Stmt>& body);
  void statement(const syntax::Stmt& s, std::vector<Stmt>& out);
  Stmt assign(const syntax::Stmt& s);
  Stmt update(const syntax::Stmt& s);
  Stmt for_loop(const syntax::Stmt& s);
  Stmt return_statement(const syntax::Stmt& s);
  Stmt assertion(const syntax::Stmt& s);
  std::optional<bool> static_condition(const syntax::Expr& e) const;
  std::vector<Stmt> branches(const syntax::Stmt& s, std::size_t from);
  Expr target(const syntax::Expr& e, Type type);
  bool always_returns(const std::vector<Stmt>& body) const;
  std::vector<Type> result_types(const Expr& call) const;

  // gradients.cpp
  void check_gradient();
  void check_adjoints() const;
  std::optional<Expr> adjoint_place(const syntax::Expr& e);

  // escapes.cpp
  void refuse_escaping_arrays() const;

  // tiles.cpp
  std::optional<Stmt> declare_array(const syntax::Stmt& s);
  std::vector<std::int64_t> extents(const syntax::Expr& shape);
  enum class TileKind : std::uint8_t { of_threads, of_block };  // one value of each thread; one of them all
  struct Tile {
    Expr value;
    TileKind kind;
  };
  std::optional<Tile> tile(const syntax::Expr& e, std::vector<Stmt>& out);
  bool tile_statement(const syntax::Stmt& s, std::vector<Stmt>& out);
  std::optional<Expr> tile_element(const syntax::Expr& e);
  void check_sums(Type array, Place place) const;
  int block_variable(std::string_view what, Type type);
  void declare_block_arrays();

  // tile_arrays.cpp
  struct TileSource {  // what a tile is made of
    Type type;         // of an element
    std::vector<std::int64_t> shape;
    std::function<Expr(std::vector<Expr> index)> at;
    int variable;  // that holds the elements already, or -1
  };
  struct Window {  // the part of an array that a tile covers
    Expr array;
    std::vector<Expr> offset;
  };
  using TileBody = std::function<void(const std::vector<Expr>& index, std::vector<Stmt>& body)>;
  const std::vector<std::int64_t>* tile_shape(int variable) const;
  Stmt each_element(const std::vector<std::int64_t>& shape, const TileBody& body);
  Window window(const syntax::Expr& array, const syntax::Expr* offset, std::size_t dims,
                std::vector<Stmt>& out);
  std::vector<Expr> index_in(const Window& w, const std::vector<Expr>& index) const;
  Expr is_inside(const Window& w, const std::vector<Expr>& index) const;
  std::optional<TileSource> tile_source(const syntax::Expr& e, std::vector<Stmt>& out);
  Expr tile_target(const syntax::Expr& name, Type type, const std::vector<std::int64_t>& shape,
                   std::vector<Stmt>& out);
  void fill_tile(const syntax::Expr& name, const TileSource& source, std::vector<Stmt>& out);
  void multiply_tiles(const syntax::Expr& call, const syntax::Expr* result, std::vector<Stmt>& out);
  void store_tile(const TileSource& tile, const syntax::Expr& array, const syntax::Expr* offset, bool add,
                  std::vector<Stmt>& out);
  void refuse_tile(const Expr& place, Place at) const;  // as a target
  std::vector<const syntax::Expr*> tile_arguments(const syntax::Expr& e,
                                                  const std::vector<std::string>& parameters);

  // expressions.cpp
  Expr check(const syntax::Expr& e);
  Expr value(const syntax::Expr& e);      // a check that refuses calls without a result, and tuples
  Expr condition(const syntax::Expr& e);  // a bool; numbers are true unless they are zero
  Expr truth(Expr e, Place place);
  Expr name(const syntax::Expr& e);
  Expr attribute(const syntax::Expr& e);
  Expr subscript(const syntax::Expr& e);
  Expr component_of(Expr base, std::vector<Expr> indices, Place place);
  Expr unary(const syntax::Expr& e);
  Expr binary(const syntax::Expr& e);
  Expr compare(const syntax::Expr& e);
  Expr relation(Builtin builtin, Expr a, Expr b, Place place);
  Expr logical(const syntax::Expr& e);
  Expr conditional(const syntax::Expr& e);
  Expr operation(Builtin builtin, Expr a, Expr b, const syntax::Expr* operands, Place place);
  std::optional<Expr> user_operation(Builtin builtin, const Expr& a, const Expr& b, Place place);

  // static_values.cpp
  Expr from_constant(const ModuleChecker::Constant& c, Place place);
  /// What Python computes before the kernel runs: nothing if it needs a variable of the kernel.
  std::optional<ModuleChecker::Constant> constant(const syntax::Expr& e);
  void note_constants(const syntax::Expr& e);
  bool mentions_variable(const syntax::Expr& e) const;
  Expr python_value(const syntax::Expr& e);
  Expr static_call(const syntax::Expr& e);
  void check_static(const syntax::Expr& e) const;
  void check_runs_in_python(int function, Place place) const;

  // calls.cpp
  Expr call(const syntax::Expr& e);
  Expr builtin_call(const BuiltinInfo& row, const syntax::Expr& e);
  Expr function_call(int index, const syntax::Expr& e);
  Expr library_call(std::string_view name, const syntax::Expr& e);
  Expr construct_call(Type type, const syntax::Expr& e);
  Expr cast_call(ScalarType scalar, const syntax::Expr& e);
  Expr named_type_call(Builtin builtin, const syntax::Expr& e);
  /// The arguments in the order of the parameters, keywords resolved.
  std::vector<const syntax::Expr*> arguments(const syntax::Expr& e,
                                             const std::vector<std::string>& parameters);
  /// The same with null for arguments that are not given, also in the middle.
  std::vector<const syntax::Expr*> optional_arguments(const syntax::Expr& e,
                                                      const std::vector<std::string>& parameters);
  std::optional<Expr> written_number(const syntax::Expr& e, ScalarType scalar);
  Expr fitted(Expr value, Type wanted) const;  // a literal takes the type it is wanted in

  /// Fails for a name that the language itself needs: wp, float, range, ...
  void check_name(std::string_view name, Place place) const { module_.check_name(name, place); }
  [[noreturn]] void fail(Place place, std::string_view problem) const { module_.fail(place, problem); }
  std::string show(Type t) const { return module_.show(t); }

  ModuleChecker& module_;
  const syntax::Definition& definition_;
  Function function_;
  std::map<std::string, int, std::less<>> names_;
  std::set<std::string, std::less<>> constants_read_;  // by the kernel itself
  bool kernel_ = false, returned_ = false;
  int level_ = 0, loops_ = 0;                             // blocks and loops around the statement
  bool constants_only_ = false;                           // inside what Python computes
  bool in_composite_ = false;                             // inside the value of a module's vector
  std::map<int, TileKind> tiles_;                         // variables that hold tiles
  std::vector<Stmt> block_arrays_;                        // that tiles need
  std::map<int, std::vector<std::int64_t>> tile_arrays_;  // variables that hold tiles of many elements
};

}  // namespace ferrite::kernel
