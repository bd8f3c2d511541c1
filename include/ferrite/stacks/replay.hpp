// Replay: runs the op call in a file on a backend and compares. `ferrite replay` knows the library's ops and
// backends. A program with its own ops makes a Replayer from them and offers the same tool:
//
//   Replayer replayer;
//   replayer.add_library<OpList<op::Mish>>().add<MyCpu, op::Mish>();
//   const ReplayAnswer answer = replayer.answer({.file = "parity-reports/mish-1.safetensors"});
//
// A replay file is a .safetensors file. Parity writes them; Python programs can too.
//
//   metadata  op, attributes (JSON); optional: backend (the one that was under test), accumulate (bit mask),
//             inK.strides (JSON list, elements)
//   tensors   in0, in1, ...; optional: out0, ... (expected), before0, ... (of accumulating outputs),
//             grad0 (gradient of output 0), grad_in0, ... (expected: gradients are computed then), got0, ...
//             (what the backend under test had; not read). Any other name is an error
#pragma once

#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "ferrite/ops/all.hpp"
#include "ferrite/stacks/replay_call.hpp"

namespace ferrite {

struct FERRITE_API ReplayRequest {
  std::filesystem::path file;
  std::string backend = {};              // empty: the file's own, or the first that was added
  std::string op = {}, attributes = {};  // if not empty, they override the file's
  std::filesystem::path out = {};        // if not empty, receives out0, ..., grad_in0, ...
  bool grad = false;                     // also the gradients of all floating inputs, from grad0 or ones
};

/// The status is an exit code: 0 if it agrees (or there was nothing to compare with), 1 if it differs or a
/// kernel failed, 2 if a file or a call is wrong.
struct FERRITE_API ReplayAnswer {
  int status = 0;
  std::string message;
};

/// The ops and backends that replay files may name here.
class FERRITE_API Replayer {
 public:
  /// The library's ops and backends (AnyBackend::names), and the ops of other lists on these backends.
  template <class... Lists>
  Replayer& add_library() {
    for (const auto& [name, meaning] : AnyBackend::names()) {
      Calls& calls = new_backend(name);
      add_ops<AnyBackend>(calls, op::Core{});
      (add_ops<AnyBackend>(calls, Lists{}), ...);
    }
    return *this;
  }
  /// Backend B with the ops of the library and `Own`. By default its name is the one that Parity writes
  /// (backend_name). Each call makes a B with its default constructor. Throws ValueError for a name that is
  /// taken.
  template <class B, class... Own>
  Replayer& add(std::string name = "") {
    add_only<B, Own...>(std::move(name));
    add_ops<B>(backends_.back().second, op::Core{});
    return *this;
  }
  /// The same with only these ops. For a backend that the library does not compile this takes seconds.
  template <class B, class... Ops>
  Replayer& add_only(std::string name = "") {
    add_ops<B>(new_backend(name.empty() ? backend_name(B()) : std::move(name)), OpList<Ops...>{});
    return *this;
  }
  std::vector<std::string> backends() const;

  /// Throws whatever the file, the op and the backend throw; ValueError for a backend that was not added.
  ReplayResult run(const ReplayRequest& request) const;
  /// The same without throwing.
  ReplayAnswer answer(const ReplayRequest& request) const;
  /// Answers each line of JSON, {"file", "backend", "op", "attributes", "out", "grad"} with all but "file"
  /// optional, with a line {"status", "message"}, until the input ends. A line that is not a request is
  /// answered too. `backend` is for requests that name none.
  void serve(std::istream& requests, std::ostream& answers, const std::string& backend = "") const;

 private:
  using Call = ReplayOutputs (*)(const std::string& backend, const ReplayFile&, bool grad);
  using Calls = std::map<std::string_view, Call, std::less<>>;
  template <class B, class... Ops>
  static void add_ops(Calls& calls, OpList<Ops...>) {
    (calls.emplace(std::string_view(Ops::type_name), detail::replay_call<B, Ops>), ...);
  }
  Calls& new_backend(std::string name);
  /// The name of a backend, with the index of its GPU, and its calls.
  std::pair<std::string, const Calls*> find(const std::string& asked, const ReplayFile& file) const;

  std::vector<std::pair<std::string, Calls>> backends_;  // in the order they were added
};

}  // namespace ferrite
