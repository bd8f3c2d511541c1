// Gradients: what backward returns. It is a separate container, not a field of the tensors: there is nothing
// to reset between steps, and several can exist side by side.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/autodiff/node.hpp"
#include "ferrite/core/config.hpp"

namespace ferrite {

namespace detail {
/// Open-addressing map from pointers to indices: a backward pass over three nodes must cost nanoseconds.
class PointerMap {
 public:
  static constexpr std::uint32_t absent = ~0u;

  /// A null is never there.
  std::uint32_t find(const void* key) const {
    if (cells_.empty() || !key) return absent;
    for (std::size_t i = hash(key);; i = (i + 1) & (cells_.size() - 1)) {
      if (cells_[i].first == key) return cells_[i].second;
      if (!cells_[i].first) return absent;
    }
  }
  void insert(const void* key, std::uint32_t value) {
    if (4 * (size_ + 1) > 3 * cells_.size()) grow();
    ++size_;
    place(key, value);
  }

 private:
  std::size_t hash(const void* key) const {
    return (reinterpret_cast<std::uintptr_t>(key) * 0x9e3779b97f4a7c15ull >> 20) & (cells_.size() - 1);
  }
  void place(const void* key, std::uint32_t value) {
    std::size_t i = hash(key);
    while (cells_[i].first) i = (i + 1) & (cells_.size() - 1);
    cells_[i] = {key, value};
  }
  void grow() {
    auto old = std::move(cells_);
    cells_.assign(old.empty() ? 16 : 2 * old.size(), {});
    for (const auto& cell : old)
      if (cell.first) place(cell.first, cell.second);
  }

  std::vector<std::pair<const void*, std::uint32_t>> cells_;
  std::size_t size_ = 0;
};
}  // namespace detail

template <class B>
class Autodiff;

/// Gradients of leaves, as tensors of the inner backend.
template <class B>
class Gradients {
  using Pointer = typename Node<B>::Pointer;

 public:
  /// The gradient of a leaf; GradientError names the leaf if it got none, and for a tensor that is no leaf.
  Tensor<B> of(const Tensor<Autodiff<B>>& leaf) const {
    Tensor<B> grad = find(leaf);
    if (grad.defined()) return grad;
    throw GradientError("[backward] '" + leaf_of(leaf)->name() +
                        "' got no gradient: the loss does not depend on it");
  }
  /// The same, but undefined if there is none.
  Tensor<B> find(const Tensor<Autodiff<B>>& leaf) const {
    const std::uint32_t i = index_.find(leaf.primitive().node.get());
    return i == detail::PointerMap::absent || !entries_[i].has_grad()
               ? Tensor<B>()
               : Tensor<B>(*backend_, entries_[i].grad);
  }
  std::size_t size() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(entries_, [](const Entry& e) { return e.has_grad(); }));
  }

  /// Names of those leaves that got no gradient, for a report.
  std::vector<std::string> missing(std::span<const Tensor<Autodiff<B>>> leaves) const {
    std::vector<std::string> names;
    for (const auto& leaf : leaves)
      if (!find(leaf).defined())
        names.push_back(leaf.primitive().node ? leaf.primitive().node->name() : "(no leaf)");
    return names;
  }

  /// Names of the leaves that have a gradient; and those among them that no module and no optimiser lists,
  /// with their shapes, because their names are short.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Entry& entry : entries_)
      if (entry.has_grad()) all.push_back(entry.leaf->name());
    return all;
  }
  std::vector<std::pair<std::string, Meta>> unlisted() const {
    std::vector<std::pair<std::string, Meta>> strangers;
    for (const Entry& e : entries_)
      if (e.has_grad() && !static_cast<const Leaf<B>&>(*e.leaf).listed())
        strangers.push_back({e.leaf->name(), {e.grad.layout().shape, e.grad.dtype()}});
    return strangers;
  }

  /// Passes will write the gradient of this leaf into `place`, of the leaf's shape and dtype, instead of
  /// memory of their own: a part of one array with the gradients of all parameters, say. Whoever else holds
  /// that array sees it change.
  void place(const Tensor<Autodiff<B>>& leaf, const Tensor<B>& place) requires RunsKernels<B> {
    const Pointer& node = leaf_of(leaf);
    if (!(place.meta() == leaf.meta()))
      throw ShapeError("[backward] a place of " + to_string(place.meta()) + " for the gradient of '" +
                       node->name() + "', which is " + to_string(leaf.meta()));
    entry_of(node).place = place.primitive();
  }

  /// Puts a gradient in place of the one held (clipping, scaling), or adds one. Throws ShapeError if it has
  /// another shape than the leaf, GradientError for a tensor that is no leaf.
  void set(const Tensor<Autodiff<B>>& leaf, const Tensor<B>& grad) {
    const Pointer& node = leaf_of(leaf);
    if (!(grad.shape() == leaf.shape()))
      throw ShapeError("[Gradients] a gradient " + to_string(grad.shape()) + " for a leaf " +
                       to_string(leaf.shape()) + ": shapes must be equal");
    backend_ = grad.backend();
    entry_of(node).grad = grad.primitive();
  }

 private:
  friend class Engine<B>;

  static const Pointer& leaf_of(const Tensor<Autodiff<B>>& tensor) {
    const Pointer& node = tensor.primitive().node;
    if (!node || !node->is_leaf())
      throw GradientError(
          "[backward] the tensor is not a leaf: only tensors made by parameter(...) collect gradients");
    return node;
  }

  struct Entry {
    Pointer leaf;
    typename B::Primitive grad = {};   // undefined until a pass has reached the leaf
    typename B::Primitive place = {};  // where the gradient is to be written; undefined: anywhere
    bool has_grad() const { return detail::array_of(grad).defined(); }
  };
  Entry& entry_of(const Pointer& leaf) {
    std::uint32_t i = index_.find(leaf.get());
    if (i == detail::PointerMap::absent) {
      i = static_cast<std::uint32_t>(entries_.size());
      index_.insert(leaf.get(), i);
      entries_.push_back({leaf});
    }
    return entries_[i];
  }

  BackendRef<B> backend_;
  detail::PointerMap index_;
  std::vector<Entry> entries_;
};

/// How one backward pass runs.
template <class B>
struct BackwardConfig {
  /// Called when a leaf's gradient is complete, while the rest of the pass goes on; data-parallel reduction
  /// can start here. Receives the leaf's name and its gradient.
  std::function<void(const std::string& leaf, const Tensor<B>& grad)> on_ready;
  /// The gradient of the root; undefined means ones, which needs a root of one element.
  Tensor<B> root;
  /// Drops what each op has saved as soon as the pass is through with it: less memory at the peak. A second
  /// pass over the same graph is then a GradientError.
  bool release = false;

  BackwardConfig with_on_ready(std::function<void(const std::string&, const Tensor<B>&)> f) const {
    return detail::with(*this, &BackwardConfig::on_ready, std::move(f));
  }
  BackwardConfig with_release(bool value = true) const {
    return detail::with(*this, &BackwardConfig::release, value);
  }
  BackwardConfig with_root(Tensor<B> grad) const {
    return detail::with(*this, &BackwardConfig::root, std::move(grad));
  }
};

}  // namespace ferrite
