// The table of a backend stack that the library does not compile: AnyBackend of such a backend needs it.
#pragma once

#include <array>

#include "ferrite/backend/evaluate.hpp"
#include "ferrite/ops/all.hpp"

namespace ferrite::detail {

template <class B, class... Ops>
constexpr std::array<OpEntry<B>, sizeof...(Ops)> make_table(OpList<Ops...>) {
  return {make_entry<B, Ops>()...};
}
template <class B>
inline constexpr auto own_table = make_table<B>(op::Core{});

template <class B>
struct OwnTable {
  static OpTable<B> entries() { return own_table<B>; }
};

}  // namespace ferrite::detail
