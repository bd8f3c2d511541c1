// Autodiff<B>: the decorator that records. Its tensors carry a node beside the inner value; ops with a vjp
// run as they are (fused where B fuses them), ops without one are composed of ops that have one.
#pragma once

#include <typeinfo>

#include "ferrite/autodiff/engine.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {

/// While it lives, ops on this thread are not recorded.
class FERRITE_API NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
  static bool active();
};

namespace detail {
/// While it lives, ops on this thread are recorded, whatever NoGrad lives outside.
class FERRITE_API Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  int depth_;
};

/// While it lives, it sees the results of the ops that Autodiff runs on this thread. It is used to find the
/// first op whose result is not finite. Scopes nest; only the innermost sees the results.
class FERRITE_API OpWatch {
 public:
  OpWatch();
  virtual ~OpWatch();
  OpWatch(const OpWatch&) = delete;
  OpWatch& operator=(const OpWatch&) = delete;
  static OpWatch* active();

  /// `backend` is the one below Autodiff, of this type; `result` is one of its primitives.
  virtual void on_result(std::string_view op, const std::type_info& type, const void* backend,
                         const void* result) = 0;

 private:
  OpWatch* outer_;
};
}  // namespace detail

template <class B>
struct AutodiffPrimitive {
  typename B::Primitive value;
  typename Node<B>::Pointer node;  // null: no gradient flows through this tensor
  const Layout& layout() const { return value.layout(); }
  DType dtype() const { return value.dtype(); }
};

template <class B>
inline constexpr bool is_autodiff = false;
template <class B>
inline constexpr bool is_autodiff<Autodiff<B>> = true;

/// The backend below Autodiff. For any other backend a one-line error says what is missing.
template <class B>
struct Differentiated {
  static_assert(is_autodiff<B>, "gradients need a backend that records: Autodiff<B> in place of B");
  using Inner = B;
};
template <class B>
struct Differentiated<Autodiff<B>> {
  using Inner = B;
};

template <class B, class Op>
concept HasVjp = requires(const Op& op, Vjp<B>& v) {
  op.template vjp<B>(v);
};

/// A backend whose tensors remember how they were made, so that gradients can be asked for. A handle: copies
/// share the inner backend.
template <class B>
class Autodiff {
 public:
  using Inner = B;
  using Primitive = AutodiffPrimitive<B>;
  using Handle = Autodiff;

  /// Arguments go to the inner backend's constructor.
  template <class... Args>
  requires std::constructible_from<B, Args...>
  explicit Autodiff(Args&&... args) : inner_(std::in_place, std::forward<Args>(args)...) {}
  friend bool operator==(const Autodiff& a, const Autodiff& b) { return same_backend(a.inner(), b.inner()); }

  B& inner() { return *inner_; }
  const B& inner() const { return *inner_; }
  Device device() const { return inner().device(); }
  void synchronize() { inner().synchronize(); }
  MemoryStats memory_stats() const { return inner().memory_stats(); }
  std::string describe() const { return "autodiff over " + inner().describe(); }

  Primitive wrap(typename B::Primitive value) { return {std::move(value), nullptr}; }
  Primitive detach(const Primitive& p) { return {p.value, nullptr}; }

  template <class Op>
  Primitives<Autodiff> evaluate(const Op& op, Refs<Primitive> in) {
    if (!is_tracked(in)) return forward(ErasedOp::of(op), in);
    if constexpr (HasVjp<B, Op>) {
      if (has_vjp(op, tracked_inputs(in))) {
        if constexpr (requires { op.recorded(); }) {
          SmallVector<Meta, 6> metas;
          for (std::size_t i = 0; i < in.size(); ++i)
            metas.push_back(Meta{in[i].layout().shape, in[i].dtype()});
          const auto recorded = op.recorded();
          auto out = record(ErasedOp::of(recorded), &make_node<decltype(recorded)>, in);
          out.resize(op.infer(metas).size());  // the others are only for backward
          return out;
        } else {
          return record(ErasedOp::of(op), &make_node<Op>, in);
        }
      }
    }
    if constexpr (detail::Composes<Autodiff, Op>) {
      return detail::evaluate_composed(*this, op, in);
    } else {
      auto out = forward(ErasedOp::of(op), in);
      for (const Primitive& p : out)
        if (is_floating(p.dtype()))
          throw GradientError("[" + std::string(op_name(op)) +
                              "] has no gradient: detach its inputs to say that none is meant");
      return out;
    }
  }

  /// Gradients of all leaves a scalar depends on.
  Gradients<B> backward(const Primitive& root, const BackwardConfig<B>& config = {}) {
    Gradients<B> grads;
    backward(root, grads, config);
    return grads;
  }
  /// The same, added to gradients already held (gradient accumulation over micro-batches).
  void backward(const Primitive& root, Gradients<B>& grads, const BackwardConfig<B>& config = {}) {
    if (!root.node)
      throw GradientError(
          "[backward] the tensor depends on no leaf: make parameters with parameter(tensor, name)");
    const Shape& shape = root.layout().shape;
    Tensor<B> seed = config.root;
    const bool seed_is_one = !seed.defined();
    if (seed_is_one) {
      if (shape.numel() != 1)
        throw GradientError(
            "[backward] the root has shape " + to_string(shape) +
            ": needs one element; reduce it, or give its gradient by BackwardConfig::with_root");
      seed = create(inner(), op::Fill{shape, root.dtype(), 1});
    }
    detail::check_shape("backward", "root gradient", seed.shape(), shape);
    Engine<B>(inner()).run(root.node, seed.primitive(), seed_is_one, grads, config);
  }

 private:
  template <class Op>
  static bool has_vjp(const Op& op, Positions needed) {
    if constexpr (requires { op.has_vjp(needed); })
      return op.has_vjp(needed);
    else
      return true;
  }

  template <class Op>
  class OpNode final : public RecordedNode<B> {
   public:
    OpNode(B& backend, const Op& op) : RecordedNode<B>(backend, op_saves(op)), op_(op) {}
    void backward(Engine<B>& engine, const typename B::Primitive& grad) override {
      this->check_unreleased();
      Vjp<B> v(engine, *this, grad);
      op_.template vjp<B>(v);
    }
    std::string name() const override { return std::string(op_name(op_)); }

   private:
    Op op_;
  };

  /// A gradient may flow to some input; one of a long `cat` may lie beyond what Positions can name.
  static bool is_tracked(Refs<Primitive> in) {
    if (NoGrad::active()) return false;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (in[i].node) return true;
    return false;
  }
  static Positions tracked_inputs(Refs<Primitive> in) {
    Positions tracked;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (in[i].node) tracked.insert(i);
    return tracked;
  }

  /// An op and what the inner backend does with it, so that what follows is compiled once, not once per op.
  struct ErasedOp {
    const void* op;
    std::string_view name;
    const OpEntry<B>& entry;

    template <class Op>
    static ErasedOp of(const Op& op) {
      // Second order: a vjp that reads statistics (rstd, lse) must be differentiated through them too, but
      // the inner level gives a gradient only to the first output. In a composition every output has its
      // history.
      if constexpr (is_autodiff<B> && HasVjp<B, Op> && detail::Composes<B, Op>) {
        const Positions kept = op_saves(op).outputs;
        if (kept != Positions{} && kept != Positions{0}) return {&op, op_name(op), composed<Op>};
      }
      return {&op, op_name(op), op_entry<B, Op>()};
    }
    template <class Op>
    static Primitives<B> compose(const OpEntry<B>&, B& b, const void* op, Refs<typename B::Primitive> in) {
      return detail::evaluate_composed(b, *static_cast<const Op*>(op), in);
    }
    template <class Op>
    static constexpr OpEntry<B> composed = [] {
      OpEntry<B> made;
      made.evaluate_by = &compose<Op>;
      return made;
    }();
  };
  using MakeNode = std::shared_ptr<RecordedNode<B>> (*)(B&, const void* op);
  template <class Op>
  static std::shared_ptr<RecordedNode<B>> make_node(B& b, const void* op) {
    return std::make_shared<OpNode<std::remove_const_t<Op>>>(b, *static_cast<const Op*>(op));
  }

  Primitives<B> forward_inner(const ErasedOp& op, Refs<Primitive> in) {
    SmallVector<const typename B::Primitive*, 6> values;
    for (std::size_t i = 0; i < in.size(); ++i) values.push_back(&in[i].value);
    Primitives<B> out =
        op.entry.evaluate(inner(), op.op, Refs<typename B::Primitive>(values.data(), values.size()));
    if (detail::OpWatch* watch = detail::OpWatch::active())
      for (const auto& result : out) watch->on_result(op.name, typeid(B), &inner(), &result);
    return out;
  }

  Primitives<Autodiff> forward(const ErasedOp& op, Refs<Primitive> in) {
    Primitives<Autodiff> out;
    for (auto& value : forward_inner(op, in)) out.push_back(Primitive{std::move(value), nullptr});
    return out;
  }

  Primitives<Autodiff> record(const ErasedOp& op, MakeNode make, Refs<Primitive> in) {
    Primitives<B> values = forward_inner(op, in);
    std::shared_ptr<RecordedNode<B>> node;
    if (is_floating(values[0].dtype())) {
      node = make(inner(), op.op);
      for (std::size_t i = 0; i < in.size(); ++i)
        node->add_input(in[i].node, {in[i].layout().shape, in[i].dtype()}, in[i].value);
      node->add_outputs(values);
    }
    // Only the first output carries a gradient; the others are statistics kept for backward.
    Primitives<Autodiff> out;
    for (std::size_t i = 0; i < values.size(); ++i)
      out.push_back(Primitive{std::move(values[i]), i == 0 ? std::move(node) : nullptr});
    return out;
  }

  [[no_unique_address]] BackendOwner<B> inner_;
};

/// A leaf with x's value: gradients are collected for it under this name. On a backend that does not
/// differentiate it is x itself, so that one model text serves training and inference. Throws DTypeError if x
/// is not floating, ShapeError if its elements share memory: an optimiser would add up their steps.
template <class B>
Tensor<B> parameter(const Tensor<B>& x, std::string name) {
  if constexpr (is_autodiff<B>) {
    if (!is_floating(x.dtype()))
      throw DTypeError("[parameter] '" + name + "' is " + std::string(to_string(x.dtype())) +
                       ": only floating tensors have gradients");
    if (detail::kernel_array(x.primitive()).layout().may_overlap())
      throw ShapeError("[parameter] '" + name + "' " + to_string(x.shape()) +
                       ": its elements share memory, as those of an expanded tensor do; give it a clone()");
    if constexpr (requires { x.backend().inner().adopt(x.primitive().value); })
      x.backend().inner().adopt(x.primitive().value);
    return {x.backend(), AutodiffPrimitive<typename B::Inner>{x.primitive().value,
                                                              std::make_shared<Leaf<typename B::Inner>>(
                                                                  std::move(name), x.primitive().value)}};
  } else {
    return x;
  }
}

/// Gives a leaf another name: what a layer calls `weight`, its model may call `block0.attn.qkv.weight`. A
/// tensor that is not a leaf has no name and does not change.
template <class B>
void rename_parameter(const Tensor<B>& leaf, std::string name) {
  if constexpr (is_autodiff<B>) {
    const auto& node = leaf.primitive().node;
    if (node && node->is_leaf()) static_cast<Leaf<typename B::Inner>&>(*node).rename(std::move(name));
  }
}

/// The inner value of a differentiable tensor, and the way back (without history).
template <class B>
Tensor<B> value(const Tensor<Autodiff<B>>& x) {
  return {x.backend().inner(), x.primitive().value};
}
/// A tensor of the inner backend as a differentiable tensor without history.
template <class B>
Tensor<Autodiff<B>> lift(Autodiff<B>& backend, const Tensor<B>& x) {
  if (!same_backend(x.backend(), backend.inner())) detail::throw_backend_mismatch("lift");
  return {backend, backend.wrap(x.primitive())};
}

/// backward with hooks, a root gradient, or accumulation into an existing container. If such a pass throws,
/// the leaves below its root have no gradient in the container afterwards, not even one of an earlier pass.
template <class B>
Gradients<B> backward(const Tensor<Autodiff<B>>& root, const BackwardConfig<B>& config = {}) {
  return root.backend().backward(root.primitive(), config);
}
template <class B>
void backward(const Tensor<Autodiff<B>>& root, Gradients<B>& grads, const BackwardConfig<B>& config = {}) {
  root.backend().backward(root.primitive(), grads, config);
}
template <class B, class... Rest>
requires(!is_autodiff<B>) auto backward(const Tensor<B>& root, const Rest&...) { return root.backward(); }

}  // namespace ferrite
