// One call of an op from a file, on one backend. replay.hpp compiles this for every op of a backend.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/ops/launch.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/tensor/comparison.hpp"

namespace ferrite {

/// The contents of a replay file; replay.hpp describes the format.
struct FERRITE_API ReplayFile {
  std::string op, attributes;
  std::string backend;  // empty if the file names none
  Accumulate accumulate = Accumulate::none;
  std::vector<HostTensor> inputs;
  std::vector<Layout> layouts;       // of the inputs
  std::vector<HostTensor> expected;  // empty if the file has none
  std::vector<HostTensor> before;    // one per accumulating output, by position; shape [0] for the others
  std::optional<HostTensor> root_gradient;
  NamedTensors gradients;  // grad_in0, ... that are expected

  /// Files may come from anywhere, so every field is checked; a tensor that nothing reads is an error too.
  /// Throws IoError or ParseError. `op` and `attributes`, if not empty, override the file's own.
  static ReplayFile read(const std::filesystem::path& path, const std::string& op = "",
                         const std::string& attributes = "");
};

/// A tensor of the call and that of the file. If their dtypes or shapes differ, no numbers are compared.
struct FERRITE_API ReplayComparison : Comparison {
  std::string file_has;  // its dtype and shape where they differ: "f64[2, 3]"
  bool agrees() const { return file_has.empty() && Comparison::agrees(); }
};

/// The result of a call: the outputs, the gradients of floating inputs, and how they compare with the file's.
struct FERRITE_API ReplayOutputs {
  std::vector<HostTensor> outputs;
  std::vector<ReplayComparison> comparisons;  // none if the file has no outputs
  NamedTensors gradients;
  std::map<std::string, ReplayComparison> gradient_comparisons;  // of those that the file has
  std::vector<std::string> without_gradient;
  bool agrees() const {
    return std::all_of(comparisons.begin(), comparisons.end(),
                       [](const ReplayComparison& c) { return c.agrees(); }) &&
           std::all_of(gradient_comparisons.begin(), gradient_comparisons.end(),
                       [](const auto& named) { return named.second.agrees(); });
  }
};

/// The results, as text or JSON.
struct FERRITE_API ReplayResult : ReplayOutputs {
  std::string op, attributes, backend;
  std::string file_backend;   // the backend that the file names, empty if it names none
  std::filesystem::path out;  // where the results were written, empty if nowhere
  std::string text() const;
  std::string json() const;
};

namespace detail {

template <class B>
HostTensor download(B& b, const Array& x) {
  return HostTensor::make(x.dtype(), x.shape(), [&](std::span<std::byte> bytes) {
    const Array dense = contiguous(b, x);
    b.copy_to_host(dense, bytes.data());
  });
}

template <class B>
Array upload(B& b, const HostTensor& x) {
  Array array = b.allocate({x.shape(), x.dtype()});
  b.copy_from_host(array, x.bytes().data());
  return array;
}

/// The tensor in the given layout, as it was in memory when the file was written.
template <class B>
Array upload(B& b, const HostTensor& x, const Layout& layout) {
  if (layout.is_contiguous()) return upload(b, x);
  std::int64_t reach = 1;
  for (int i = 0; i < layout.shape.rank(); ++i)
    reach += std::max<std::int64_t>(layout.shape[i] - 1, 0) * std::abs(layout.strides[i]);
  Reference host;
  const Tensor<Reference> room = zeros(host, {reach}, x.dtype());
  Array view = room.primitive().with_layout(layout);
  const Array dense = upload(host, x);
  const Array* source[] = {&dense};
  detail::run_kernel(host, op::Copy{x.dtype()}, Ins(source, 1), Outs(&view, 1));
  return upload(b, download(host, room.primitive())).with_layout(layout);
}

/// One op on one backend, and on its Autodiff, with its type erased.
template <class B>
struct ReplayCall : ErasedOp {
  const OpEntry<B>& plain;
  const OpEntry<Autodiff<B>>& recorded;

  template <class Op>
  static ReplayCall of(const Op& op) {
    return {ErasedOp::of(op), op_entry<B, Op>(), op_entry<Autodiff<B>, Op>()};
  }
};

/// Adds to the earlier contents of accumulating outputs, inside the kernel if the backend has one that can.
template <class B>
Primitives<B> replay_accumulating(B& b, const ReplayCall<B>& call, Ins in, const ReplayFile& file) {
  const Metas metas = metas_of(in), results = call.plain.infer(call.op, metas);
  SmallVector<Array, 3> before;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const bool adds = accumulates(file.accumulate, k);
    if (adds) check_shape("replay", "before" + std::to_string(k), file.before[k].shape(), results[k].shape);
    before.push_back(adds ? upload(b, file.before[k]) : b.allocate(results[k]));
  }
  if (call.plain.adds && call.plain.adds(b, call.op, metas)) {
    Primitives<B> out;
    for (Array& y : before) out.push_back(y);
    call.plain.run_adding(b, call.op, in, out, file.accumulate);
    return out;
  }
  Primitives<B> out = call.plain.evaluate(b, call.op, in);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Array* operands[] = {&before[k], &out[k]};
    if (accumulates(file.accumulate, k))
      out[k] = ferrite::evaluate(b, op::Binary{op::BinaryFn::add}, Ins(operands, 2))[0];
  }
  return out;
}

FERRITE_API void compare_with_file(const ErasedOp& op, const ReplayFile& file, ReplayOutputs& result);
FERRITE_API void compare_gradients_with_file(const ErasedOp& op, const ReplayFile& file,
                                             ReplayOutputs& result);

template <class B>
void replay_forward(B& b, const ReplayCall<B>& call, const ReplayFile& file, ReplayOutputs& result) {
  std::vector<Array> inputs;
  std::vector<const Array*> refs;
  for (std::size_t i = 0; i < file.inputs.size(); ++i)
    inputs.push_back(upload(b, file.inputs[i], file.layouts[i]));
  for (const Array& x : inputs) refs.push_back(&x);
  const Ins in(refs.data(), refs.size());
  const auto out = file.accumulate == Accumulate::none ? call.plain.evaluate(b, call.op, in)
                                                       : replay_accumulating(b, call, in, file);
  for (const Array& y : out) result.outputs.push_back(download(b, y));
  compare_with_file(call, file, result);
}

/// Every floating input becomes a leaf; the root gradient is grad0 or ones.
template <class B>
void replay_backward(Autodiff<B>& b, const ReplayCall<B>& call, const ReplayFile& file,
                     ReplayOutputs& result) {
  using D = Autodiff<B>;
  std::vector<Tensor<D>> inputs;
  std::vector<const typename D::Primitive*> refs;
  for (std::size_t i = 0; i < file.inputs.size(); ++i) {
    const Tensor<D> x(b, b.wrap(upload(b.inner(), file.inputs[i], file.layouts[i])));
    inputs.push_back(is_floating(x.dtype()) ? parameter(x, "in" + std::to_string(i)) : x);
  }
  for (const Tensor<D>& x : inputs) refs.push_back(&x.primitive());
  const auto out = call.recorded.evaluate(b, call.op, Refs<typename D::Primitive>(refs.data(), refs.size()));
  const Tensor<B> root = file.root_gradient ? Tensor<B>(b.inner(), upload(b.inner(), *file.root_gradient))
                                            : full(b.inner(), out[0].layout().shape, 1, out[0].dtype());
  const Gradients<B> grads = b.backward(out[0], BackwardConfig<B>{}.with_root(cast(root, out[0].dtype())));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_floating(inputs[i].dtype())) continue;
    const Tensor<B> grad = grads.find(inputs[i]);
    if (grad.defined())
      result.gradients["grad_in" + std::to_string(i)] = download(b.inner(), grad.primitive());
    else
      result.without_gradient.push_back("in" + std::to_string(i));
  }
  compare_gradients_with_file(call, file, result);
}

/// "[tanh] 0 inputs given" becomes "[unary tanh] ...", because the file names unary.
FERRITE_API void name_as_in_the_file(Error& error, const ErasedOp& op);

/// The backend of a replay; for AnyBackend, the one of that name.
template <class B>
B make_backend([[maybe_unused]] const std::string& name) {
  if constexpr (std::same_as<B, AnyBackend>)
    return AnyBackend(name);
  else
    return B();
}

template <class B>
ReplayOutputs replay_on(B backend, const ReplayCall<B>& call, const ReplayFile& file, bool grad) {
  try {
    ReplayOutputs result;
    Autodiff<B> b(std::move(backend));
    replay_forward(b.inner(), call, file, result);
    if (grad || !file.gradients.empty()) replay_backward(b, call, file, result);
    return result;
  } catch (Error& error) {
    name_as_in_the_file(error, call);
    throw;
  }
}

template <class B, class Op>
ReplayOutputs replay_call(const std::string& backend, const ReplayFile& file, bool grad) {
  const Op op = parse_attributes<Op>(file.attributes);
  return replay_on(make_backend<B>(backend), ReplayCall<B>::of(op), file, grad);
}

}  // namespace detail
}  // namespace ferrite
