// Rewind: keeps what a forward pass changes besides the parameters, so that it can be restored.
#pragma once

#include <map>
#include <vector>

#include "ferrite/nn/module.hpp"

namespace ferrite::train {

/// Buffers (running statistics) and positions of generators. Keeping a buffer costs no copy: layers put a new
/// tensor in its place. The module must outlive it and keep its parts.
template <class B>
class Rewind {
 public:
  /// `own`: generators that are not the module's.
  Rewind(nn::Module<B>& model, const std::map<std::string, Rng*>& own) {
    struct Collector final : nn::Visitor<B> {
      Rewind& rewind;
      explicit Collector(Rewind& r) : rewind(r) {}
      void on_buffer(const std::string&, Tensor<B>& t) override { rewind.buffers_.push_back({&t, t}); }
      void on_rng(const std::string& name, Rng& rng) override { rewind.rngs_["model." + name] = &rng; }
    } collector(*this);
    model.visit(collector);
    rngs_.insert(own.begin(), own.end());
    mark();
  }

  /// Remembers the current state.
  void mark() {
    for (Buffer& buffer : buffers_) buffer.value = *buffer.place;
    positions_.clear();
    for (const auto& item : rngs_) positions_.push_back(item.second->position());
  }
  /// Puts everything back to the last mark.
  void back() {
    for (const Buffer& buffer : buffers_) *buffer.place = buffer.value;
    auto position = positions_.begin();
    for (const auto& item : rngs_) item.second->set_position(*position++);
  }
  /// All generators, by name.
  const std::map<std::string, Rng*>& rngs() const { return rngs_; }

 private:
  struct Buffer {
    Tensor<B>* place;
    Tensor<B> value;
  };
  std::vector<Buffer> buffers_;
  std::map<std::string, Rng*> rngs_;
  std::vector<std::uint64_t> positions_;
};

}  // namespace ferrite::train
