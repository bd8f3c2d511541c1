// What comparisons need to know about the ops of the list.
#include "ferrite/ops/all.hpp"
#include "ferrite/tensor/comparison.hpp"

namespace ferrite::detail {

namespace {
template <class... Ops>
constexpr std::array<OpInfo, sizeof...(Ops)> infos_of(OpList<Ops...>) {
  return {OpAdapter<Ops>::info...};
}
}  // namespace

const OpInfo& core_op_info(std::size_t index) {
  static constexpr auto infos = infos_of(op::Core{});
  return infos[index];
}

}  // namespace ferrite::detail
