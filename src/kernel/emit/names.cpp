// Names in C++: the kernel's own, with a suffix if C++, CUDA or the emitted functions already use them.
#include <algorithm>
#include <string>
#include <unordered_set>

#include "kernel/emit/emitter.hpp"
#include "kernel/emit/names.hpp"

namespace ferrite::kernel {

namespace {

/// M_PI, FP_NAN, EDOM, RAND_MAX, INT8_WIDTH, ...: C reserves these forms for the macros of its headers.
bool is_macro(std::string_view name) {
  for (const std::string_view start : {"M_", "FP_", "FE_", "MATH_", "LC_", "SEEK_", "EXIT_"})
    if (name.starts_with(start)) return true;
  for (const std::string_view end : {"_MAX", "_MIN", "_WIDTH"})
    if (name.ends_with(end)) return true;
  return name.size() > 1 && name[0] == 'E' &&
         std::ranges::all_of(name, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); });
}

}  // namespace

bool is_taken(std::string_view name) {
  // clang-format off
  static const std::unordered_set<std::string_view> words = {
      "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char",
      "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl", "concept", "const",
      "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default", "delete", "do", "double",
      "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
      "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
      "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires", "return", "short", "signed",
      "sizeof", "static", "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
      "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
      "volatile", "wchar_t", "while", "xor", "xor_eq",
      // CUDA and what emitted texts define
      "array", "half", "bfloat16", "int8", "uint8", "int16", "uint16", "uint32", "int64", "uint64", "Launch", "launch",
      "thread", "block", "lane", "lanes", "arguments", "std", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize",
      "printf", "assert", "memcpy", "fmin", "fmax", "fabs", "fmod", "nearbyint", "NULL", "NAN", "INFINITY", "EOF",
      "HUGE_VAL", "HUGE_VALF", "HUGE_VALL", "SNAN", "SNANF", "SNANL", "MAXFLOAT", "BUFSIZ", "errno", "math_errhandling",
      "stdin", "stdout", "stderr", "linux", "unix", "alloca", "offsetof",
      "floor_div", "remainder_of", "absolute", "smallest", "largest", "all_finite", "some_nan", "some_inf",
      "clamped_acos", "clamped_asin", "are_near", "expect", "from_end", "pcg_hash", "random_unit", "random_angle", "atomicAdd",
      "atomicMin", "atomicMax", "atomicExch", "atomicCAS", "atomicAnd", "atomicOr", "atomicXor",
  };
  // clang-format on
  if (words.contains(name) || find_builtin(name) != nullptr || type_from_name(name)) return true;
  if (is_macro(name)) return true;
  if (name.ends_with('f'))
    return find_builtin(name.substr(0, name.size() - 1)) != nullptr ||
           words.contains(name.substr(0, name.size() - 1));
  return name.starts_with("to_") || name.starts_with("__") || name.starts_with("identity_");
}

std::string free_name(const std::string& name) { return is_taken(name) ? name + "_" : name; }

std::string Emitter::struct_name(const std::string& name) const { return free_name(name); }
std::string Emitter::field_name(const std::string& name) const { return free_name(name); }
std::string Emitter::function_name(int index) const {
  return free_name(module_.functions[static_cast<std::size_t>(index)].name);
}

std::string entry_name(const Function& kernel) { return kernel.name + "_kernel"; }

}  // namespace ferrite::kernel
