// From IR to tile programs. Values that are used once are computed where they are used; all others become
// variables. Stores come last, so that results may go where operands came from.
#include <algorithm>
#include <optional>

#include "kernel/tile_code.hpp"

namespace ferrite::kernel {

namespace {

struct Refused {
  std::string reason;
};

class TileCompiler {
 public:
  /// With `extremes`, the code has them.
  TileCompiler(const Function& kernel, TileCode& code, bool extremes)
      : kernel_(kernel), code_(code), extremes_(extremes) {}

  void compile() {
    const auto count = kernel_.variables.size();
    uses_.resize(count);
    assignments_.resize(count);
    definitions_.resize(count);
    places_.resize(count);
    depths_.resize(count);
    for_each_expr(kernel_.body, [&](const Expr& e) {
      if (e.kind == ExprKind::variable) ++uses_[at(e.index)];
      if (const auto choice = choice_of(e)) --uses_[at(choice->variable->index)];  // two, of one instruction
    });
    for_each_stmt(kernel_.body, [&](const Stmt& s) {
      for (const Expr& t : s.targets)
        if (t.kind == ExprKind::variable) ++assignments_[at(t.index)], --uses_[at(t.index)];
    });
    for (int p = 0; p < kernel_.parameters; ++p)
      if (assignments_[at(p)] > 0) throw Refused{"a parameter that is assigned"};
    std::size_t next = 0;
    if (kernel_.body.empty() || !reads_thread(kernel_.body[0])) throw Refused{"no thread index"};
    for (const Expr& t : kernel_.body[next++].targets) thread_.push_back(t.index);
    code_.rank = static_cast<int>(thread_.size());

    std::vector<const Stmt*> before, after;
    const Stmt* loop = nullptr;
    for (; next < kernel_.body.size(); ++next) {
      const Stmt& s = kernel_.body[next];
      if (s.kind == StmtKind::for_) {
        if (loop != nullptr) throw Refused{"two loops"};
        loop = &s;
      } else {
        (loop == nullptr ? before : after).push_back(&s);
      }
    }
    if (loop == nullptr) {
      segment(before, code_.body);
    } else {
      segment(before, code_.before);
      if (stored_) throw Refused{"a loop behind a store"};
      open_loop(*loop);
      std::vector<const Stmt*> body;
      for (const Stmt& s : loop->body) body.push_back(&s);
      const auto outside = definitions_;
      segment(body, code_.body);
      definitions_ = outside;
      counter_ = -1;
      segment(after, code_.after);
    }
    for (const auto& a : code_.arrays)
      for (const auto& b : code_.arrays)
        if (a.stored && (a.fixed != 0 || (&a != &b && a.parameter == b.parameter)))
          throw Refused{"an array at two places"};
    move_places();
  }

 private:
  struct Operand {
    TileOperand kind;
    int index;
  };
  struct Delayed {
    int variable_place, array_place;
    ScalarType type;
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// where(x < y, x, c) and its like: a comparison of a variable that is one of the choices too.
  struct Choice {
    TileChoice form;
    const Expr *variable, *compared, *other;
  };
  std::optional<Choice> choice_of(const Expr& e) const {
    if (e.kind != ExprKind::apply || e.builtin != Builtin::where || e.args[0].kind != ExprKind::apply)
      return {};
    const Expr& test = e.args[0];
    if (test.args.size() != 2 || test.args[0].type.scalar != ScalarType::f32 || test.args[0] == test.args[1])
      return {};
    for (const std::size_t side : {0, 1})
      for (const std::size_t arm : {1, 2})
        if (test.args[side].kind == ExprKind::variable && test.args[side].index >= kernel_.parameters &&
            test.args[side] == e.args[arm] && !(e.args[3 - arm] == e.args[arm]))
          return Choice{
              {test.builtin, side == 1, arm == 1}, &test.args[side], &test.args[1 - side], &e.args[3 - arm]};
    return {};
  }

  template <class Test>
  static bool contains(const Expr& e, const Test& test) {
    return test(e) ||
           std::any_of(e.args.begin(), e.args.end(), [&](const Expr& x) { return contains(x, test); });
  }

  /// How many definitions stand in each other: value() recurs through them.
  int depth(const Expr& e) const {
    int deepest = 0;
    for (const Expr& x : e.args) deepest = std::max(deepest, depth(x));
    if (e.kind == ExprKind::variable && definitions_[at(e.index)]) deepest = depths_[at(e.index)] + 1;
    return deepest;
  }

  static bool reads_thread(const Stmt& s) {
    return s.kind == StmtKind::assign && s.values[0].kind == ExprKind::apply &&
           s.values[0].builtin == Builtin::tid;
  }

  void open_loop(const Stmt& s) {
    const Expr &first = s.values[0], &extent = s.values[1], &step = s.values[2];
    for (std::size_t axis = 0; axis < thread_.size(); ++axis)
      if (first.kind == ExprKind::variable && first.index == thread_[axis])
        code_.axis = static_cast<int>(axis);
    const auto is_parameter = [&](const Expr& e) {
      return e.kind == ExprKind::variable && e.index < kernel_.parameters;
    };
    if (code_.axis < 0 || !is_parameter(extent) || !is_parameter(step))
      throw Refused{"a loop that walks no axis"};
    code_.extent_parameter = extent.index;
    code_.step_parameter = step.index;
    counter_ = s.targets[0].index;
  }

  void segment(const std::vector<const Stmt*>& statements, TileCode::Segment& out) {
    out_ = &out;
    held_ = -1;
    std::vector<Delayed> delayed;
    for (std::size_t i = 0; i < statements.size(); ++i) {
      const Stmt& s = *statements[i];
      if (s.kind != StmtKind::assign || s.targets.size() != 1) throw Refused{"more than assignments"};
      const Expr &target = s.targets[0], &given = s.values[0];
      // Stores wait until the end of the segment, so what is read behind them would be old.
      if (stored_ && contains(given, [](const Expr& e) { return e.kind == ExprKind::element; }))
        throw Refused{"a read behind a store"};
      if (target.kind == ExprKind::variable) {
        const std::size_t v = at(target.index);
        const bool in_memory = given.kind == ExprKind::element && given.type.scalar == ScalarType::f32;
        // Computed later, it must still be the same.
        const bool stable = !contains(given, [&](const Expr& e) {
          return e.kind == ExprKind::variable && e.index >= kernel_.parameters &&
                 assignments_[at(e.index)] != 1;
        });
        if (assignments_[v] == 1 && stable && (uses_[v] == 1 || in_memory) &&
            (depths_[v] = depth(given)) < 64) {
          definitions_[v] = &given;  // computed, or read, where it is used
          continue;
        }
        value(given);
        emit(tile_store(ScalarType::f32, place_of(target.index)));
        held_ = target.index;
        continue;
      }
      if (target.kind != ExprKind::element) throw Refused{"an assignment to a part"};
      const int array = array_place(target);
      code_.arrays[at(array)].stored = stored_ = true;
      value(given);
      if (i + 1 == statements.size() && delayed.empty()) {
        emit(tile_store(target.type.scalar, operand_of(array)));
      } else {
        delayed.push_back({fresh_place(), array, target.type.scalar});
        emit(tile_store(ScalarType::f32, delayed.back().variable_place));
      }
    }
    for (const Delayed& d : delayed) {
      emit(tile_load(ScalarType::f32, d.variable_place));
      emit(tile_store(d.type, operand_of(d.array_place)));
    }
    emit(tile_end());
  }

  void emit(TileInstruction i) {
    held_ = -1;
    const TileInstruction both = out_->empty() ? TileInstruction{} : tile_pair(out_->back(), i);
    if (both.run != nullptr)
      out_->back() = both;
    else
      out_->push_back(i);
  }
  /// Where places lie in the frame is known when all scalars and arrays are. Until then those of arrays are
  /// array_base and so on, those of variables, which come behind them, -1, -2, ...
  static constexpr int array_base = 1 << 24;
  static int operand_of(int array) { return array_base + array; }
  int fresh_place() { return -++code_.variables; }
  int place_of(int variable) {
    int& place = places_[at(variable)];
    if (place == 0) place = fresh_place();
    return place;
  }
  void move_places() {
    const auto moved = [&](int operand) {
      if (operand >= array_base) return code_.place_offset(at(operand - array_base));
      return operand < 0 ? code_.place_offset(code_.arrays.size() - 1 - static_cast<std::size_t>(operand))
                         : operand;
    };
    for (TileCode::Segment* part : {&code_.before, &code_.body, &code_.after})
      for (TileInstruction& i : *part)
        for (int& operand : i.operands) operand = moved(operand);
  }

  int array_place(const Expr& e) {
    const Expr& array = e.args[0];
    const ScalarType type = e.type.scalar;
    if (array.kind != ExprKind::variable || array.index >= kernel_.parameters || !e.type.is_scalar() ||
        (type != ScalarType::f32 && type != ScalarType::bf16))
      throw Refused{"arrays of other types than float and bfloat16"};
    bool in_loop = false;
    std::uint8_t fixed = 0;
    if (e.args.size() != thread_.size() + 1) throw Refused{"an array with other axes than the grid"};
    for (std::size_t axis = 0; axis < thread_.size(); ++axis) {
      const Expr& index = e.args[axis + 1];
      const bool counted = index.kind == ExprKind::variable && index.index == counter_ && counter_ >= 0 &&
                           static_cast<int>(axis) == code_.axis;
      const bool own = index.kind == ExprKind::variable && index.index == thread_[axis];
      const bool first = index.kind == ExprKind::literal && index.number.integer == 0;
      if (!own && !counted && !first) throw Refused{"an index that is not the thread's"};
      in_loop |= counted;
      if (first) fixed |= static_cast<std::uint8_t>(1 << axis);
    }
    for (std::size_t i = 0; i < code_.arrays.size(); ++i)
      if (code_.arrays[i].parameter == array.index && code_.arrays[i].in_loop == in_loop &&
          code_.arrays[i].fixed == fixed)
        return static_cast<int>(i);
    code_.arrays.push_back({array.index, type, in_loop, fixed});
    return static_cast<int>(code_.arrays.size()) - 1;
  }

  int scalar(const TileCode::ScalarPlace& s) {
    code_.scalars.push_back(s);
    return TileCode::scalar_offset(code_.scalars.size() - 1);
  }

  /// The operand as it lies in memory, if it needs no computation.
  std::optional<Operand> simple(const Expr& e) {
    if (e.kind == ExprKind::literal) {
      if (e.type.is_bool())
        return Operand{TileOperand::scalar, scalar({-1, 0, e.number.integer != 0 ? -1 : 0, true})};
      if (e.type.scalar != ScalarType::f32) throw Refused{"values of other types"};
      return Operand{TileOperand::scalar, scalar({-1, static_cast<float>(e.number.real), 0, false})};
    }
    if (e.kind == ExprKind::element && e.type.scalar == ScalarType::f32)
      return Operand{TileOperand::place, operand_of(array_place(e))};
    if (e.kind == ExprKind::cast && e.type.scalar == ScalarType::f32 &&
        e.args[0].type.scalar == ScalarType::bf16)
      return simple(e.args[0]);  // kept as f32
    if (e.kind != ExprKind::variable) return std::nullopt;
    if (e.index < kernel_.parameters) {
      if (e.type.scalar != ScalarType::f32) throw Refused{"scalars of other types"};
      return Operand{TileOperand::scalar, scalar({e.index, 0, 0, false})};
    }
    if (const Expr* definition = definitions_[at(e.index)]) return simple(*definition);
    if (places_[at(e.index)] == 0) throw Refused{"a variable without a value"};
    return Operand{TileOperand::place, place_of(e.index)};
  }
  /// The same for any operand: computed, and kept in a variable.
  Operand kept(const Expr& e) {
    if (const auto found = simple(e)) return *found;
    value(e);
    const int place = fresh_place();
    emit(tile_store(ScalarType::f32, place));
    return {TileOperand::place, place};
  }

  /// Leaves the value in the tile.
  void value(const Expr& e) {
    const bool known =
        e.type.is_bool() || e.type.scalar == ScalarType::f32 || e.type.scalar == ScalarType::bf16;
    if (!e.type.is_scalar() || !known) throw Refused{"values of other types than float, bfloat16 and bool"};
    if (e.kind == ExprKind::variable && e.index == held_) return;
    if (e.kind == ExprKind::element) return emit(tile_load(e.type.scalar, operand_of(array_place(e))));
    if (e.kind == ExprKind::variable && e.index >= kernel_.parameters && definitions_[at(e.index)])
      return value(*definitions_[at(e.index)]);
    if (const auto found = simple(e))
      return emit(found->kind == TileOperand::scalar ? tile_scalar(found->index)
                                                     : tile_load(ScalarType::f32, found->index));
    if (e.kind == ExprKind::cast) return cast(e);
    if (e.kind != ExprKind::apply) throw Refused{"an expression"};
    if (const auto choice = choice_of(e)) {
      if (extremes_ && extreme(*choice)) return;
      const Operand compared = kept(*choice->compared), other = kept(*choice->other);
      value(*choice->variable);
      return checked(tile_choose(choice->form, compared.kind, compared.index, other.kind, other.index),
                     e.builtin);
    }
    if (e.builtin == Builtin::where) {
      const Operand a = kept(e.args[1]), b = kept(e.args[2]);
      value(e.args[0]);
      return emit(tile_select(a.kind, a.index, b.kind, b.index));
    }
    if (e.args.size() == 1) {
      if (e.type.scalar == ScalarType::bf16) throw Refused{"functions of 16 bits"};
      value(e.args[0]);
      return checked(tile_unary(e.builtin), e.builtin);
    }
    if (e.args.size() != 2 || e.args[0].type.scalar != ScalarType::f32)
      throw Refused{"operands of other types"};
    if (!simple(e.args[1]) && simple(e.args[0])) {
      value(e.args[1]);
      const Operand a = *simple(e.args[0]);
      return checked(tile_binary(e.builtin, a.kind, a.index, true), e.builtin);
    }
    const Operand b = kept(e.args[1]);
    value(e.args[0]);
    checked(tile_binary(e.builtin, b.kind, b.index, false), e.builtin);
  }
  /// Takes a choice between the tile and the scalar that it is compared with as an extreme, if it is one.
  bool extreme(const Choice& choice) {
    const Expr& scalar = *choice.compared;
    const bool literal = scalar.kind == ExprKind::literal;
    const bool parameter = scalar.kind == ExprKind::variable && scalar.index < kernel_.parameters;
    const bool max = !choice.form.tile_is_right;
    if (choice.form.compare != Builtin::le || choice.form.tile_if_true || !(scalar == *choice.other) ||
        !(literal ? is_extreme(max, static_cast<float>(scalar.number.real)) : parameter))
      return false;
    if (parameter) code_.extremes.push_back({scalar.index, max});
    value(*choice.variable);
    emit(tile_extreme(max, simple(scalar)->index));
    return true;
  }
  void cast(const Expr& e) {
    const ScalarType from = e.args[0].type.scalar, to = e.type.scalar;
    value(e.args[0]);
    if (from == ScalarType::f32 && to == ScalarType::bf16) return emit(tile_round());
    if (!(from == ScalarType::bf16 && to == ScalarType::f32)) throw Refused{"a cast"};
  }
  void checked(TileInstruction i, Builtin builtin) {
    if (i.run == nullptr) throw Refused{"no instruction for " + std::string(info(builtin).name)};
    emit(i);
  }

  const Function& kernel_;
  TileCode& code_;
  bool extremes_;
  TileCode::Segment* out_ = nullptr;
  std::vector<int> thread_;  // variables with its indices
  int counter_ = -1;         // the variable of the loop that is open
  int held_ = -1;            // the variable whose value the tile has
  bool stored_ = false;      // whether a statement before this one stores something
  std::vector<int> uses_, assignments_, places_, depths_;
  std::vector<const Expr*> definitions_;
};

}  // namespace

TileProgram::TileProgram(const Module&, const Function& kernel) : code_(std::make_unique<TileCode>()) {
  try {
    TileCompiler(kernel, *code_, true).compile();
    if (code_->extremes.empty()) return;
    plain_ = std::make_unique<TileCode>();
    TileCompiler(kernel, *plain_, false).compile();
  } catch (const Refused& r) {
    code_->obstacle = r.reason;
  }
}

}  // namespace ferrite::kernel
