// Expressions of tile programs.
#include "kernel/cpu/tile/compiler.hpp"

namespace ferrite::kernel {

std::optional<TileCompiler::Choice> TileCompiler::choice_of(const Expr& e) const {
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

int TileCompiler::depth(const Expr& e) const {
  int deepest = 0;
  for (const Expr& x : e.args) deepest = std::max(deepest, depth(x));
  if (e.kind == ExprKind::variable && definitions_[at(e.index)]) deepest = depths_[at(e.index)] + 1;
  return deepest;
}

int TileCompiler::array_place(const Expr& e) {
  const Expr& array = e.args[0];
  const ScalarType type = e.type.scalar;
  if (array.kind != ExprKind::variable || array.index >= kernel_.parameters || !e.type.is_scalar() ||
      (type != ScalarType::f32 && type != ScalarType::bf16))
    throw Refused{"arrays of other types than float and bfloat16"};
  std::uint8_t fixed = 0;
  if (e.args.size() != thread_.size() + 1) throw Refused{"an array with other axes than the grid"};
  for (std::size_t axis = 0; axis < thread_.size(); ++axis) {
    const Expr& index = e.args[axis + 1];
    const bool own = index.kind == ExprKind::variable && index.index == thread_[axis];
    const bool first = index.kind == ExprKind::literal && index.number.integer == 0;
    if (!own && !first) throw Refused{"an index that is not the thread's"};
    if (first) fixed |= static_cast<std::uint8_t>(1 << axis);
  }
  for (std::size_t i = 0; i < code_.arrays.size(); ++i)
    if (code_.arrays[i].parameter == array.index && code_.arrays[i].fixed == fixed)
      return static_cast<int>(i);
  code_.arrays.push_back({array.index, type, fixed});
  return static_cast<int>(code_.arrays.size()) - 1;
}

std::optional<TileCompiler::Operand> TileCompiler::simple(const Expr& e) {
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

TileCompiler::Operand TileCompiler::kept(const Expr& e) {
  if (const auto found = simple(e)) return *found;
  value(e);
  const int place = fresh_place();
  emit(tile_store(ScalarType::f32, place));
  return {TileOperand::place, place};
}

void TileCompiler::value(const Expr& e) {
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

bool TileCompiler::extreme(const Choice& choice) {
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

void TileCompiler::cast(const Expr& e) {
  const ScalarType from = e.args[0].type.scalar, to = e.type.scalar;
  value(e.args[0]);
  if (from == ScalarType::f32 && to == ScalarType::bf16) return emit(tile_round());
  if (!(from == ScalarType::bf16 && to == ScalarType::f32)) throw Refused{"a cast"};
}

void TileCompiler::checked(TileInstruction i, Builtin builtin) {
  if (i.run == nullptr) throw Refused{"no instruction for " + std::string(info(builtin).name)};
  emit(i);
}

}  // namespace ferrite::kernel
