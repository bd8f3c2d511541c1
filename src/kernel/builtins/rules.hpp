// Overload rules that several rows of the builtin table share, and the families the table is made of.
#pragma once

#include "kernel/builtins/call.hpp"

namespace ferrite::kernel {

using Types = std::span<const Type>;
using Result = std::optional<Type>;

inline bool all_same(Types t) {
  for (const Type& other : t)
    if (other != t[0]) return false;
  return !t.empty();
}
constexpr bool is_number(Type t) { return t.is_float() || t.is_int(); }
/// A vector of anything, or a matrix or quaternion, which are of floats.
constexpr bool is_real_composite(Type t) { return t.is_composite() && is_float(t.scalar); }

/// n floats of one type, and the result too.
template <int n>
Result floats(Types t) {
  return static_cast<int>(t.size()) == n && all_same(t) && t[0].is_float() ? Result(t[0]) : std::nullopt;
}
/// n integers or floats of one type, and the result too.
template <int n>
Result numbers(Types t) {
  return static_cast<int>(t.size()) == n && all_same(t) && is_number(t[0]) ? Result(t[0]) : std::nullopt;
}
/// The same of vectors too: component by component.
template <int n>
Result numbers_or_vectors(Types t) {
  return static_cast<int>(t.size()) == n && all_same(t) && (is_number(t[0]) || t[0].is_vector())
             ? Result(t[0])
             : std::nullopt;
}

/// One component at a time, in f64: f(double, ...).
template <auto f>
void each_real(BuiltinCall& c) {
  for (int i = 0; i < c.type.components(); ++i) {
    if constexpr (std::is_invocable_v<decltype(f), double>)
      c.store(i, f(c.real(0, i)));
    else if constexpr (std::is_invocable_v<decltype(f), double, double>)
      c.store(i, f(c.real(0, i), c.real(1, i)));
    else
      c.store(i, f(c.real(0, i), c.real(1, i), c.real(2, i)));
  }
}

// operators.cpp, math.cpp, ...: the rows of each family, in the order of the enum.
std::span<const BuiltinInfo> operator_builtins();
std::span<const BuiltinInfo> math_builtins();
std::span<const BuiltinInfo> vector_builtins();
std::span<const BuiltinInfo> quaternion_builtins();
std::span<const BuiltinInfo> thread_builtins();
std::span<const BuiltinInfo> random_builtins();

}  // namespace ferrite::kernel
