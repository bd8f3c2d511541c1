// Inlines functions, and gives every effect its own statement.
#include "kernel/transform/lower.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/transform/derivative.hpp"

namespace ferrite::kernel {

namespace {

bool any_of(const Expr& e, const auto& test) {
  return test(e) || std::any_of(e.args.begin(), e.args.end(), [&](const Expr& a) { return any_of(a, test); });
}
bool is_atom(const Expr& e) { return e.kind == ExprKind::variable || e.kind == ExprKind::literal; }
Effect effect_of(const Expr& e) { return e.kind == ExprKind::apply ? info(e.builtin).effect : Effect::none; }
bool draws(const Expr& e) {
  return any_of(e, [](const Expr& p) { return effect_of(p) == Effect::updates_first; });
}

/// Limit on statements of inlined functions. Beyond it a backward kernel takes seconds to build and longer to
/// compile, and each function that calls another one twice doubles it.
constexpr std::size_t most_written_out = 4096;

class Lowering {
 public:
  Lowering(const Module& module, const Function& kernel) : module_(module) {
    out_.name = kernel.name;
    out_.place = kernel.place;
    out_.parameters = kernel.parameters;
    out_.variables.assign(kernel.variables.begin(), kernel.variables.begin() + kernel.parameters);
    names_ = Names(out_);
    for (const Variable& v : out_.variables) refuse_hidden_arrays(v.type, kernel.place);
    find_written(kernel);
    for (const Function& f : module.functions) find_written(f);
  }

  Lowered run(const Function& kernel) {
    const Structured s = remove_jumps(kernel);
    Frame frame = open(s.function);
    for (int i = 0; i < kernel.parameters; ++i)
      frame.variables[static_cast<std::size_t>(i)] = variable(out_, i);
    frame_ = &frame;
    block(s.function.body, out_.body);
    return {std::move(out_), std::move(unrepeatable_), std::move(customs_)};
  }

 private:
  struct Frame {
    const Function* function;
    std::vector<Expr> variables;  // what each variable is here
    std::vector<int> assignments;
  };

  [[noreturn]] void refuse(Place place, std::string_view why) const {
    throw KernelError(module_.source.get(), place, why);
  }
  void refuse_hidden_arrays(Type type, Place place) const {
    if (!type.is_struct()) return;
    for (const Variable& f : module_.structs[type.structure].fields) {
      if (f.type.is_array())
        refuse(place,
               fmt::format("no gradient: array '{}' is inside a struct; pass it as a parameter", f.name));
      refuse_hidden_arrays(f.type, place);
    }
  }
  void find_written(const Function& f) {
    for_each_stmt(f.body, [&](const Stmt& s) {
      for (const Expr& t : s.targets)
        if (in_array(t)) written_.push_back(root_of(t).type.element());
    });
    for_each_expr(f.body, [&](const Expr& e) {
      if (effect_of(e) == Effect::writes_array) written_.push_back(e.args[0].type.element());
    });
  }
  /// An element that may change while the kernel runs; decided by its type, because arrays go through
  /// functions.
  bool is_changing(const Expr& e) const {
    return e.kind == ExprKind::element &&
           std::find(written_.begin(), written_.end(), e.args[0].type.element()) != written_.end();
  }
  bool needs_statement(const Expr& whole) const {
    return any_of(whole, [&](const Expr& e) {
      return e.kind == ExprKind::call || is_changing(e) || effect_of(e) != Effect::none ||
             (e.kind == ExprKind::conditional && !(e.type.is_scalar() && !e.type.is_float())) ||
             (e.kind == ExprKind::apply && derivative(e.builtin).kind == Derivative::Kind::definition);
    });
  }

  Frame open(const Function& f) {
    Frame frame{&f, std::vector<Expr>(f.variables.size()), std::vector<int>(f.variables.size(), 0)};
    for_each_stmt(f.body, [&](const Stmt& s) {
      for (const Expr& t : s.targets)
        if (!in_array(t)) ++frame.assignments[static_cast<std::size_t>(root_of(t).index)];
    });
    for_each_expr(f.body, [&](const Expr& e) {
      if (effect_of(e) == Effect::updates_first)
        ++frame.assignments[static_cast<std::size_t>(e.args[0].index)];
    });
    return frame;
  }
  /// Neither a parameter nor the adjoint of one, which other threads change too.
  bool is_own_array(const Expr& array) const {
    return array.index >= out_.parameters && !adjoint_arrays_.contains(array.index);
  }
  Expr fresh(const std::string& name, Type type) {
    return variable(out_, add_variable(out_, names_.unique(name), type));
  }
  Expr mapped(const Expr& v) {
    Expr& known = frame_->variables[static_cast<std::size_t>(v.index)];
    if (known.type.kind == Type::Kind::none)
      known = fresh(frame_->function->variables[static_cast<std::size_t>(v.index)].name, v.type);
    Expr e = known;
    e.place = v.place;
    return e;
  }
  Expr bind(Expr value, std::vector<Stmt>& out, const std::string& name = "t") {
    if (is_atom(value)) return value;
    Expr t = fresh(name, value.type);
    t.place = value.place;
    out.push_back(assign(t, std::move(value)));
    return t;
  }

  /// The expression over the variables of the result; parts that need a statement are added to `out`.
  Expr lift(const Expr& e, std::vector<Stmt>& out) {
    if (e.kind == ExprKind::variable) return mapped(e);
    const bool lazy =
        e.kind == ExprKind::conditional || e.kind == ExprKind::logical_and || e.kind == ExprKind::logical_or;
    if (lazy && needs_statement(e)) return lift_lazy(e, out);
    if (e.kind == ExprKind::call) {
      const Function& f = module_.functions[static_cast<std::size_t>(e.index)];
      const std::vector<Expr> results = inline_call(f, e, out);
      return results.empty() ? Expr() : results[0];
    }
    Expr made = e;
    made.args = lift_all(e.args, out);
    if (e.kind == ExprKind::apply && derivative(e.builtin).kind == Derivative::Kind::definition) {
      std::vector<Type> types;
      for (const Expr& a : made.args) types.push_back(a.type);
      return inline_function(definition_of(e.builtin, types), std::move(made.args), e.place, out)[0];
    }
    if (effect_of(e) == Effect::asserts) return literal(true);
    if (effect_of(e) == Effect::synchronises) refuse(e.place, "no gradient: barriers are not differentiated");
    if (effect_of(e) == Effect::none && !is_changing(made)) return made;
    const bool atomic = effect_of(e) == Effect::writes_array;
    if (atomic && is_own_array(made.args[0]))
      refuse(e.place, fmt::format("no gradient: the result of wp.{} on an array of the thread is used",
                                  info(e.builtin).name));
    Expr t = bind(std::move(made), out, temporary_name(e));
    if (atomic)
      unrepeatable_[t.index] = {
          e.place,
          fmt::format("no gradient: it needs the result of wp.{}, which depends on the order of threads",
                      info(e.builtin).name)};
    return t;
  }
  std::string temporary_name(const Expr& e) const {
    if (e.kind != ExprKind::element) return effect_of(e) == Effect::writes_array ? "old" : "drawn";
    return frame_->function->variables[static_cast<std::size_t>(root_of(e).index)].name + "_at";
  }
  std::vector<Expr> lift_all(const std::vector<Expr>& all, std::vector<Stmt>& out) {
    std::vector<Expr> lifted;
    for (std::size_t i = 0; i < all.size(); ++i) {
      lifted.push_back(lift(all[i], out));
      const bool before_draw =
          std::any_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(), draws);
      const bool state = lifted[i].type == Type::of(ScalarType::u32) && i == 0;
      if (before_draw && !state && !lifted[i].type.is_array()) lifted[i] = bind(std::move(lifted[i]), out);
    }
    return lifted;
  }
  /// and, or, and conditional expressions: only one side is evaluated.
  Expr lift_lazy(const Expr& e, std::vector<Stmt>& out) {
    const Expr condition = lift(e.args[0], out);
    const Expr t = fresh("t", e.type);
    const auto side = [&](const Expr& value) {
      std::vector<Stmt> body;
      Expr v = lift(value, body);
      body.push_back(assign(t, std::move(v)));
      return body;
    };
    if (e.kind == ExprKind::conditional) {
      std::vector<Stmt> yes = side(e.args[1]), no = side(e.args[2]);
      out.push_back(if_else(condition, std::move(yes), std::move(no)));
    } else {
      out.push_back(assign(t, condition));
      out.push_back(
          if_else(e.kind == ExprKind::logical_and ? t : apply(Builtin::not_, {t}), side(e.args[1])));
    }
    return t;
  }

  std::vector<Expr> inline_call(const Function& f, const Expr& call, std::vector<Stmt>& out) {
    std::vector<Expr> args = lift_all(call.args, out);
    for (const Expr& a : args)
      if (a.type.is_array() && a.kind != ExprKind::variable)
        refuse(a.place, "no gradient: pass an array by its name");
    if (f.replay >= 0 && f.gradient < 0)
      refuse(call.place,
             fmt::format("no gradient: '{}' has a @wp.func_replay, but no @wp.func_grad", f.name));
    if (f.gradient >= 0 && !inside_custom_) return custom_call(f, std::move(args), call.place, out);
    return inline_function(replayed(f), std::move(args), call.place, out);
  }
  const Function& replayed(const Function& f) const {
    return f.replay >= 0 ? module_.functions[static_cast<std::size_t>(f.replay)] : f;
  }
  /// The function and its gradient side by side. Functions that they call are inlined and not differentiated.
  std::vector<Expr> custom_call(const Function& f, std::vector<Expr> args, Place place,
                                std::vector<Stmt>& out) {
    const Function& gradient = module_.functions[static_cast<std::size_t>(f.gradient)];
    for (std::size_t i = 0; i < args.size(); ++i) {
      if (args[i].kind == ExprKind::variable) continue;
      const Expr kept = fresh(f.variables[i].name, args[i].type);
      out.push_back(assign(kept, std::move(args[i])));
      args[i] = kept;
    }
    CustomCall made;
    made.arguments = args;
    inside_custom_ = true;
    for (Expr& value : inline_function(replayed(f), args, place, made.forward)) {
      made.results.push_back(fresh(f.name + "_result", value.type));
      made.forward.push_back(assign(made.results.back(), std::move(value)));
    }
    std::map<int, Expr> known;
    for (std::size_t i = 0; i < gradient.adjoints.size(); ++i) {
      if (gradient.adjoints[i] < 0) continue;
      const Expr adjoint = fresh(f.variables[i].name + "_adjoint", args[i].type);
      known.emplace(gradient.adjoints[i], adjoint);
      made.adjoints.emplace(adjoint.index, i);
      if (adjoint.type.is_array()) adjoint_arrays_.insert(adjoint.index);
    }
    for (const Expr& r : made.results) {
      args.push_back(fresh(f.name + "_seed", r.type));
      made.seeds.push_back(args.back().index);
    }
    inline_function(gradient, std::move(args), place, made.gradient, known);
    inside_custom_ = false;
    Expr call;
    call.kind = ExprKind::call;
    call.index = static_cast<int>(customs_.size());
    out.push_back(evaluate(std::move(call)));
    out.back().targets = made.results;
    out.back().place = place;
    std::vector<Expr> results = made.results;
    customs_.push_back(std::move(made));
    return results;
  }
  /// `known` gives the values of variables of the function, besides its parameters.
  std::vector<Expr> inline_function(const Function& f, std::vector<Expr> args, Place place,
                                    std::vector<Stmt>& out, const std::map<int, Expr>& known = {}) {
    const Structured s = remove_jumps(f);
    for_each_stmt(s.function.body, [&](const Stmt&) { ++written_out_; });
    if (written_out_ > most_written_out)
      refuse(place,
             fmt::format("no gradient: functions are written out where they are called, here more than "
                         "{} statements; call them from a loop, or less often",
                         most_written_out));
    Frame frame = open(s.function);
    for (const auto& [v, is] : known) frame.variables[static_cast<std::size_t>(v)] = is;
    for (std::size_t i = 0; i < args.size(); ++i) {
      const bool changes = frame.assignments[i] > 0;
      Expr parameter = args[i];
      if (changes || !is_atom(parameter)) {
        parameter = fresh(f.variables[i].name, args[i].type);
        out.push_back(assign(parameter, std::move(args[i])));
      }
      frame.variables[i] = std::move(parameter);
    }
    Frame* const outer = frame_;
    frame_ = &frame;
    block(s.function.body, out);
    std::vector<Expr> results;
    for (const int r : s.results) results.push_back(mapped(variable(s.function, r)));
    frame_ = outer;
    return results;
  }

  void block(const std::vector<Stmt>& body, std::vector<Stmt>& out) {
    for (const Stmt& s : body) statement(s, out);
  }
  Expr place(const Expr& e, std::vector<Stmt>& out) {
    if (e.kind == ExprKind::variable) return mapped(e);
    Expr made = e;
    made.args[0] = place(e.args[0], out);
    for (std::size_t i = 1; i < e.args.size(); ++i) made.args[i] = lift(e.args[i], out);
    return made;
  }
  /// Freezes the current values of the indices.
  void keep_indices(Expr& place, std::vector<Stmt>& out) {
    if (place.kind == ExprKind::variable) return;
    keep_indices(place.args[0], out);
    for (std::size_t i = 1; i < place.args.size(); ++i) {
      if (place.args[i].kind == ExprKind::literal) continue;
      const Expr kept = fresh("at", place.args[i].type);
      out.push_back(assign(kept, std::move(place.args[i])));
      place.args[i] = kept;
    }
  }
  void store(Expr target, Expr value, Place where, std::vector<Stmt>& out) {
    if (target.type.is_array()) refuse(where, "no gradient: an array is assigned to a variable");
    out.push_back(assign(std::move(target), std::move(value)));
    out.back().place = where;
  }

  void statement(const Stmt& s, std::vector<Stmt>& out) {
    switch (s.kind) {
      case StmtKind::assign:
        return assignment(s, out);
      case StmtKind::update:
        return updating(s, out);
      case StmtKind::evaluate: {
        const Expr& e = s.values[0];
        if (effect_of(e) != Effect::writes_array) {
          lift(e, out);
          return;
        }
        Expr atomic = e;
        atomic.args = lift_all(e.args, out);
        if (is_own_array(atomic.args[0])) return local_atomic(atomic, s.place, out);
        out.push_back(evaluate(std::move(atomic)));
        out.back().place = s.place;
        return;
      }
      case StmtKind::declare_array: {
        if (s.shared) refuse(s.place, "no gradient: shared arrays are not differentiated");
        Stmt made = s;
        made.targets[0] = mapped(s.targets[0]);
        out.push_back(std::move(made));
        return;
      }
      case StmtKind::if_: {
        Stmt made = s;
        made.body.clear();
        made.orelse.clear();
        made.values[0] = lift(s.values[0], out);
        block(s.body, made.body);
        block(s.orelse, made.orelse);
        out.push_back(std::move(made));
        return;
      }
      case StmtKind::for_: {
        Stmt made = s;
        made.body.clear();
        made.values = lift_all(s.values, out);
        made.targets[0] = mapped(s.targets[0]);
        block(s.body, made.body);
        out.push_back(std::move(made));
        return;
      }
      case StmtKind::while_:
        return while_loop(s, out);
      default:
        return;  // assertions
    }
  }
  /// On a thread-local array it is an assignment.
  void local_atomic(const Expr& e, Place where, std::vector<Stmt>& out) {
    const std::map<Builtin, Builtin> plain = {{Builtin::atomic_add, Builtin::add},
                                              {Builtin::atomic_sub, Builtin::sub},
                                              {Builtin::atomic_min, Builtin::min},
                                              {Builtin::atomic_max, Builtin::max}};
    const auto found = plain.find(e.builtin);
    if (found == plain.end())
      refuse(where, fmt::format("no gradient: wp.{} on an array of the thread", info(e.builtin).name));
    const Expr target = element(e.args[0], {e.args.begin() + 1, e.args.end() - 1});
    Expr old = bind(target, out, "old");
    store(target, apply(found->second, {std::move(old), e.args.back()}), where, out);
  }
  void while_loop(const Stmt& s, std::vector<Stmt>& out) {
    Stmt made = s;
    made.body.clear();
    if (!needs_statement(s.values[0])) {
      made.values[0] = lift(s.values[0], out);
      block(s.body, made.body);
    } else {  // the condition before the loop and again at the end of each round
      const Expr again = fresh("again", bool_type);
      made.values[0] = again;
      out.push_back(assign(again, lift(s.values[0], out)));
      block(s.body, made.body);
      Expr next = lift(s.values[0], made.body);
      made.body.push_back(assign(again, std::move(next)));
    }
    out.push_back(std::move(made));
  }
  void assignment(const Stmt& s, std::vector<Stmt>& out) {
    if (s.targets.size() == 1) {
      const Expr& v = s.values[0];
      const Expr& t = s.targets[0];
      const bool once = t.kind == ExprKind::variable && t.index >= frame_->function->parameters &&
                        frame_->assignments[static_cast<std::size_t>(t.index)] == 1;
      if (once && is_changing(v)) {  // its own statement already
        Expr load = v;
        load.args = lift_all(v.args, out);
        return store(mapped(t), std::move(load), s.place, out);
      }
      Expr value = lift(v, out);
      Expr target = place(t, out);
      return store(std::move(target), std::move(value), s.place, out);
    }
    std::vector<Expr> values;
    if (s.values.size() == s.targets.size()) {
      for (const Expr& v : s.values) {
        Expr lifted = lift(v, out);
        values.push_back(fresh("t", lifted.type));
        store(values.back(), std::move(lifted), s.place, out);
      }
    } else if (s.values[0].kind == ExprKind::call) {
      values = inline_call(module_.functions[static_cast<std::size_t>(s.values[0].index)], s.values[0], out);
    } else {  // tid
      Stmt made = s;
      for (Expr& t : made.targets) t = place(t, out);
      out.push_back(std::move(made));
      return;
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      store(place(s.targets[i], out), std::move(values[i]), s.place, out);
  }
  void updating(const Stmt& s, std::vector<Stmt>& out) {
    Expr target = place(s.targets[0], out);
    if (draws(s.values[0])) keep_indices(target, out);
    Expr value = lift(s.values[0], out);
    const bool sum = s.builtin == Builtin::add || s.builtin == Builtin::sub;
    const bool shared = in_array(target) && !is_own_array(root_of(target));
    if (shared && (sum || !is_float(target.type.scalar))) {
      out.push_back(update(s.builtin, std::move(target), std::move(value)));
      out.back().place = s.place;
      return;
    }
    Expr old = target;
    if (in_array(target)) old = bind(std::move(old), out, "old");
    store(target, apply(s.builtin, {std::move(old), std::move(value)}), s.place, out);
  }

  const Module& module_;
  Names names_;
  Function out_;
  std::size_t written_out_ = 0;  // statements of functions
  std::vector<Type> written_;    // types of elements that are written somewhere
  std::map<int, Unrepeatable> unrepeatable_;
  std::vector<CustomCall> customs_;
  std::set<int> adjoint_arrays_;  // in gradients: wp.adjoint[array]
  bool inside_custom_ = false;
  Frame* frame_ = nullptr;
};

}  // namespace

Lowered lower(const Module& module, const Function& kernel) {
  Lowered lowered = Lowering(module, kernel).run(kernel);
  find_stale_reads(lowered);
  return lowered;
}

}  // namespace ferrite::kernel
