// Bounds of integer expressions.
#include "kernel/ir/index_range.hpp"

#include <algorithm>
#include <limits>

namespace ferrite::kernel {

namespace {

using Bound = std::optional<std::int64_t>;

std::int64_t largest_of_type(ScalarType type) {
  if (type == ScalarType::bool_) return 1;
  const int bits = bits_of(type) - (is_unsigned(type) ? 0 : 1);
  return bits >= 63 ? std::numeric_limits<std::int64_t>::max() : (std::int64_t{1} << bits) - 1;
}

/// A grid has at most 2^31 - 1 threads (kernel/interpret/machine.hpp).
constexpr std::int64_t last_thread = (std::int64_t{1} << 31) - 2, longest_axis = (std::int64_t{1} << 31) - 1;

Bound fitting(Bound bound, ScalarType type) {
  return bound && *bound <= largest_of_type(type) ? bound : std::nullopt;
}

}  // namespace

IndexRange::IndexRange(const Function& function) : variables_(function.variables.size()) {
  const auto known = [&](const Expr& variable) -> Known& {
    return variables_[static_cast<std::size_t>(variable.index)];
  };
  for (int p = 0; p < function.parameters; ++p) variables_[static_cast<std::size_t>(p)].open = true;
  for_each_stmt(function.body, [&](const Stmt& s) {
    for (std::size_t i = 0; i < s.targets.size(); ++i) {
      if (s.targets[i].kind != ExprKind::variable) continue;
      Known& target = known(s.targets[i]);
      if (s.kind == StmtKind::for_)
        target.loops.push_back(&s);
      else if (s.kind == StmtKind::assign && s.values.size() == s.targets.size())
        target.values.push_back(&s.values[i]);
      else if (s.kind == StmtKind::assign && s.values[0].kind == ExprKind::apply)
        target.thread_index = true;
      else
        target.open = true;
    }
  });
}

bool IndexRange::may_be_negative(const Expr* first, std::size_t count) const {
  return !std::all_of(first, first + count, [&](const Expr& index) { return is_never_negative(index); });
}

Bound IndexRange::largest_of(int variable) const {
  Known& v = variables_[static_cast<std::size_t>(variable)];
  if (v.state == Known::State::searching || v.open) return std::nullopt;
  if (v.state == Known::State::found) return v.largest;
  v.state = Known::State::searching;
  Bound all = v.thread_index ? last_thread : 0;  // a variable that was never assigned is zero
  const auto include = [&](Bound one) { all = all && one ? Bound(std::max(*all, *one)) : std::nullopt; };
  for (const Expr* value : v.values) include(largest(*value));
  for (const Stmt* loop : v.loops) include(largest_in(*loop));
  v.state = Known::State::found;
  v.largest = all;
  return all;
}

Bound IndexRange::largest_in(const Stmt& loop) const {
  const Expr &start = loop.values[0], &stop = loop.values[1], &step = loop.values[2];
  if (step.kind != ExprKind::literal || start.type.scalar == ScalarType::u64) return std::nullopt;
  const Bound from = largest(start);
  const std::int64_t most = largest_of_type(start.type.scalar);
  if (step.number.integer > 0) {
    if (!from) return std::nullopt;
    const Bound end = largest(stop);
    return std::max(*from, end ? *end - 1 : most - 1);
  }
  const bool ends_at_zero = stop.kind == ExprKind::literal && stop.number.integer >= -1;
  if (!ends_at_zero && !largest(stop)) return std::nullopt;
  return from.value_or(most);
}

Bound IndexRange::largest(const Expr& e) const {
  if (!e.type.is_scalar() || is_float(e.type.scalar)) return std::nullopt;
  const ScalarType type = e.type.scalar;
  const auto arg = [&](std::size_t i) { return largest(e.args[i]); };
  const auto both = [&](std::size_t i, std::size_t j) -> Bound {
    const Bound a = arg(i), b = arg(j);
    return a && b ? Bound(std::max(*a, *b)) : std::nullopt;
  };
  Bound found;
  std::int64_t combined = 0;
  switch (e.kind) {
    case ExprKind::literal:
      if (e.number.integer >= 0) found = e.number.integer;
      break;
    case ExprKind::variable:
      found = largest_of(e.index);
      break;
    case ExprKind::cast:
      found = arg(0);
      break;
    case ExprKind::conditional:
      found = both(1, 2);
      break;
    case ExprKind::apply:
      switch (e.builtin) {
        case Builtin::tid:
          found = last_thread;
          break;
        case Builtin::block_dim:
        case Builtin::len:
        case Builtin::shape:
          found = longest_axis;
          break;
        case Builtin::add:
        case Builtin::mul: {
          const Bound a = arg(0), b = arg(1);
          if (a && b &&
              !(e.builtin == Builtin::add ? __builtin_add_overflow(*a, *b, &combined)
                                          : __builtin_mul_overflow(*a, *b, &combined)))
            found = combined;
          break;
        }
        case Builtin::div:
        case Builtin::floordiv:
          if (arg(1)) found = arg(0);
          break;
        case Builtin::mod:  // has the sign of the dividend
        case Builtin::rshift:
          found = arg(0);
          break;
        case Builtin::min:
        case Builtin::where:
          found = e.builtin == Builtin::min ? both(0, 1) : both(1, 2);
          break;
        case Builtin::max:
          if (arg(0) || arg(1)) found = both(0, 1).value_or(largest_of_type(type));
          break;
        case Builtin::bit_and: {
          const Bound a = arg(0), b = arg(1);
          if (a || b) found = std::min(a.value_or(*(a ? a : b)), b.value_or(*(a ? a : b)));
          break;
        }
        default:
          break;
      }
      break;
    default:
      break;
  }
  found = fitting(found, type);
  if (!found && is_unsigned(type) && type != ScalarType::u64) return largest_of_type(type);
  return found;
}

}  // namespace ferrite::kernel
