// The table, assembled from its families.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "kernel/builtins/rules.hpp"

namespace ferrite::kernel {

std::span<const BuiltinInfo> builtins() {
  static const std::vector<BuiltinInfo> table = [] {
    std::vector<BuiltinInfo> rows;
    for (const auto family : {operator_builtins(), math_builtins(), vector_builtins(), quaternion_builtins(),
                              thread_builtins(), random_builtins()})
      rows.insert(rows.end(), family.begin(), family.end());
    return rows;
  }();
  return table;
}

const BuiltinInfo& info(Builtin id) { return builtins()[static_cast<std::size_t>(id)]; }

const BuiltinInfo* find_builtin(std::string_view name) {
  static const std::unordered_map<std::string_view, const BuiltinInfo*> by_name = [] {
    std::unordered_map<std::string_view, const BuiltinInfo*> map;
    for (const BuiltinInfo& row : builtins()) map.emplace(row.name, &row);
    return map;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : found->second;
}

Number cast_number(ScalarType from, ScalarType to, Precision precision, Number x) {
  if (is_float(from)) {
    if (is_float(to)) return from_real(round_to(to, precision, x.real));
    if (to == ScalarType::bool_) return from_integer(x.real != 0);
    if (to == ScalarType::u64) return from_integer(static_cast<std::int64_t>(convert<std::uint64_t>(x.real)));
    const std::int64_t whole = convert<std::int64_t>(x.real);
    const int bits = bits_of(to);
    if (bits == 64) return from_integer(whole);
    const std::int64_t range = std::int64_t{1} << bits;
    const std::int64_t low = is_unsigned(to) ? 0 : -(range / 2);
    return from_integer(std::clamp(whole, low, low + range - 1));
  }
  if (!is_float(to)) return from_integer(wrap_to(to, static_cast<std::uint64_t>(x.integer)));
  // An integer is rounded only once on its way to a 16- or 32-bit float.
  const bool huge = from == ScalarType::u64 && x.integer < 0;
  if (precision == Precision::native && to == ScalarType::f32)
    return from_real(huge ? static_cast<float>(static_cast<std::uint64_t>(x.integer))
                          : static_cast<float>(x.integer));
  return from_real(round_to(to, precision, as_real(from, x)));
}

}  // namespace ferrite::kernel
