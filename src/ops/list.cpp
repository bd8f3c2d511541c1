// The places of the library's ops in their list.
#include "ferrite/ops/list.hpp"

#include <array>

#include "ferrite/ops/all.hpp"

namespace ferrite {

template <LibraryOp Op>
const std::size_t OpPlace<Op>::value = op::Core::index_of<Op>();

namespace detail {
namespace {

template <class... Ops>
constexpr std::array<const std::size_t*, sizeof...(Ops)> places_of(OpList<Ops...>) {
  static_assert((... && LibraryOp<Ops>), "an op of the list has a type_name that is not a LibraryName");
  return {&OpPlace<Ops>::value...};
}

}  // namespace

// Whoever takes their addresses makes the compiler define them.
extern const std::array<const std::size_t*, op::Core::size> all_places;
const std::array<const std::size_t*, op::Core::size> all_places = places_of(op::Core{});

}  // namespace detail
}  // namespace ferrite
