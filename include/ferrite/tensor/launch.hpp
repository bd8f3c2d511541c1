// Launching a kernel on tensors of any backend, with gradients under Autodiff<B>:
//
//   const auto kernel = kernel::Kernel::from_source(text);
//   kernel.launch(backend, n, 2.0f, x, y);   // one argument per parameter: tensors and numbers
//
// Arrays are tensors of the kernel's dtype (u32 in u32 or i32, u64 in i64, i16 in u16); arrays of vectors and
// matrices have one or two more axes. A kernel writes into the tensors it is given.
#pragma once

#include <array>

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/launch.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite::kernel {

/// The same as for a Scalar, which cannot hold all of these numbers.
FERRITE_API Value unsigned_argument(const Kernel& kernel, int parameter, std::uint64_t number);

/// An argument of a launch on B: a tensor, or a value. Under Autodiff a tensor that the kernel changes gets a
/// new history, so it must be a variable of the caller (`lvalue`).
template <class B>
struct Argument {
  Tensor<B>* tensor = nullptr;
  bool lvalue = false;
  Value value;
};

namespace detail {

template <class T>
inline constexpr bool is_tensor = false;
template <class B>
inline constexpr bool is_tensor<Tensor<B>> = true;
template <class T>
inline constexpr bool is_components = false;
template <class T, std::size_t n>
inline constexpr bool is_components<std::array<T, n>> = true;

template <class B, class A>
Argument<B> argument(const Kernel& kernel, int p, A&& a) {
  using T = std::remove_cvref_t<A>;
  if constexpr (is_tensor<T>) {
    static_assert(std::is_same_v<T, Tensor<B>>, "the tensor belongs to another backend type");
    constexpr bool variable = std::is_lvalue_reference_v<A> && !std::is_const_v<std::remove_reference_t<A>>;
    return {const_cast<Tensor<B>*>(&a), variable, {}};
  } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == sizeof(std::uint64_t)) {
    return {nullptr, false, unsigned_argument(kernel, p, a)};
  } else if constexpr (std::is_arithmetic_v<T>) {
    return {nullptr, false, number_argument(kernel, p, Scalar(a))};
  } else if constexpr (is_components<T>) {
    Value value{kernel.parameter(p).type, {}, {}, {}};
    for (const auto x : a)
      value.numbers.push_back(is_float(value.type.scalar) ? from_real(static_cast<double>(x))
                                                          : from_integer(static_cast<std::int64_t>(x)));
    return {nullptr, false, value_argument(kernel, p, std::move(value))};
  } else {
    return {nullptr, false, value_argument(kernel, p, std::forward<A>(a))};
  }
}

/// Throws ValueError if a kernel would change an array that another argument shares. `arrays` has null for
/// numbers.
FERRITE_API void check_apart(const Kernel& kernel, std::span<const Array* const> arrays);

/// Throws ValueError unless there is one argument per parameter, with tensors exactly for the arrays.
FERRITE_API void check_count(const Kernel& kernel, std::size_t arguments);
FERRITE_API void check_kind(const Kernel& kernel, int p, bool is_tensor);

/// Backward of a launch. Each tensor that the kernel changed has a node, and those nodes feed this one.
template <class B>
class LaunchNode final : public Node<B> {
 public:
  struct Saved {
    Tensor<B> tensor;
    std::uint32_t version = 0;
    bool checked = false;  // must not have been changed since
  };

  LaunchNode(B& backend, LaunchCall call, std::vector<Saved> arrays,
             std::vector<typename Node<B>::Pointer> inputs)
      : backend_(backend), call_(std::move(call)), arrays_(std::move(arrays)) {
    for (auto& i : inputs) this->inputs_.push_back(std::move(i));
    incoming_.resize(arrays_.size());
  }
  std::string name() const override { return std::string(call_.kernel.name()); }

  /// The gradient of array i arrived.
  void arrive(Engine<B>& engine, std::size_t i, const typename B::Primitive& grad) {
    incoming_[i] = Tensor<B>(*backend_, grad);
    if (!std::exchange(begun_, true)) engine.add_primitive(this, grad);
  }
  void backward(Engine<B>& engine, const typename B::Primitive&) override;

 private:
  BackendRef<B> backend_;
  LaunchCall call_;
  std::vector<Saved> arrays_;
  std::vector<Tensor<B>> incoming_;  // by array, while a pass runs
  bool begun_ = false;
};

template <class B>
class ChangedArray final : public Node<B> {
 public:
  ChangedArray(std::shared_ptr<LaunchNode<B>> launch, std::size_t array)
      : launch_(launch.get()), array_(array) {
    this->inputs_.push_back(std::move(launch));
  }
  std::string name() const override { return launch_->name(); }
  void backward(Engine<B>& engine, const typename B::Primitive& grad) override {
    launch_->arrive(engine, array_, grad);
  }

 private:
  LaunchNode<B>* launch_;
  std::size_t array_;
};

}  // namespace detail

/// A launch with its arguments in a list, one per parameter. Throws as interpret() does, and ShapeError or
/// DTypeError for tensors that do not fit. Under Autodiff it also throws GradientError for a kernel without a
/// gradient (kernel/adjoint.hpp says which), and for a parameter (a leaf) or a part of another tensor that it
/// would change. ValueError if a tensor that it changes shares elements with another argument. A decorator
/// with its own primitive has a member `launch_kernel(kernel, grid, arguments)`.
template <class B>
void launch(B& backend, const Kernel& kernel, const Grid& grid, std::span<Argument<B>> arguments);

namespace detail {

template <class B>
LaunchCall call_of(const Kernel& kernel, const Grid& grid, std::span<Argument<B>> arguments) {
  LaunchCall call{kernel, grid, {}};
  for (const Argument<B>& a : arguments) call.values.push_back(a.value);
  return call;
}

template <RunsKernels B>
void launch_on(B& b, const Kernel& kernel, const Grid& grid, std::span<Argument<B>> arguments) {
  const op::Launch op{call_of(kernel, grid, arguments)};
  SmallVector<const Array*, 6> in, all;
  SmallVector<Array, 2> out;
  for (std::size_t p = 0; p < arguments.size(); ++p) {
    const bool is_array = arguments[p].tensor != nullptr;
    all.push_back(is_array ? &arguments[p].tensor->primitive() : nullptr);
    if (!is_array) continue;
    const Array& array = arguments[p].tensor->primitive();
    in.push_back(&array);
    if (!kernel.uses()[p].changes()) continue;
    if (array.layout().may_overlap())
      throw ShapeError("[" + std::string(kernel.name()) + "] argument '" +
                       kernel.parameter(static_cast<int>(p)).name +
                       "' is broadcast, so that elements share memory: a kernel cannot write to it");
    out.push_back(array);
  }
  check_apart(kernel, std::span<const Array* const>(all.data(), all.size()));
  evaluate_in_place(b, op, Ins(in.data(), in.size()), Outs(out));
}

template <class B>
void launch_on(Autodiff<B>& b, const Kernel& kernel, const Grid& grid,
               std::span<Argument<Autodiff<B>>> arguments) {
  bool tracked = false;
  std::vector<Tensor<B>> inner;
  inner.reserve(arguments.size());
  std::vector<Argument<B>> values;
  for (auto& a : arguments) {
    inner.push_back(a.tensor != nullptr ? Tensor<B>(b.inner(), a.tensor->primitive().value) : Tensor<B>());
    values.push_back({a.tensor != nullptr ? &inner.back() : nullptr, a.lvalue, a.value});
    tracked = tracked || (a.tensor != nullptr && a.tensor->primitive().node != nullptr);
  }
  tracked = tracked && !NoGrad::active();
  std::vector<typename LaunchNode<B>::Saved> saved;
  if (tracked) {
    try {
      kernel.adjoint();
    } catch (const KernelError& e) {
      throw GradientError("[" + std::string(kernel.name()) + "] has no gradient: " + e.what());
    }
    for (std::size_t p = 0; p < arguments.size(); ++p) {
      if (arguments[p].tensor == nullptr) continue;
      const ArrayUse use = kernel.uses()[p];
      const std::string& name = kernel.parameter(static_cast<int>(p)).name;
      const auto& node = arguments[p].tensor->primitive().node;
      if (use.changes() && is_floating(inner[p].dtype())) {
        if (node && node->is_leaf())
          throw GradientError("[" + std::string(kernel.name()) + "] would change '" + node->name() +
                              "', a parameter whose gradient is asked for: give it a copy");
        if (!arguments[p].lvalue)
          throw GradientError("[" + std::string(kernel.name()) + "] changes argument '" + name +
                              "': give it a variable, which takes the new history");
        const Array& array = ferrite::detail::array_of(inner[p].primitive());
        if (array.meta().bytes() < array.buffer()->bytes())
          throw GradientError("[" + std::string(kernel.name()) + "] changes argument '" + name +
                              "', a part of another tensor, whose history would not know of it: give it a "
                              "tensor of its own, by clone()");
      }
      // Backward needs the old value of an array that the kernel reads and then changes.
      const bool lost = use.reads && use.changes() && !use.extremes;
      saved.push_back({lost ? clone(inner[p]) : inner[p], 0, use.reads || use.extremes});
    }
  }
  launch_on(b.inner(), kernel, grid, std::span<Argument<B>>(values));
  const auto takes_history = [&](std::size_t p) {
    return arguments[p].tensor != nullptr && arguments[p].lvalue && kernel.uses()[p].changes();
  };
  for (std::size_t p = 0; p < arguments.size(); ++p)
    if (takes_history(p)) arguments[p].tensor->primitive().value = inner[p].primitive();
  if (!tracked) return;
  std::vector<typename Node<B>::Pointer> inputs;
  for (const auto& a : arguments)
    if (a.tensor != nullptr) inputs.push_back(a.tensor->primitive().node);
  for (auto& s : saved) s.version = ferrite::detail::version_of(s.tensor.primitive());
  auto node = std::make_shared<LaunchNode<B>>(b.inner(), call_of<Autodiff<B>>(kernel, grid, arguments), saved,
                                              std::move(inputs));
  std::size_t array = 0;
  for (std::size_t p = 0; p < arguments.size(); ++p) {
    if (arguments[p].tensor == nullptr) continue;
    if (takes_history(p) && is_floating(inner[p].dtype()))
      arguments[p].tensor->primitive().node = std::make_shared<ChangedArray<B>>(node, array);
    ++array;
  }
}

template <class B>
void LaunchNode<B>::backward(Engine<B>& engine, const typename B::Primitive&) {
  begun_ = false;
  const Kernel& kernel = call_.kernel;
  std::vector<Argument<B>> arguments;
  std::size_t at = 0;
  std::vector<Tensor<B>> room;  // originals, then gradients
  room.reserve(arrays_.size() + static_cast<std::size_t>(kernel.adjoint().parameters()));
  std::vector<std::size_t> array_of(static_cast<std::size_t>(kernel.parameters()));
  for (int p = 0; p < kernel.parameters(); ++p) {
    if (!kernel.parameter(p).type.is_array()) {
      arguments.push_back({nullptr, false, call_.values[static_cast<std::size_t>(p)]});
      continue;
    }
    const Saved& s = arrays_[at];
    if (s.checked && ferrite::detail::version_of(s.tensor.primitive()) != s.version)
      throw GradientError(
          "[" + name() + "] argument '" + kernel.parameter(p).name +
          "' was modified in place before backward ran: call backward first, or run the forward again");
    array_of[static_cast<std::size_t>(p)] = at++;
    room.push_back(s.tensor);
    arguments.push_back({&room.back(), true, {}});
  }
  std::vector<Tensor<B>> gradients(arrays_.size());
  for (const AdjointParameter& a : adjoint_parameters(kernel.module(), kernel.function())) {
    const Variable& v = kernel.parameter(a.parameter);
    if (v.type.is_array()) {
      const std::size_t i = array_of[static_cast<std::size_t>(a.parameter)];
      Tensor<B>& gradient = gradients[i];
      gradient = incoming_[i].defined()
                     ? clone(incoming_[i])
                     : zeros(*backend_, arrays_[i].tensor.shape(), arrays_[i].tensor.dtype());
      incoming_[i] = Tensor<B>();
      arguments.push_back({&gradient, true, {}});
      continue;
    }
    // Nobody asks for the gradient of a number, but the kernel needs room for it.
    Shape shape{1};
    if (a.type.element().is_matrix()) shape.push_back(a.type.rows);
    if (a.type.element().is_composite())
      shape.push_back(a.type.element().is_matrix() ? a.type.columns : a.type.rows);
    room.push_back(zeros(*backend_, shape, *dtype_of_elements(a.type.element())));
    arguments.push_back({&room.back(), true, {}});
  }
  launch(*backend_, kernel.adjoint(), call_.grid, std::span<Argument<B>>(arguments));
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (this->inputs_[i] && gradients[i].defined())
      engine.add_primitive(this->inputs_[i].get(), gradients[i].primitive());
}

}  // namespace detail

template <class B>
void launch(B& backend, const Kernel& kernel, const Grid& grid, std::span<Argument<B>> arguments) {
  detail::check_count(kernel, arguments.size());
  for (std::size_t p = 0; p < arguments.size(); ++p) {
    detail::check_kind(kernel, static_cast<int>(p), arguments[p].tensor != nullptr);
    if (arguments[p].tensor != nullptr && !same_backend(arguments[p].tensor->backend(), backend))
      ferrite::detail::throw_backend_mismatch(kernel.name());
  }
  if constexpr (requires { backend.launch_kernel(kernel, grid, arguments); })
    backend.launch_kernel(kernel, grid, arguments);
  else
    detail::launch_on(backend, kernel, grid, arguments);
}

template <class B, class... Arguments>
void Kernel::launch(B& backend, const Grid& grid, Arguments&&... arguments) const {
  detail::check_count(*this, sizeof...(arguments));
  int p = 0;
  std::vector<Argument<B>> list;
  list.reserve(sizeof...(arguments));
  (list.push_back(detail::argument<B>(*this, p++, std::forward<Arguments>(arguments))), ...);
  kernel::launch(backend, *this, grid, std::span<Argument<B>>(list));
}

}  // namespace ferrite::kernel
