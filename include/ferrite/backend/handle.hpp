// How tensors, graphs and gradients hold the backend that they belong to.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace ferrite {

/// A backend whose objects are handles: a copy is the same backend, and == tells whether two objects are the
/// same. A class without state is always one. A class with state declares `using Handle = MyBackend;` and ==,
/// and keeps its state behind a shared pointer. A derived class does not inherit this, because it may have
/// its own state.
template <class B>
concept HandleBackend = std::copyable<B> &&
    (std::is_empty_v<B> || (std::same_as<typename B::Handle, B> && std::equality_comparable<B>));

/// True if tensors of the two may be used in one op.
template <class B>
bool same_backend(const B& a, const B& b) {
  if constexpr (std::is_empty_v<B>)
    return true;
  else if constexpr (HandleBackend<B>)
    return a == b;
  else
    return &a == &b;
}

/// A copy of a handle, or a pointer to any other backend, which must then outlive it.
template <class B>
class BackendRef {
 public:
  BackendRef() = default;
  BackendRef(B& backend) : held_(hold(backend)) {}  // NOLINT(google-explicit-constructor)

  bool defined() const { return static_cast<bool>(held_); }
  B& operator*() const { return *held_; }
  B* operator->() const { return &*held_; }

 private:
  using Held = std::conditional_t<HandleBackend<B>, std::optional<B>, B*>;
  static Held hold(B& backend) {
    if constexpr (HandleBackend<B>)
      return Held(std::in_place, std::as_const(backend));
    else
      return &backend;
  }
  mutable Held held_{};  // ops are not const, but the tensor on which they run is
};

/// The backend below a decorator: a handle is stored directly, any other in memory shared by all copies of
/// the decorator.
template <class B>
class BackendOwner {
 public:
  template <class... Args>
  explicit BackendOwner(std::in_place_t, Args&&... args) : held_(make(std::forward<Args>(args)...)) {}

  B& operator*() { return get(held_); }
  const B& operator*() const { return get(held_); }

 private:
  using Held = std::conditional_t<HandleBackend<B>, B, std::shared_ptr<B>>;
  template <class... Args>
  static Held make(Args&&... args) {
    if constexpr (HandleBackend<B>)
      return B(std::forward<Args>(args)...);
    else
      return std::make_shared<B>(std::forward<Args>(args)...);
  }
  template <class H>
  static auto& get(H& held) {
    if constexpr (HandleBackend<B>)
      return held;
    else
      return *held;
  }
  [[no_unique_address]] Held held_;
};

}  // namespace ferrite
