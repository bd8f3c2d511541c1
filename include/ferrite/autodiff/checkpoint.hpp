// checkpoint: trades memory for time. The forward keeps only its inputs; backward runs it again.
#pragma once

#include <functional>
#include <vector>

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/core/rng.hpp"

namespace ferrite {
namespace detail {

/// A node that recomputes a function. Its inputs are the function's arguments and every leaf (parameter)
/// the function reached on its own.
template <class B>
class CheckpointNode final : public Node<B> {
 public:
  using D = Autodiff<B>;
  using Function = std::function<Tensor<D>(const std::vector<Tensor<D>>&)>;
  using Pointer = typename Node<B>::Pointer;

  CheckpointNode(D& backend, Function function, std::vector<Tensor<D>> arguments, std::vector<Pointer> leaves,
                 std::vector<RandomKey> draws)
      : backend_(backend), function_(std::move(function)), draws_(std::move(draws)) {
    for (const Tensor<D>& t : arguments) {
      this->inputs_.push_back(t.primitive().node);
      arguments_.push_back(value(t));
    }
    for (Pointer& leaf : leaves) this->inputs_.push_back(std::move(leaf));
    versions_ = versions();
  }

  void backward(Engine<B>& engine, const typename B::Primitive& grad) override {
    if (!function_) throw_released(name());
    if (versions() != versions_) throw_modified(name());
    const Recording recording;
    const RngReplay replay(RngReplay::Replay, draws_);
    std::vector<Tensor<D>> arguments;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const Tensor<D> fresh = lift(*backend_, arguments_[i]);
      arguments.push_back(this->inputs_[i] ? parameter(fresh, "checkpoint argument") : fresh);
    }
    const Tensor<D> result = function_(arguments);
    if (!result.primitive().node)
      throw GradientError(
          "[checkpoint] the function depended on a leaf when it ran first, and on none when backward ran it "
          "again: it must do the same every time");
    Gradients<B> grads;
    backend_->backward(result.primitive(), grads, BackwardConfig<B>{}.with_root({backend_->inner(), grad}));
    for (std::size_t i = 0; i < this->inputs_.size(); ++i) {
      if (!this->inputs_[i]) continue;
      const Tensor<D> leaf =
          i < arguments.size() ? arguments[i] : Tensor<D>(*backend_, {{}, this->inputs_[i]});
      const Tensor<B> contribution = grads.find(leaf);
      if (contribution.defined()) engine.add_primitive(this->inputs_[i].get(), contribution.primitive());
    }
  }
  void release() override {
    function_ = nullptr;
    arguments_.clear();
  }
  std::string name() const override { return "checkpoint"; }

 private:
  /// Of what the function reads: its arguments, and the leaves that it captured.
  std::vector<std::uint32_t> versions() const {
    std::vector<std::uint32_t> all;
    for (const Tensor<B>& t : arguments_) all.push_back(version_of(t.primitive()));
    for (std::size_t i = arguments_.size(); i < this->inputs_.size(); ++i)
      all.push_back(static_cast<const Leaf<B>&>(*this->inputs_[i]).version());
    return all;
  }

  BackendRef<D> backend_;
  Function function_;
  std::vector<Tensor<B>> arguments_;
  std::vector<RandomKey> draws_;
  std::vector<std::uint32_t> versions_;
};

/// The leaves a graph reaches, in order of first visit.
template <class B>
std::vector<typename Node<B>::Pointer> leaves_of(const typename Node<B>::Pointer& root) {
  std::vector<typename Node<B>::Pointer> stack{root}, leaves;
  PointerMap seen;
  while (!stack.empty()) {
    const auto node = std::move(stack.back());
    stack.pop_back();
    if (!node || seen.find(node.get()) != PointerMap::absent) continue;
    seen.insert(node.get(), 0);
    if (node->is_leaf()) leaves.push_back(node);
    for (const auto& input : node->inputs()) stack.push_back(input);
  }
  return leaves;
}

}  // namespace detail

/// function(arguments) without keeping its intermediates. The function runs again during backward, so it must
/// be pure except for random draws, which are replayed. Parameters that it captures get their gradients. A
/// write to an argument or to such a parameter before backward is a GradientError.
template <class B>
Tensor<Autodiff<B>> checkpoint(
    const std::function<Tensor<Autodiff<B>>(const std::vector<Tensor<Autodiff<B>>>&)>& function,
    const std::vector<Tensor<Autodiff<B>>>& arguments) {
  using D = Autodiff<B>;
  if (arguments.empty()) throw ValueError("[checkpoint] no arguments: needs at least one tensor");
  D& backend = arguments[0].backend();
  std::vector<RandomKey> draws;
  // The first run records a graph too, only to learn which parameters it reaches; it is dropped at once.
  std::vector<Tensor<D>> locals;
  for (const Tensor<D>& t : arguments)
    locals.push_back(t.primitive().node ? parameter(t.detach(), "checkpoint argument") : t);
  Tensor<D> result;
  {
    const RngReplay record(RngReplay::Record, draws);
    result = function(locals);
  }
  if (!result.primitive().node) return result;
  std::vector<typename Node<B>::Pointer> captured;
  for (auto& leaf : detail::leaves_of<B>(result.primitive().node)) {
    const bool local = std::any_of(locals.begin(), locals.end(),
                                   [&](const Tensor<D>& t) { return t.primitive().node == leaf; });
    if (!local) captured.push_back(leaf);
  }
  auto node = std::make_shared<detail::CheckpointNode<B>>(backend, function, arguments, std::move(captured),
                                                          std::move(draws));
  return {backend, AutodiffPrimitive<B>{result.primitive().value, std::move(node)}};
}

}  // namespace ferrite
