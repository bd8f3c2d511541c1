// What comparisons need to know about the ops of the list.
#include <algorithm>

#include "ferrite/ops/all.hpp"
#include "ferrite/tensor/comparison.hpp"
#include "tensor/op_names.hpp"

namespace ferrite::detail {

namespace {
template <class... Ops>
constexpr std::array<OpInfo, sizeof...(Ops)> infos_of(OpList<Ops...>) {
  return {OpAdapter<Ops>::info...};
}
constexpr auto infos = infos_of(op::Core{});
}  // namespace

const OpInfo& core_op_info(std::size_t index) { return infos[index]; }

bool is_library_op(std::string_view type_name) {
  return std::ranges::any_of(infos, [&](const OpInfo& info) { return info.type_name == type_name; });
}

}  // namespace ferrite::detail
