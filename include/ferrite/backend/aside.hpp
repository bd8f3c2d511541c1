// aside: work that a device does beside its other work: the tables of steps to come, say, while it trains on
// those that are there.
//
//   const auto beside = aside(backend);
//   const std::int64_t making = beside->run([&] { next = make_tables(backend); });
//   ...                     // steps, which run at the same time
//   beside->wait(making);   // before `next` is used
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "ferrite/backend/record.hpp"

namespace ferrite {

/// A place for work of one thread at a time.
class FERRITE_API Aside {
 public:
  virtual ~Aside() = default;
  /// Calls work(), and returns a number for wait(). What this thread gives to the backend meanwhile starts
  /// when all that was given before is done, gives way to what is given afterwards, and runs beside it. Until
  /// wait(), nobody else may use what it makes, and what it reads must neither change nor be let go: hold the
  /// tensors. If work() throws, later work waits for what it had given. Products, convolutions, attention,
  /// linear algebra and copies from the host have memory that they share with the other work: a BackendError,
  /// as is run() inside a recording.
  virtual std::int64_t run(const std::function<void()>& work) = 0;
  /// What is given to the backend from now on starts when that run, and those before it, are done. The host
  /// does not wait.
  virtual void wait(std::int64_t run) = 0;
};

namespace detail {

/// For a backend that has no other way: it works at once.
class ImmediateAside final : public Aside {
 public:
  std::int64_t run(const std::function<void()>& work) override {
    work();
    return 0;
  }
  void wait(std::int64_t) override {}
};

}  // namespace detail

/// For the backend that runs kernels. Only Cuda, and what sends kernels on to it, works beside other work.
FERRITE_API std::unique_ptr<Aside> aside(Cuda& backend);
template <class B>
std::unique_ptr<Aside> aside(B& backend) {
  if constexpr (requires { backend.aside(); })
    return backend.aside();
  else if constexpr (detail::records_as_inner<B>)
    return aside(backend.inner());
  else
    return std::make_unique<detail::ImmediateAside>();
}

}  // namespace ferrite
