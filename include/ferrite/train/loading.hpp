// Loading: how the batches of a source get to the backend.
#pragma once

#include <string>

#include "ferrite/data/batch.hpp"

namespace ferrite::train {

/// Copies the elements of a source's batches. A program derives from it if a batch of the source only says
/// what is to be trained on, and the elements are made on the device: then nothing goes over the bus.
template <class B>
class Loading {
 public:
  virtual ~Loading() = default;

  /// A batch with tensors of its own.
  virtual data::Batch<B> load(B& backend, const data::HostBatch& host) {
    return data::to_batch(backend, host);
  }
  /// Batches of one kind have tensors of the same shapes and dtypes.
  virtual std::string kind(const data::HostBatch& host) const {
    std::string kind = describe(host.x) + describe(host.y);
    for (const HostTensor& input : host.more) kind += describe(input);
    return kind;
  }
  /// Writes a batch into tensors that hold another of its kind.
  virtual void load_into(const data::HostBatch& host, const data::Batch<B>& into) {
    assign(into.x, host.x);
    assign(into.y, host.y);
    for (std::size_t i = 0; i < host.more.size(); ++i) assign(into.more[i], host.more[i]);
  }

 private:
  static std::string describe(const HostTensor& x) {
    return std::string(to_string(x.dtype())) + to_string(x.shape());
  }
};

}  // namespace ferrite::train
