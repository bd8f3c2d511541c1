// A program in the making: the kernel, the live variables and what is known about their values. Categories
// call it to draw expressions and statements; it makes sure that everything is defined, in range, and used.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ferrite/models/irsynth/program.hpp"
#include "models/irsynth/draw.hpp"
#include "models/irsynth/range.hpp"

namespace ferrite::irsynth {

using kernel::Builtin;
using kernel::Expr;
using kernel::ScalarType;
using kernel::Stmt;
using kernel::Type;

/// An expression and the range of its value (for composites: of each component).
struct Term {
  Expr expr;
  Range range;
  Type type() const { return expr.type; }
};

// Short words for expressions.

template <class... E>
std::vector<Expr> list(E&&... e) {
  std::vector<Expr> all;
  all.reserve(sizeof...(e));
  (all.push_back(std::forward<E>(e)), ...);
  return all;
}
template <class... E>
Expr apply(Builtin builtin, E&&... e) {
  return kernel::apply(builtin, list(std::forward<E>(e)...));
}

inline Expr add(Expr a, Expr b) { return irsynth::apply(Builtin::add, std::move(a), std::move(b)); }
inline Expr sub(Expr a, Expr b) { return irsynth::apply(Builtin::sub, std::move(a), std::move(b)); }
inline Expr mul(Expr a, Expr b) { return irsynth::apply(Builtin::mul, std::move(a), std::move(b)); }
inline Expr div(Expr a, Expr b) { return irsynth::apply(Builtin::div, std::move(a), std::move(b)); }
inline Term add(Term a, Term b) { return {add(std::move(a.expr), std::move(b.expr)), a.range + b.range}; }
inline Term sub(Term a, Term b) { return {sub(std::move(a.expr), std::move(b.expr)), a.range - b.range}; }
inline Term mul(Term a, Term b) { return {mul(std::move(a.expr), std::move(b.expr)), a.range * b.range}; }

/// The kernel's position in its arrays: an index variable and the extent it runs over.
struct Index {
  int variable;
  std::int64_t extent;
};

class Sketch {
 public:
  Sketch(RandomKey key, int level);

  Draw draw;
  const int level;
  ScalarType real = ScalarType::f32;  // of all floats of the program
  bool functions = false;             // math functions, not only arithmetic
  bool composites = false;            // vectors too
  bool smooth = false;                // nothing that jumps: the program has a gradient
  std::string description;

  // sketch.cpp: names, parameters, variables
  std::string fresh(std::span<const std::string_view> pool);
  std::string fresh(std::initializer_list<std::string_view> pool) {
    return fresh(std::span(pool.begin(), pool.size()));
  }
  /// i = wp.tid(), one index for each extent; they become the cursor.
  void threads(std::vector<std::int64_t> grid);
  /// A grid of so many dimensions.
  void axes(int dims);
  Expr array(std::string name, Type element, std::vector<std::int64_t> shape, Range range,
             bool output = false);
  /// An output array of the grid's shape, or of the one given; zeros at first.
  Expr output(Type element, std::vector<std::int64_t> shape = {});
  Term parameter(std::string name, Type type, Range range);
  /// An int parameter of this value.
  Expr count(std::int64_t value, std::initializer_list<std::string_view> names = {"n", "count", "size", "m"});
  /// An element of an input, old or new, at the cursor.
  Term input(Type element);
  Expr at(const Index& index) const { return kernel::variable(function(), index.variable); }
  std::vector<Expr> cursor_indices() const;

  std::vector<Index> cursor;
  std::vector<std::int64_t> grid;
  int block_dim = 256;
  int most_inputs = 3;

  // sketch.cpp: variables
  /// name = value; a live variable that later code must use.
  Term let(Term value, std::string name = {});
  /// A variable known to live, for reading.
  Term read(int variable);
  /// let, read at once.
  Expr variable(Term value, std::initializer_list<std::string_view> names) {
    return read(let(std::move(value), fresh(names)).expr.index).expr;
  }
  int declare(Type type, std::string name = {});
  /// Takes part in drawing from now on.
  void alive(int variable, Range range, bool used);
  /// The variable has a new value, which nothing used yet.
  void changed(int variable, Range range);
  std::optional<Term> live(Type type, bool unused_only = false);

  // sketch.cpp: statements
  void emit(Stmt s) { block_->push_back(std::move(s)); }
  void assign(Expr target, Expr value);
  void update(Expr target, Builtin builtin, Expr value);
  void store(Expr array, Expr value) {
    assign(kernel::element(std::move(array), cursor_indices()), std::move(value));
  }
  void evaluate(Expr value);
  /// Statements made meanwhile go into the block; variables made there end with it.
  void inside(std::vector<Stmt>& block, const std::function<void()>& make);
  void if_else(Expr condition, const std::function<void()>& then,
               const std::function<void()>& otherwise = {});
  /// for name in range(first, end, step): the body gets the variable, with the range of its values.
  void loop(Expr first, Expr end, Expr step, Range values, const std::function<void(int)>& body);
  void loop(Expr end, std::int64_t most, const std::function<void(int)>& body);

  // finish.cpp: the whole
  const kernel::Function& function() const { return *function_; }
  kernel::Module& module() { return module_; }
  Program finish(const Category& category);

  // reals.cpp: expressions of floats
  Expr number(double value) const { return kernel::literal(real, value); }
  Expr whole(std::int64_t value) const { return kernel::literal(ScalarType::i32, value); }
  Type real_type() const { return Type::of(real); }
  Term some(double low, double high);  // a literal with few digits
  Term expression(int depth);
  Term leaf();
  Term operand(int depth);  // an expression that is not a literal
  /// An int as a float. Warp 1.19 cannot both cast the variable of a loop that it unrolls and use it as an
  /// int, so such a variable is never cast alone.
  Term as_real(Term n);
  Term positive(Term x);  // at least 0.1
  Term apart(Term x);     // from zero
  Term kept(Term x);      // in a sane range
  /// By a power of ten, into [-most, most].
  Term scaled(Term x, double most) const {
    const double scale = std::pow(10, -std::ceil(std::log10(x.range.size() / most)));
    return {mul(number(scale), std::move(x.expr)), x.range * Range{scale, scale}};
  }
  Term combined(Term a, Term b);

  // wholes.cpp: integers and conditions
  Term integer(int depth);
  Expr condition(int depth);

  // composites.cpp: vectors, matrices, quaternions
  Term composite(Type type, int depth);
  Term scalar_of(Term composite);  // dot, length, trace, a component
  std::optional<Term> composite_scalar();

  // statements.cpp: what fills a body
  /// Everything that a kernel does between its indices and its output, which has this type.
  void body(Type type);
  /// Draws statements, as far as the level allows, that make and change values.
  void elaborate(int statements);
  /// One value of the type that uses everything not used yet.
  Term conclusion(Type type);
  Term conclusion() { return conclusion(real_type()); }
  /// The live variables so far; those that come later can be used up together.
  std::size_t mark() const { return live_.size(); }
  Term used_up(std::size_t from, Term first);
  void branch();
  void accumulate();
  void iterate();

  // functions.cpp: functions beside the kernel
  void make_function() { functions_.push_back(made_function(1)); }
  Term call(int depth);
  /// A function with two results, called at once: a, b = f(...)
  void unpack_pair();
  /// Brought into [-size, size].
  Term fitted(Term x, double size);

 private:
  struct Live {
    int variable;
    Range range;
    bool used;
  };
  struct Input {
    int variable;
    std::vector<int> indices;  // variables
    Range range;
  };

  Term unary(int depth);
  Term binary(int depth);
  Term ternary(int depth);
  Term new_input(Type element);
  Term vector_leaf(Type type);
  void remove_unused();
  void renumber(kernel::Function& f, std::vector<Argument>* arguments);

  kernel::Module module_;
  kernel::Function kernel_;
  kernel::Function* function_ = &kernel_;
  std::vector<Stmt>* block_ = &kernel_.body;
  std::vector<Live> live_;
  std::vector<Input> inputs_;
  std::vector<std::pair<int, Argument>> parameters_;  // of the kernel, by variable
  std::set<std::string, std::less<>> names_;
  struct Callable {
    int index, parameters;  // floats in [-3, 3]
    Range result;
  };
  Callable made_function(int results);
  Expr call_of(const Callable& f, int depth);
  std::vector<Callable> functions_;
  std::set<int> unrolled_;  // variables of loops over constants
  int nested_ = 0;          // blocks around this point
  std::size_t loop_mark_ =
      0;  // live variables before the innermost loop: what changes there must not feed itself
};

}  // namespace ferrite::irsynth
