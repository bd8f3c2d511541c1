// Finding rules.
#include "kernel/emit/rules.hpp"

#include <array>

namespace ferrite::kernel {

namespace {

/// The rules of every builtin, in the order of its family.
const std::array<std::vector<const EmitRule*>, builtin_count>& by_builtin() {
  static const auto table = [] {
    std::array<std::vector<const EmitRule*>, builtin_count> lists;
    for (const auto family :
         {operator_rules(), math_rules(), vector_rules(), quaternion_rules(), thread_rules(), random_rules()})
      for (const EmitRule& rule : family) lists[static_cast<std::size_t>(rule.id)].push_back(&rule);
    return lists;
  }();
  return table;
}

}  // namespace

const EmitRule* find_rule(Builtin id, Types types, Target target) {
  for (const EmitRule* rule : by_builtin()[static_cast<std::size_t>(id)])
    if (!rule->in(target).empty() && rule->fits(types)) return rule;
  return nullptr;
}

}  // namespace ferrite::kernel
