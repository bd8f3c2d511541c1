// The emitters' columns of the builtin table: how each builtin is written in CUDA and in C++, and the
// function it calls if the language has none.
#pragma once

#include "kernel/builtins/rules.hpp"

namespace ferrite::kernel {

enum class Target : std::uint8_t { cuda, cpp };

/// An expression, the same in both languages or one for each.
struct Written {
  std::string_view cuda, cpp;
  constexpr Written(const char* both) : cuda(both), cpp(both) {}
  constexpr Written(const char* in_cuda, const char* in_cpp) : cuda(in_cuda), cpp(in_cpp) {}
};
constexpr Written cuda_only(const char* text) { return {text, ""}; }
constexpr Written cpp_only(const char* text) { return {"", text}; }

/// One way of writing a builtin, for the argument types that `fits` accepts; the first rule that fits counts.
///
/// `text` and `body` may contain
///   $0 $1 ...  arguments         $* all of them, with commas        $E  element type (atomics)
///   $T  scalar of the arguments  $U  the unsigned integer as wide   $W  the word that atomicCAS takes for it
///   $R  type of the result       $V  vector of three $T             $n  rows of the first composite argument
///   $m{sin}  std::sin, or sinf   $s{isnan}  std::isnan, or isnan    $where  place and text of an assertion
///
/// `body` is empty if the languages have the function. Otherwise it defines the function or operator that the
/// expression calls, with the parameters named as in the builtin's signature; its forms are
///   "return ...;" or several lines; "each ...", an expression for component i of the result; "cas ...", the
///   next value of an atomic, from `old` and `value` (CUDA tries until it is stored, C++ stores it).
/// For a matrix "each" works row by row, with the function for rows. `needs` lists what a body calls:
/// "mul:QQ" a builtin with its argument types (Q quaternion, V vector of three, T scalar, R result, E
/// element, C its component), "@name" one of the functions in support.cpp.
struct EmitRule {
  Builtin id;
  bool (*fits)(Types);
  Written text;
  std::string_view body = {}, needs = {};

  constexpr std::string_view in(Target target) const { return target == Target::cuda ? text.cuda : text.cpp; }
};

/// Null if there is none: a hole in the table.
const EmitRule* find_rule(Builtin id, Types types, Target target);

// The families, as those of the builtin table.
std::span<const EmitRule> operator_rules();
std::span<const EmitRule> math_rules();
std::span<const EmitRule> vector_rules();
std::span<const EmitRule> quaternion_rules();
std::span<const EmitRule> thread_rules();
std::span<const EmitRule> random_rules();

// Conditions of rules on the argument types.
namespace fit {
inline bool any(Types) { return true; }
inline bool scalar(Types t) { return !t.empty() && t[0].is_scalar(); }
inline bool real(Types t) { return scalar(t) && is_float(t[0].scalar); }
inline bool whole(Types t) { return scalar(t) && !is_float(t[0].scalar); }
inline bool narrow(Types t) { return whole(t) && bits_of(t[0].scalar) < 32; }
inline bool wide(Types t) { return whole(t) && bits_of(t[0].scalar) == 64; }
inline bool unsigned_whole(Types t) { return whole(t) && is_unsigned(t[0].scalar); }
inline bool composite(Types t) { return !t.empty() && t[0].is_composite(); }
inline bool real_composite(Types t) { return composite(t) && is_float(t[0].scalar); }
inline bool matrix(Types t) { return !t.empty() && t[0].is_matrix(); }
template <std::size_t n>
bool count(Types t) {
  return t.size() == n;
}
}  // namespace fit

}  // namespace ferrite::kernel
