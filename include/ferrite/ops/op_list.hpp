// OpList: types of ops, to do the same for each.
#pragma once

#include <concepts>
#include <cstddef>

namespace ferrite {

/// Op types; a declaration is enough.
template <class... Ops>
struct OpList {
  static constexpr std::size_t size = sizeof...(Ops);
  template <class Op>
  static constexpr bool contains = (... || std::same_as<Op, Ops>);
  /// The place of an op of the list.
  template <class Op>
  static constexpr std::size_t index_of() {
    static_assert(contains<Op>);
    std::size_t index = 0;
    bool found = false;
    ((found = found || std::same_as<Op, Ops>, index += found ? 0 : 1), ...);
    return index;
  }
  /// f.template operator()<Op>() for each.
  template <class F>
  static constexpr void for_each(F&& f) {
    (f.template operator()<Ops>(), ...);
  }
};

}  // namespace ferrite
