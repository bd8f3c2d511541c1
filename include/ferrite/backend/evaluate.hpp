// evaluate: the one road from an op and its inputs to results, for every backend. Views change metadata,
// the backend's own kernel runs where there is one, and the op's composition where there is not.
#pragma once

#include "ferrite/backend/concept.hpp"

namespace ferrite {

template <class B>
using Primitives = SmallVector<typename B::Primitive, 2>;

/// A backend that runs kernels on arrays, as opposed to a decorator with a primitive of its own.
template <class B>
concept RunsKernels = std::same_as<typename B::Primitive, Array>;

namespace detail {
[[noreturn]] FERRITE_API void throw_backend_mismatch(std::string_view op);
[[noreturn]] FERRITE_API void throw_cannot_run(std::string_view op, const std::string& backend, MetaSpan in);
[[noreturn]] FERRITE_API void throw_broken_promise(std::string_view op, std::size_t output,
                                                   const Meta& promised);
FERRITE_API void check_devices(std::string_view op, Device device, Ins in);

inline Metas metas_of(Ins in) {
  Metas metas;
  metas.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) metas.push_back(in[i].meta());
  return metas;
}

/// What an op promises for these inputs; every error in shapes, dtypes and attributes is found here, before
/// any kernel runs.
template <class Op>
Metas infer_results(const Op& op, MetaSpan in) {
  Metas results = op.infer(in);
  for (const Meta& m : results) check_extents(op_name(op), m.shape);
  return results;
}

/// Tells a backend that keeps account of its memory (Cuda) which op it is for.
template <class B>
Array allocate_for(B& b, std::string_view op, const Meta& meta) {
  if constexpr (requires { b.allocate(meta, op); })
    return b.allocate(meta, op);
  else
    return b.allocate(meta);
}

template <class B>
SmallVector<Array, 2> allocate_all(B& b, std::string_view op, MetaSpan metas) {
  SmallVector<Array, 2> out;
  out.reserve(metas.size());
  for (const Meta& m : metas) out.push_back(allocate_for(b, op, m));
  return out;
}

/// A dense row-major array with the same elements; the array itself if it is dense already.
template <class B>
Array contiguous(B& b, const Array& x) {
  if (x.layout().is_contiguous()) return x;
  Array out = b.allocate(x.meta());
  const Array* in[] = {&x};
  b.run(op::Copy{x.dtype()}, Ins(in, 1), Outs(&out, 1));
  return out;
}

/// Runs the parts of an op. A wrong input that only a part finds is reported under the name of the op.
template <class F>
decltype(auto) run_parts(std::string_view op, F&& parts) {
  const auto renamed = [&](Error& error) { error.rename(op); };
  try {
    return parts();
  } catch (ShapeError& error) {
    renamed(error);
    throw;
  } catch (DTypeError& error) {
    renamed(error);
    throw;
  } catch (ValueError& error) {
    renamed(error);
    throw;
  }
}

template <class Op>
concept ComposesAsGiven = Op::composes_as_given;

/// The composition of an op, with results as `promised` by its infer. In f16 or bf16 each part would round,
/// and leave the range where the result does not; with mixed dtypes the narrowest would decide. So it
/// computes in one wide dtype.
template <class B, class Op>
Primitives<B> evaluate_composed(B& b, const Op& op, Refs<typename B::Primitive> in, MetaSpan metas,
                                MetaSpan promised) {
  return run_parts(op_name(op), [&] {
    SmallVector<Tensor<B>, 4> tensors;
    tensors.reserve(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) tensors.push_back(Tensor<B>(b, in[i]));
    if constexpr (!ComposesAsGiven<Op>) {
      const DType wide = wide_dtype(metas);
      for (Tensor<B>& t : tensors)
        if (is_floating(t.dtype())) t = cast(t, wide);
    }
    Tensors<B> results = op.template compose<B>(b, TensorSpan<B>(tensors.data(), tensors.size()));
    Primitives<B> out;
    out.reserve(results.size());
    for (std::size_t i = 0; i < promised.size(); ++i) {
      if (i >= results.size() || !(results[i].shape() == promised[i].shape))
        throw_broken_promise(op_name(op), i, promised[i]);
      out.push_back(std::move(cast(results[i], promised[i].dtype).primitive()));
    }
    return out;
  });
}
template <class B, class Op>
Primitives<B> evaluate_composed(B& b, const Op& op, Refs<typename B::Primitive> in) {
  Metas metas;
  for (std::size_t i = 0; i < in.size(); ++i) metas.push_back(Meta{in[i].layout().shape, in[i].dtype()});
  return evaluate_composed(b, op, in, metas, infer_results(op, metas));
}

template <class B, class Op>
concept Composes = requires(const Op& op, B& b, TensorSpan<B> in) {
  op.template compose<B>(b, in);
};
template <class B, class Op>
concept Assembles = requires(const Op& op, B& b, Ins in, Outs out) {
  op.assemble(b, in, out);
};

/// Tells a backend that measures (Profiled) that an op is made of others from here until the result dies.
template <class B, class Op>
auto announce_composed(B& b, const Op& op, MetaSpan in) {
  if constexpr (requires { b.composing(op, in); })
    return b.composing(op, in);
  else
    return nullptr;
}

template <RunsKernels B, class Op>
Primitives<B> evaluate_kernel(B& b, const Op& op, Ins in) {
  if constexpr (ViewOp<Op>) {
    check_arity(op_name(op), in.size(), 1, 1);
    check_devices(op_name(op), b.device(), in);
    if (auto layout = op.view(in[0].layout())) return {in[0].with_layout(*layout)};
    const Array dense = contiguous(b, in[0]);
    return {dense.with_layout(*op.view(dense.layout()))};
  } else {
    check_devices(op_name(op), b.device(), in);
    const Metas metas = metas_of(in);
    const Metas results = detail::infer_results(op, metas);
    if constexpr (Runs<B, Op>) {
      if (kernel_accepts(b, op, metas)) {
        auto out = allocate_all(b, op_name(op), results);
        b.run(op, in, out);
        return out;
      }
    }
    if constexpr (Assembles<B, Op>) {
      [[maybe_unused]] const auto scope = announce_composed(b, op, metas);
      auto out = allocate_all(b, op_name(op), results);
      run_parts(op_name(op), [&] { op.assemble(b, in, Outs(out)); });
      return out;
    } else if constexpr (Composes<B, Op>) {
      [[maybe_unused]] const auto scope = announce_composed(b, op, metas);
      return evaluate_composed(b, op, in, metas, results);
    } else {
      static_assert(Runs<B, Op>, "the backend has no kernel for this op, and the op has no composition");
      throw_cannot_run(op_name(op), b.describe(), metas);
    }
  }
}
}  // namespace detail

/// Runs one op. Decorators with a primitive of their own (Autodiff) bring `evaluate` as a member.
template <class B, class Op>
Primitives<B> evaluate(B& b, const Op& op, Refs<typename B::Primitive> in) {
  if constexpr (requires { b.evaluate(op, in); })
    return b.evaluate(op, in);
  else
    return detail::evaluate_kernel(b, op, in);
}

/// Runs an op whose results go into existing arrays (optimisers update parameters in place). Outputs may be
/// inputs. Counts as an in-place write for tensors saved by a graph.
template <RunsKernels B, class Op>
void evaluate_in_place(B& b, const Op& op, Ins in, Outs out) {
  const Metas metas = detail::metas_of(in);
  detail::check_devices(op_name(op), b.device(), in);
  const Metas results = detail::infer_results(op, metas);
  for (std::size_t i = 0; i < out.size(); ++i)
    detail::check_shape(op_name(op), "in-place output", out[i].shape(), results[i].shape);
  bool done = false;
  if constexpr (Runs<B, Op>) {
    if ((done = detail::kernel_accepts(b, op, metas))) b.run(op, in, out);
  }
  if (!done) {
    if constexpr (detail::Composes<B, Op>) {
      [[maybe_unused]] const auto scope = detail::announce_composed(b, op, metas);
      auto values = detail::evaluate_composed(b, op, in, metas, results);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const Array* source[] = {&values[i]};
        b.run(op::Copy{out[i].dtype()}, Ins(source, 1), out.subspan(i, 1));
      }
    } else {
      detail::throw_cannot_run(op_name(op), b.describe(), metas);
    }
  }
  for (Array& a : out) a.buffer()->bump_version();
}

}  // namespace ferrite
