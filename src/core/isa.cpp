#include "ferrite/core/isa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/isa_list.hpp"
#include "ferrite/core/error.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace ferrite {
namespace {

#if defined(__x86_64__)
/// The parts of the levels for which the compiler has no name everywhere: f16c and movbe, lzcnt.
bool has_rest_of_v3() {
  constexpr unsigned f16c = 1U << 29, movbe = 1U << 22, lzcnt = 1U << 5;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & f16c) == 0 || (c & movbe) == 0) return false;
  return __get_cpuid(0x80000001U, &a, &b, &c, &d) != 0 && (c & lzcnt) != 0;
}
bool has_level(int level) {
  __builtin_cpu_init();
  const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
  if (level == 2) return v2;
  const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_rest_of_v3();
  if (level == 3) return v3;
  return v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

bool is_here(std::string_view isa) {
#if defined(__x86_64__)
  if (isa.starts_with("x86-64-v")) return has_level(isa.back() - '0');
#elif defined(__aarch64__) && defined(__linux__)
  if (isa == "sve") return (getauxval(AT_HWCAP) & HWCAP_SVE) != 0;
#endif
  return true;  // native, neon, portable: such a machine runs this library or it does not
}

std::size_t choose() {
  const std::vector<Isa>& all = isas();
  std::vector<std::string_view> here;
  for (const Isa& isa : all)
    if (isa.is_here) here.push_back(isa.name);
  if (here.empty())
    throw BackendError(
        fmt::format("[cpu] this processor is too old: the library needs {} at least", all.front().name));
  const char* const given = std::getenv("FERRITE_ISA");
  const std::string_view wanted = given && *given ? given : here.back();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Isa& isa) { return isa.name == wanted; });
  if (found == all.end() || !found->is_here)
    throw ValueError(fmt::format(
        "[cpu] FERRITE_ISA={}: {}; use one of: {}", wanted,
        found == all.end() ? "the library has no kernels for that" : "this processor does not have it",
        fmt::join(here, ", ")));
  return static_cast<std::size_t>(found - all.begin());
}

}  // namespace

const std::vector<Isa>& isas() {
  static const std::vector<Isa> all = [] {
    std::vector<Isa> made;
    const auto add = [&](std::string name) {
      std::replace(name.begin(), name.end(), '_', '-');
      made.push_back({name, is_here(name)});
    };
#define FERRITE_ADD(isa, to) to(#isa);
    FERRITE_EACH_ISA(FERRITE_ADD, add)
#undef FERRITE_ADD
    return made;
  }();
  return all;
}

std::size_t chosen_isa() {
  static const std::size_t chosen = choose();
  return chosen;
}

}  // namespace ferrite
