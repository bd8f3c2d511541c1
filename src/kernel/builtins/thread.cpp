// Threads, arrays, choices and assertions. The interpreter runs threads one after the other, so its atomics
// are plain reads and writes.
#include <fmt/format.h>

#include "kernel/builtins/rules.hpp"

namespace ferrite::kernel {

namespace {

constexpr std::string_view group = "Threads and arrays";
constexpr Effect none = Effect::none;

Result index(Types t) { return t.empty() ? Result(int_type) : std::nullopt; }
Result nothing(Types t) { return t.empty() ? Result(Type::none()) : std::nullopt; }
Result lengths(Types t) {
  return t.size() == 1 && (t[0].is_array() || t[0].is_vector() || t[0].is_matrix()) ? Result(int_type)
                                                                                    : std::nullopt;
}
Result shapes(Types t) {
  return t.size() == 2 && t[0].is_array() && t[1].is_int() ? Result(int_type) : std::nullopt;
}
Result choices(Types t) {
  return t.size() == 3 && t[0].is_bool() && t[1] == t[2] && (t[1].is_scalar() || t[1].is_composite())
             ? Result(t[1])
             : std::nullopt;
}
Result checks(Types t) {
  return t.size() == 2 && t[0] == t[1] && (t[0].is_scalar() || t[0].is_composite()) ? Result(Type::none())
                                                                                    : std::nullopt;
}
Result near_checks(Types t) {
  const bool fits = (t.size() == 2 || t.size() == 3) && t[0] == t[1] &&
                    (t[0].is_float() || is_real_composite(t[0])) &&
                    (t.size() == 2 || t[2] == Type::of(t[0].scalar));
  return fits ? Result(Type::none()) : std::nullopt;
}

/// (array, one index per axis, `values` values of the element type) -> the element type
Result atomics(Types t, std::size_t values, bool fits) {
  if (t.empty() || !t[0].is_array() || t.size() != 1u + t[0].dims + values || !fits) return std::nullopt;
  for (int axis = 1; axis <= t[0].dims; ++axis)
    if (!t[static_cast<std::size_t>(axis)].is_int()) return std::nullopt;
  for (std::size_t v = t.size() - values; v < t.size(); ++v)
    if (t[v] != t[0].element()) return std::nullopt;
  return t[0].element();
}
bool element_is(Types t, bool composites, bool floats) {
  if (t.empty()) return false;
  const Type e = t[0].element();
  return (composites ? e.is_composite() || is_number(e) : e.is_scalar() && e.scalar != ScalarType::bool_) &&
         (floats || is_integer(e.scalar));
}
Result adds(Types t) { return atomics(t, 1, element_is(t, true, true)); }
Result exchanges(Types t) { return atomics(t, 1, element_is(t, false, true)); }
Result swaps(Types t) { return atomics(t, 2, element_is(t, false, true)); }
Result bits(Types t) { return atomics(t, 1, element_is(t, false, false)); }

void tid(BuiltinCall& c) {
  if (!c.type.is(Type::Kind::tuple)) {
    c.out[0].integer = wrap_to(ScalarType::i32, static_cast<std::uint64_t>(c.machine.thread_index(-1)));
    return;
  }
  for (int axis = 0; axis < c.type.rows; ++axis) c.out[axis].integer = c.machine.thread_index(axis);
}
void block_dim(BuiltinCall& c) { c.out[0].integer = c.machine.block_dim(); }
void sync_threads(BuiltinCall&) {}  // the interpreter does it
void len(BuiltinCall& c) {
  const Type t = c.type_of(0);
  c.out[0].integer = t.is_array() ? c.machine.extent(c.values[0][0], 0) : t.rows;
}
void shape(BuiltinCall& c) {
  const std::int64_t axis = c.integer(1);
  if (axis < 0 || axis >= c.type_of(0).dims)
    c.machine.fail(fmt::format("shape[{}] of an array of {} axes", axis, c.type_of(0).dims));
  c.out[0].integer = c.machine.extent(c.values[0][0], static_cast<int>(axis));
}
void where(BuiltinCall& c) {
  const Number* chosen = c.values[c.integer(0) != 0 ? 1 : 2];
  for (int i = 0; i < c.type.components(); ++i) c.out[i] = chosen[i];
}

/// The element of an atomic, and the place of its value among the arguments.
Number* target(BuiltinCall& c, int& value) {
  std::int64_t at[4];
  const int dims = c.type_of(0).dims;
  for (int axis = 0; axis < dims; ++axis) at[axis] = c.integer(1 + axis);
  value = 1 + dims;
  return c.machine.locate(c.values[0][0], {at, static_cast<std::size_t>(dims)});
}
/// element = builtin(element, value), by the rows of the table; returns the old element.
template <Builtin builtin>
void combine(BuiltinCall& c) {
  int value = 0;
  Number* element = target(c, value);
  const Type t = c.type;
  for (int i = 0; i < t.components(); ++i) c.out[i] = element[i];
  const Type operands[2] = {t, t};
  Number* const values[2] = {c.out, c.values[value]};
  BuiltinCall call{c.machine, c.precision, t, operands, values, element};
  info(builtin).evaluate(call);
}
void exchange(BuiltinCall& c) {
  int value = 0;
  Number* element = target(c, value);
  c.out[0] = element[0];
  element[0] = c.values[value][0];
}
void compare_and_swap(BuiltinCall& c) {
  int value = 0;
  Number* element = target(c, value);
  const Number old = element[0], expected = c.values[value][0];
  const bool equal = is_float(c.type.scalar) ? old.real == expected.real : old.integer == expected.integer;
  c.out[0] = old;
  if (equal) element[0] = c.values[value + 1][0];
}
std::string shown(Type t, const Number* x) {
  std::string text;
  for (int i = 0; i < t.components(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ",
                        is_float(t.scalar) ? fmt::format("{}", x[i].real) : fmt::format("{}", x[i].integer));
  return t.is_scalar() ? text : "(" + text + ")";
}
void expect_eq(BuiltinCall& c) {
  const Type t = c.type_of(0);
  for (int i = 0; i < t.components(); ++i) {
    const bool equal = is_float(t.scalar) ? c.real(0, i) == c.real(1, i) : c.integer(0, i) == c.integer(1, i);
    if (!equal)
      c.machine.fail(fmt::format("expected {}, got {}", shown(t, c.values[1]), shown(t, c.values[0])));
  }
}
void expect_near(BuiltinCall& c) {
  const Type t = c.type_of(0);
  const double tolerance = c.count() == 3 ? c.real(2) : 1e-6;
  for (int i = 0; i < t.components(); ++i)
    if (!(std::fabs(c.real(0, i) - c.real(1, i)) <= tolerance))
      c.machine.fail(fmt::format("expected {} within {}, got {}", shown(t, c.values[1]), tolerance,
                                 shown(t, c.values[0])));
}

template <Builtin builtin>
constexpr BuiltinInfo atomic(Builtin id, std::string_view name, std::string_view signature,
                             std::string_view doc, ResultRule rule) {
  return {id, name, "", group, signature, doc, Effect::writes_array, rule, combine<builtin>};
}

constexpr BuiltinInfo rows[] = {
    {Builtin::tid, "tid", "", group, "tid() -> int",
     "The thread's indices in the grid: i, j = wp.tid(), up to four. "
     "Alone, the number of the thread.",
     none, index, tid},
    {Builtin::block_dim, "block_dim", "", group, "block_dim() -> int", "Threads of a block.", none, index,
     block_dim},
    {Builtin::sync_threads, "sync_threads", "", group, "sync_threads()",
     "Waits for all threads of the block. ferrite only.", Effect::synchronises, nothing, sync_threads},
    {Builtin::len, "len", "", group, "len(a: Any) -> int",
     "First extent of an array, length of a vector, rows of a matrix.", none, lengths, len},
    {Builtin::shape, "shape", "", group, "shape(a: Array, axis: Int) -> int",
     "Written a.shape[axis]: an extent of an array.", none, shapes, shape},
    {Builtin::where, "where", "", group, "where(cond: Bool, value_if_true: Any, value_if_false: Any) -> Any",
     "One of two values; both are evaluated.", none, choices, where},
    atomic<Builtin::add>(
        Builtin::atomic_add, "atomic_add", "atomic_add(arr: Array, i: Int, ..., value: Any) -> Any",
        "arr[i, ...] += value at once; gives the element as it was. So do all atomics.", adds),
    atomic<Builtin::sub>(Builtin::atomic_sub, "atomic_sub",
                         "atomic_sub(arr: Array, i: Int, ..., value: Any) -> Any", "arr[i, ...] -= value.",
                         adds),
    atomic<Builtin::min>(Builtin::atomic_min, "atomic_min",
                         "atomic_min(arr: Array, i: Int, ..., value: Scalar) -> Scalar",
                         "The smaller of element and value.", exchanges),
    atomic<Builtin::max>(Builtin::atomic_max, "atomic_max",
                         "atomic_max(arr: Array, i: Int, ..., value: Scalar) -> Scalar",
                         "The larger of element and value.", exchanges),
    {Builtin::atomic_exch, "atomic_exch", "", group,
     "atomic_exch(arr: Array, i: Int, ..., value: Scalar) -> Scalar", "arr[i, ...] = value.",
     Effect::writes_array, exchanges, exchange},
    {Builtin::atomic_cas, "atomic_cas", "", group,
     "atomic_cas(arr: Array, i: Int, ..., compare: Scalar, value: Scalar) -> Scalar",
     "arr[i, ...] = value if the element equals compare.", Effect::writes_array, swaps, compare_and_swap},
    atomic<Builtin::bit_and>(Builtin::atomic_and, "atomic_and",
                             "atomic_and(arr: Array, i: Int, ..., value: Int) -> Int",
                             "arr[i, ...] &= value.", bits),
    atomic<Builtin::bit_or>(Builtin::atomic_or, "atomic_or",
                            "atomic_or(arr: Array, i: Int, ..., value: Int) -> Int", "arr[i, ...] |= value.",
                            bits),
    atomic<Builtin::bit_xor>(Builtin::atomic_xor, "atomic_xor",
                             "atomic_xor(arr: Array, i: Int, ..., value: Int) -> Int",
                             "arr[i, ...] ^= value.", bits),
    {Builtin::expect_eq, "expect_eq", "", group, "expect_eq(a: Any, b: Any)", "An error unless a equals b.",
     Effect::asserts, checks, expect_eq},
    {Builtin::expect_near, "expect_near", "", group, "expect_near(a: Any, b: Any, tolerance: Float)",
     "An error unless |a - b| <= tolerance (1e-6 if not given), component by component.", Effect::asserts,
     near_checks, expect_near},
};

}  // namespace

std::span<const BuiltinInfo> thread_builtins() { return rows; }

}  // namespace ferrite::kernel
