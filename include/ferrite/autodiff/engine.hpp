// Engine: one backward pass. Contributions to a gradient go into a sink. The first one writes; later ones
// accumulate inside the kernel if the backend can (GEMM with beta 1). There is no zero fill and no add
// kernel.
#pragma once

#include <algorithm>

#include "ferrite/autodiff/gradients.hpp"

namespace ferrite {

template <class B>
class Engine {
 public:
  using Primitive = typename B::Primitive;
  using Pointer = typename Node<B>::Pointer;

  explicit Engine(B& backend) : backend_(backend) {}

  /// Runs the pass from `root`. `grads` may hold gradients of earlier passes: they are accumulated into.
  void run(const Pointer& root, const Primitive& seed, bool seed_is_one, Gradients<B>& grads,
           const BackwardConfig<B>& config) {
    if (seed_is_one) one_ = root.get();
    collect(root);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i]->is_leaf()) continue;
      const std::uint32_t held = grads.index_.find(nodes_[i]);
      if (held == detail::PointerMap::absent) continue;
      take_over(slots_[i], grads.entries_[held]);
    }
    add_primitive(root.get(), seed);
    std::vector<std::uint32_t> order(nodes_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [&](std::uint32_t a, std::uint32_t b) { return nodes_[a]->order() > nodes_[b]->order(); });
    grads.backend_ = backend_;
    if (root->is_leaf()) finish_leaf(root, slots_[0], grads, config);
    for (std::uint32_t i : order) {
      if (nodes_[i]->is_leaf()) continue;
      if (slots_[i].full) {
        const Primitive grad = std::exchange(slots_[i].grad, Primitive{});
        nodes_[i]->backward(*this, grad);
      }
      if (config.release) nodes_[i]->release();
      for (const Pointer& input : nodes_[i]->inputs()) {
        if (!input) continue;
        Slot& slot = slots_[index_.find(input.get())];
        if (--slot.pending == 0 && input->is_leaf() && slot.full) finish_leaf(input, slot, grads, config);
      }
    }
  }

  /// Adds a finished value to a node's gradient. It must have the gradient's shape and dtype.
  void add_primitive(Node<B>* node, const Primitive& value) {
    Slot& slot = slots_[index_.find(node)];
    if (!slot.full) {
      if constexpr (RunsKernels<B>) {
        if (slot.place.defined()) {
          slot.grad = std::exchange(slot.place, Array());
          slot.full = slot.placed = true;
          if (value.buffer() == slot.grad.buffer() && value.layout().offset == slot.grad.layout().offset)
            return;  // a kernel has written there
          const Array* source[] = {&value};
          detail::run_kernel(backend_, op::Copy{value.dtype()}, Ins(source, 1), Outs(&slot.grad, 1));
          return;
        }
      }
      slot.grad = value;
      slot.full = true;
      return;
    }
    if constexpr (RunsKernels<B>) {
      if (writable(slot)) {
        const Array* operands[] = {&slot.grad, &value};
        detail::run_kernel(backend_, op::Binary{op::BinaryFn::add}, Ins(operands, 2), Outs(&slot.grad, 1));
        return;
      }
    }
    const Primitive* operands[] = {&slot.grad, &value};
    slot.grad = std::move(evaluate(backend_, op::Binary{op::BinaryFn::add}, Refs<Primitive>(operands, 2))[0]);
  }

  /// True if the node's gradient is known to be the number 1.
  bool is_one(const Node<B>& node) const { return &node == one_; }

  /// The array that a kernel may add to for this node, if its gradient has begun and nobody else holds it.
  Array* accumulator(Node<B>* node) requires RunsKernels<B> {
    Slot& slot = slots_[index_.find(node)];
    return slot.full && writable(slot) ? &slot.grad : nullptr;
  }
  /// Where the first contribution to this node is to be written, if someone has said so (Gradients::place);
  /// undefined otherwise. Whoever has written there gives it to add_primitive.
  Array place(Node<B>* node) const requires RunsKernels<B> {
    const Slot& slot = slots_[index_.find(node)];
    return slot.full ? Array() : slot.place;
  }

 private:
  struct Slot {
    Primitive grad;
    Primitive place;            // for the first contribution, if defined
    std::uint32_t pending = 0;  // contributions still to come
    bool full = false;
    bool placed = false;  // the owner of the place expects it to be written
  };

  /// What earlier passes have left for a leaf. The container gives up its reference, so that the kernel may
  /// add in place.
  static void take_over(Slot& slot, typename Gradients<B>::Entry& entry) {
    slot.full = entry.has_grad();
    slot.grad = std::exchange(entry.grad, Primitive{});
    if constexpr (RunsKernels<B>) {
      if (!slot.full)
        slot.place = entry.place;
      else  // by an earlier pass; what set() has put there since is not ours to write
        slot.placed = entry.place.defined() && entry.place.buffer() == slot.grad.buffer();
    }
  }
  static bool writable(const Slot& slot) {
    return (slot.placed || slot.grad.is_unique()) && !slot.grad.layout().may_overlap();
  }

  void collect(const Pointer& root) {
    visit(root.get());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const Pointer& input : nodes_[i]->inputs())
        if (input) ++slots_[visit(input.get())].pending;
    }
  }
  std::uint32_t visit(Node<B>* node) {
    std::uint32_t i = index_.find(node);
    if (i == detail::PointerMap::absent) {
      i = static_cast<std::uint32_t>(nodes_.size());
      index_.insert(node, i);
      nodes_.push_back(node);
      slots_.emplace_back();
    }
    return i;
  }
  void finish_leaf(const Pointer& leaf, Slot& slot, Gradients<B>& grads, const BackwardConfig<B>& config) {
    auto& entry = grads.entry_of(leaf);
    entry.grad = std::move(slot.grad);
    if (config.on_ready) config.on_ready(leaf->name(), Tensor<B>(backend_, entry.grad));
  }

  B& backend_;
  const Node<B>* one_ = nullptr;
  detail::PointerMap index_;
  std::vector<Node<B>*> nodes_;
  std::vector<Slot> slots_;
};

/// What the vjp of an op sees: the incoming gradient, the saved tensors, and a sink per input.
template <class B>
class Vjp {
 public:
  using Primitive = typename B::Primitive;
  Vjp(Engine<B>& engine, const RecordedNode<B>& node, const Primitive& grad)
      : engine_(engine), node_(node), grad_(grad) {}

  B& backend() const { return node_.backend(); }
  Tensor<B> grad() const { return {backend(), grad_}; }
  /// True if grad() is known to be the number 1: the pass began with the result of this op.
  bool grad_is_one() const { return engine_.is_one(node_); }
  Tensor<B> input(std::size_t i) const { return {backend(), node_.saved_input(i)}; }
  Tensor<B> output(std::size_t i) const { return {backend(), node_.saved_output(i)}; }
  /// The same for a gradient made of several ops: in one dtype, f32 or f64. Only the contribution itself is
  /// rounded to 16 bits, or to the narrowest of mixed dtypes.
  Tensor<B> wide_grad() const { return cast(grad(), wide_dtype()); }
  Tensor<B> wide_input(std::size_t i) const { return cast(input(i), wide_dtype()); }
  const Meta& input_meta(std::size_t i) const { return node_.input_meta(i); }
  std::size_t input_count() const { return node_.inputs().size(); }
  bool needs(std::size_t i) const { return i < input_count() && node_.inputs()[i] != nullptr; }

  /// Contributes a value to input i. It is summed over broadcast axes and cast to the input's dtype.
  void add(std::size_t i, Tensor<B> value) {
    if (!needs(i)) return;
    const Meta& meta = input_meta(i);
    if (!(value.shape() == meta.shape)) value = sum_to(value, meta.shape);
    engine_.add_primitive(node_.inputs()[i].get(), cast(value, meta.dtype).primitive());
  }

  /// Contributes op(tensors...) to input i, adding inside the kernel where that is possible.
  template <class Op, class... T>
  void into(std::size_t i, const Op& op, const T&... tensors) {
    if (!needs(i)) return;
    if constexpr (RunsKernels<B> && RunsAccumulating<B, Op>) {
      Node<B>* const node = node_.inputs()[i].get();
      Array* const sink = engine_.accumulator(node);
      Array place = sink ? Array() : engine_.place(node);
      if (sink || place.defined()) {
        const Array* in[] = {&tensors.primitive()...};
        const detail::PreparedInputs<B> prepared(backend(), op_lowered<Op>(), Ins(in, sizeof...(tensors)));
        const Ins operands = prepared.get();
        const Metas metas = detail::metas_of(operands);
        const bool fits = op.infer(metas)[0] == (sink ? *sink : place).meta();
        if (sink && fits && detail::kernel_adds(backend(), op, metas))
          return detail::run_kernel(backend(), op, operands, Outs(sink, 1), Accumulate::first);
        if (!sink && fits && detail::kernel_accepts(backend(), op, metas)) {
          detail::run_kernel(backend(), op, operands, Outs(&place, 1));
          return engine_.add_primitive(node, place);
        }
        return add(i, {backend(), std::move(ferrite::evaluate(backend(), op, operands)[0])});
      }
    }
    add(i, eval(op, tensors...));
  }

  /// Adds a value to the part of input i's gradient that a view shows, if that gradient has begun. A slice
  /// contributes this way without filling the rest with zeros.
  template <ViewOp View>
  bool add_to_view(std::size_t i, const View& view, const Tensor<B>& part) {
    if constexpr (RunsKernels<B>) {
      if (!needs(i)) return true;
      Array* sink = engine_.accumulator(node_.inputs()[i].get());
      if (!sink || sink->dtype() != part.dtype()) return false;
      Array target = sink->with_layout(*view.view(sink->layout()));
      const Array* operands[] = {&target, &part.primitive()};
      detail::run_kernel(backend(), op::Binary{op::BinaryFn::add}, Ins(operands, 2), Outs(&target, 1));
      return true;
    } else {
      return false;
    }
  }

  /// Contributes output k of op(tensors...) to input targets[k].
  template <class Op, class... T>
  void into_all(std::initializer_list<std::size_t> targets, const Op& op, const T&... tensors) {
    if constexpr (RunsKernels<B> && RunsAccumulating<B, Op>) {
      if (run_into_sinks(targets, op, tensors...)) return;
    }
    Tensors<B> results = eval_all(op, tensors...);
    std::size_t k = 0;
    for (std::size_t target : targets) add(target, std::move(results[k++]));
  }

 private:
  template <class Op, class... T>
  bool run_into_sinks(std::initializer_list<std::size_t> targets, const Op& op, const T&... tensors) {
    const Array* in[] = {&tensors.primitive()...};
    const detail::PreparedInputs<B> prepared(backend(), op_lowered<Op>(), Ins(in, sizeof...(tensors)));
    const Ins operands = prepared.get();
    const Metas metas = detail::metas_of(operands);
    if (!detail::kernel_adds(backend(), op, metas)) return false;
    const Metas results = op.infer(metas);
    SmallVector<Array, 3> outs;
    SmallVector<Node<B>*, 3> nodes;  // by output; null if it is not needed
    std::uint32_t mask = 0;
    std::size_t k = 0;
    for (std::size_t target : targets) {
      if (needs(target) && !(results[k] == input_meta(target))) return false;
      Node<B>* const node = needs(target) ? node_.inputs()[target].get() : nullptr;
      // A tensor that is two inputs at once has one gradient, which only one output may be.
      const bool is_first = node && std::find(nodes.begin(), nodes.end(), node) == nodes.end();
      Array* const sink = is_first ? engine_.accumulator(node) : nullptr;
      Array out = is_first && !sink ? engine_.place(node) : Array();
      if (sink) {
        out = *sink;
        mask |= 1u << k;
      } else if (!out.defined()) {
        out = detail::allocate_for(backend(), op_name(op), results[k]);
      }
      outs.push_back(std::move(out));
      nodes.push_back(node);
      ++k;
    }
    detail::run_kernel(backend(), op, operands, Outs(outs), static_cast<Accumulate>(mask));
    for (k = 0; k < outs.size(); ++k)
      if (nodes[k] && !accumulates(static_cast<Accumulate>(mask), k))
        engine_.add_primitive(nodes[k], outs[k]);
    return true;
  }

  DType wide_dtype() const {
    Metas metas{grad().meta()};
    for (std::size_t i = 0; i < input_count(); ++i) metas.push_back(input_meta(i));
    return ferrite::wide_dtype(metas);
  }

  Engine<B>& engine_;
  const RecordedNode<B>& node_;
  const Primitive& grad_;
};

}  // namespace ferrite
