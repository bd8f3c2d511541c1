// Node: one step of a computation graph. Tensors own their nodes and nodes own the nodes they came from, so
// dropping the loss drops the graph; there is no registry.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "ferrite/backend/evaluate.hpp"
#include "ferrite/backend/handle.hpp"

namespace ferrite {

template <class B>
class Engine;

namespace detail {
/// Nodes are numbered in the order they are made, so a larger number never feeds a smaller one.
FERRITE_API std::uint64_t next_node_order();

/// The array behind a primitive.
template <class P>
const Array& array_of(const P& primitive) {
  if constexpr (std::same_as<P, Array>)
    return primitive;
  else
    return array_of(primitive.value);
}
template <class B>
const Buffer* buffer_of(const Tensor<B>& tensor) {
  return array_of(tensor.primitive()).buffer().get();
}
/// What a tensor covers: its buffer, the first element there, and how many. A tied weight and its transpose
/// are in one place, parts of one buffer in several.
using Place = std::tuple<const Buffer*, std::int64_t, std::int64_t>;
template <class B>
Place place_of(const Tensor<B>& tensor) {
  const Layout& layout = array_of(tensor.primitive()).layout();
  return {buffer_of(tensor), layout.offset, layout.shape.numel()};
}
/// In-place writes seen so far by the buffer behind a primitive.
template <class P>
std::uint32_t version_of(const P& primitive) {
  return array_of(primitive).buffer()->version();
}
}  // namespace detail

template <class B>
class Node {
 public:
  using Pointer = std::shared_ptr<Node>;

  Node() : order_(detail::next_node_order()) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Frees long chains iteratively: a graph a million nodes deep must not overflow the stack.
  virtual ~Node() {
    static thread_local std::vector<Pointer>* worklist = nullptr;
    bool sole_owner = false;
    for (const Pointer& p : inputs_) sole_owner = sole_owner || (p && p.use_count() == 1);
    if (!sole_owner) return;
    if (worklist) {
      for (Pointer& p : inputs_) worklist->push_back(std::move(p));
      return;
    }
    std::vector<Pointer> pending;
    worklist = &pending;
    for (Pointer& p : inputs_) pending.push_back(std::move(p));
    while (!pending.empty()) {
      const Pointer next = std::move(pending.back());
      pending.pop_back();
    }
    worklist = nullptr;
  }

  /// Turns the gradient of the node's output into contributions to its inputs.
  virtual void backward(Engine<B>& engine, const typename B::Primitive& grad) = 0;
  /// Drops what was saved for backward, which then cannot run again.
  virtual void release() {}
  virtual bool is_leaf() const { return false; }
  /// The leaf's name, or the op's.
  virtual std::string name() const = 0;

  std::uint64_t order() const { return order_; }
  const SmallVector<Pointer, 3>& inputs() const { return inputs_; }

 protected:
  /// One entry per op input; null where no gradient flows.
  SmallVector<Pointer, 3> inputs_;

 private:
  std::uint64_t order_;
};

/// A tensor whose gradient is wanted: a parameter, or a user's variable.
template <class B>
class Leaf final : public Node<B> {
 public:
  Leaf(std::string name, const typename B::Primitive& value)
      : name_(std::move(name)), buffer_(detail::array_of(value).buffer()) {}
  void backward(Engine<B>&, const typename B::Primitive&) override {}
  bool is_leaf() const override { return true; }
  std::string name() const override { return name_; }
  void rename(std::string name) {
    name_ = std::move(name);
    listed_ = true;
  }
  /// Whether a module or an optimiser has ever listed it. A leaf that neither knows is never trained.
  bool listed() const { return listed_; }
  /// In-place writes seen so far by the tensor's buffer; 0 once the tensor is gone.
  std::uint32_t version() const {
    const auto buffer = buffer_.lock();
    return buffer ? buffer->version() : 0;
  }

 private:
  std::string name_;
  std::weak_ptr<const Buffer> buffer_;  // a graph does not keep what no op has saved
  bool listed_ = false;
};

namespace detail {
[[noreturn]] FERRITE_API void throw_released(const std::string& op);
[[noreturn]] FERRITE_API void throw_modified(const std::string& op);
}  // namespace detail

/// A value kept for backward, and the version its buffer had.
template <class B>
struct Saved {
  typename B::Primitive value;
  std::uint32_t version = 0;
};

/// What every recorded op keeps: shapes of its inputs and the tensors its vjp asked for.
template <class B>
class RecordedNode : public Node<B> {
 public:
  RecordedNode(B& backend, Saves saves) : backend_(backend), saves_(saves) {}

  B& backend() const { return *backend_; }
  const Meta& input_meta(std::size_t i) const { return metas_[i]; }
  const typename B::Primitive& saved_input(std::size_t i) const { return checked(saves_.inputs, i, 0); }
  const typename B::Primitive& saved_output(std::size_t i) const {
    // Optional trailing inputs may be absent.
    return checked(saves_.outputs, i, saves_.inputs.count_below(metas_.size()));
  }

  void add_input(typename Node<B>::Pointer node, Meta meta, const typename B::Primitive& value) {
    const std::size_t i = metas_.size();
    this->inputs_.push_back(std::move(node));
    metas_.push_back(meta);
    if (saves_.inputs.contains(i)) saved_.push_back({value, detail::version_of(value)});
  }
  void release() override {
    saved_.clear();
    released_ = true;
  }
  void check_unreleased() const {
    if (released_) detail::throw_released(this->name());
  }
  void add_outputs(std::span<const typename B::Primitive> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      if (saves_.outputs.contains(i)) saved_.push_back({values[i], detail::version_of(values[i])});
  }

 private:
  const typename B::Primitive& checked(Positions kept, std::size_t i, std::size_t before) const {
    if (!kept.contains(i))
      throw GradientError("[" + this->name() + "] vjp reads a tensor that its saves() does not name");
    const Saved<B>& saved = saved_[before + kept.count_below(i)];
    if (detail::version_of(saved.value) != saved.version) detail::throw_modified(this->name());
    return saved.value;
  }

  BackendRef<B> backend_;
  Saves saves_;
  SmallVector<Meta, 2> metas_;
  SmallVector<Saved<B>, 2> saved_;
  bool released_ = false;
};

}  // namespace ferrite
