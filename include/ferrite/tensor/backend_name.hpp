// The name of a backend in reports and replay files.
#pragma once

#include <string>
#include <type_traits>
#include <typeinfo>

#include "ferrite/core/export.hpp"

namespace ferrite {
namespace detail {

/// "cpu" for "cpu (x86-64-v4, 2 threads)", "cuda" for "cuda:0 (NVIDIA H200)"
FERRITE_API std::string short_name(const std::string& description);
/// "MyCpu" for my::space::MyCpu
FERRITE_API std::string type_name(const std::type_info& type);

template <class R, class C>
std::type_identity<C> declaring_class(R C::*);

/// True unless B inherits `describe` from a base class.
template <class B>
constexpr bool describes_itself() {
  if constexpr (requires { declaring_class(&B::describe); })
    return std::is_same_v<typename decltype(declaring_class(&B::describe))::type, B>;
  else
    return true;  // an overload set or a template of its own
}

}  // namespace detail

/// The first word of describe(): "cpu", "cuda", "lazy-cpu". A class that inherits `describe` has its own
/// kernels and must not be taken for its base, so it goes by the name of its type: "MyCpu", and "lazy-MyCpu"
/// for a decorator of it.
template <class B>
std::string backend_name(const B& b) {
  if constexpr (!detail::describes_itself<B>()) {
    return detail::type_name(typeid(B));
  } else if constexpr (requires { b.inner().describe(); }) {
    const std::string whole = b.describe(), inner = b.inner().describe();
    if (whole.ends_with(inner)) return whole.substr(0, whole.size() - inner.size()) + backend_name(b.inner());
    return detail::short_name(whole);
  } else {
    return detail::short_name(b.describe());
  }
}

}  // namespace ferrite
