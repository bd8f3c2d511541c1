// evaluate: the single path from an op and its inputs to results, for every backend. Views change metadata.
// Otherwise the backend's own kernel runs if there is one, and the op's composition if not.
#pragma once

#include "ferrite/backend/op_table.hpp"

namespace ferrite {

namespace detail {
[[noreturn]] FERRITE_API void throw_backend_mismatch(std::string_view op);
[[noreturn]] FERRITE_API void throw_cannot_run(std::string_view op, const std::string& backend, MetaSpan in);
[[noreturn]] FERRITE_API void throw_broken_promise(std::string_view op, std::size_t output,
                                                   const Meta& promised);
/// Of an input, or of the result.
inline constexpr std::size_t no_input = static_cast<std::size_t>(-1);
[[noreturn]] FERRITE_API void throw_storage(std::string_view op, std::size_t input, DType dtype);
FERRITE_API void check_devices(std::string_view op, Device device, Ins in);

inline Metas metas_of(Ins in) {
  Metas metas;
  metas.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) metas.push_back(in[i].meta());
  return metas;
}

/// An op that only moves elements says `takes_storage`; one that reads an index, or an input that it widens
/// itself, says which input that is. Views move nothing.
template <class Op>
constexpr bool takes_storage(std::size_t input) {
  if constexpr (ViewOp<Op>)
    return true;
  else if constexpr (requires { Op::takes_storage; })
    return Op::takes_storage;
  else if constexpr (requires { Op::index_input; })
    return input == Op::index_input;
  else if constexpr (requires { Op::storage_input; })
    return input == Op::storage_input;
  else
    return false;
}

/// The shapes and dtypes that an op promises for these inputs. All errors in shapes, dtypes and attributes
/// are found here, before any kernel runs.
template <class Op>
Metas infer_results(const Op& op, MetaSpan in) {
  for (std::size_t i = 0; i < in.size(); ++i)
    if (is_storage(in[i].dtype) && !takes_storage<Op>(i)) throw_storage(op_name(op), i, in[i].dtype);
  Metas results = op.infer(in);
  for (const Meta& m : results) {
    check_extents(op_name(op), m.shape);
    if (is_storage(m.dtype) && !takes_storage<Op>(no_input)) throw_storage(op_name(op), no_input, m.dtype);
  }
  return results;
}

/// Tells a backend that accounts for its memory (Cuda) which op the memory is for.
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
  run_kernel(b, op::Copy{x.dtype()}, Ins(in, 1), Outs(&out, 1));
  return out;
}

/// Runs the parts of an op. If only a part detects a wrong input, the error still names the op.
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

/// An op's composition, without its type.
template <class B>
struct Composition {
  const void* op;
  std::string_view name;
  bool as_given;
  Tensors<B> (*compose)(B&, const void* op, TensorSpan<B> in);

  template <class Op>
  static Composition of(const Op& op) {
    return {&op, op_name(op), ComposesAsGiven<Op>, [](B& b, const void* erased, TensorSpan<B> in) {
              return static_cast<const Op*>(erased)->template compose<B>(b, in);
            }};
  }
};

/// Runs a composition, with results as `promised` by the op's infer. In f16 or bf16 each part would round,
/// and could overflow where the result does not; with mixed dtypes the narrowest would decide. So it computes
/// in one wide dtype.
template <class B>
Primitives<B> run_composition(B& b, const Composition<B>& op, Refs<typename B::Primitive> in, MetaSpan metas,
                              MetaSpan promised) {
  return run_parts(op.name, [&] {
    SmallVector<Tensor<B>, 4> tensors;
    tensors.reserve(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) tensors.push_back(Tensor<B>(b, in[i]));
    if (!op.as_given) {
      const DType wide = wide_dtype(metas);
      for (Tensor<B>& t : tensors)
        if (is_floating(t.dtype())) t = cast(t, wide);
    }
    Tensors<B> results = op.compose(b, op.op, TensorSpan<B>(tensors.data(), tensors.size()));
    Primitives<B> out;
    out.reserve(results.size());
    for (std::size_t i = 0; i < promised.size(); ++i) {
      if (i >= results.size() || !(results[i].shape() == promised[i].shape))
        throw_broken_promise(op.name, i, promised[i]);
      out.push_back(std::move(cast(results[i], promised[i].dtype).primitive()));
    }
    return out;
  });
}
template <class B, class Op>
Primitives<B> evaluate_composed(B& b, const Op& op, Refs<typename B::Primitive> in) {
  Metas metas;
  for (std::size_t i = 0; i < in.size(); ++i) metas.push_back(Meta{in[i].layout().shape, in[i].dtype()});
  return run_composition(b, Composition<B>::of(op), in, metas, infer_results(op, metas));
}

template <class B, class Op>
concept Composes = requires(const Op& op, B& b, TensorSpan<B> in) {
  op.template compose<B>(b, in);
};
template <class B, class Op>
concept Assembles = requires(const Op& op, B& b, Ins in, Outs out) {
  op.assemble(b, in, out);
};

/// Tells a backend that measures (Profiled) that an op is composed of others, from now until the result is
/// destroyed.
template <class B, class Op>
auto announce_composed(B& b, const Op& op, MetaSpan in) {
  if constexpr (requires { b.composing(op, in); })
    return b.composing(op, in);
  else
    return nullptr;
}

template <RunsKernels B>
void copy_into(B& b, const Primitives<B>& values, Outs out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Array* source[] = {&values[i]};
    run_kernel(b, op::Copy{out[i].dtype()}, Ins(source, 1), out.subspan(i, 1));
  }
}

/// The inputs of an op as the backend wants them: Autocast has its own. For all others, as they are given.
template <class B>
class PreparedInputs {
 public:
  PreparedInputs(B& b, Positions lowered, Ins given) : given_(given) {
    if constexpr (requires { b.lower(given[0]); }) {
      if (lowered == Positions{}) return;
      for (std::size_t i = 0; i < given.size(); ++i)
        prepared_.push_back(lowered.contains(i) ? b.lower(given[i]) : given[i]);
      for (const Array& a : prepared_) refs_.push_back(&a);
    }
  }
  Ins get() const { return refs_.empty() ? given_ : Ins(refs_.data(), refs_.size()); }

 private:
  Ins given_;
  SmallVector<Array, 4> prepared_;
  SmallVector<const Array*, 4> refs_;
};

/// Evaluates an op by its entry: compiled once per backend, not once per op.
template <RunsKernels B>
Primitives<B> evaluate_entry(const OpEntry<B>& entry, B& b, const void* op, Ins given) {
  const std::string_view name = entry.name(op);
  if (entry.view) {
    check_arity(name, given.size(), 1, 1);
    check_devices(name, b.device(), given);
    if (auto layout = entry.view(op, given[0].layout())) return {given[0].with_layout(*layout)};
    const Array dense = contiguous(b, given[0]);
    return {dense.with_layout(*entry.view(op, dense.layout()))};
  }
  check_devices(name, b.device(), given);
  const PreparedInputs<B> prepared(b, entry.lowered, given);
  const Ins in = prepared.get();
  const Metas metas = metas_of(in);
  const Metas results = entry.infer(op, metas);
  if (entry.runs(b, op, metas)) {
    auto out = allocate_all(b, name, results);
    entry.run(b, op, in, out);
    return out;
  }
  if (entry.compose) return entry.compose(b, op, in, metas, results);
  throw_cannot_run(name, b.describe(), metas);
}

template <RunsKernels B>
void evaluate_entry_in_place(const OpEntry<B>& entry, B& b, const void* op, Ins in, Outs out) {
  const std::string_view name = entry.name(op);
  const Metas metas = metas_of(in);
  check_devices(name, b.device(), in);
  const Metas results = entry.infer(op, metas);
  for (std::size_t i = 0; i < out.size(); ++i)
    check_shape(name, "in-place output", out[i].shape(), results[i].shape);
  if (entry.runs(b, op, metas)) return entry.run(b, op, in, out);
  if (!entry.compose_into) throw_cannot_run(name, b.describe(), metas);
  entry.compose_into(b, op, in, metas, results, out);
}

template <class Op>
const Op& op_of(const void* op) {
  return *static_cast<const Op*>(op);
}
/// One function for all backends.
template <class Op>
Metas infer_erased(const void* op, MetaSpan in) {
  return infer_results(op_of<Op>(op), in);
}

/// What the op says of itself.
template <class B, class Op>
constexpr OpEntry<B> make_rules() {
  OpEntry<B> entry;
  entry.name = [](const void* op) -> std::string_view { return op_name(op_of<Op>(op)); };
  entry.infer = infer_erased<Op>;
  entry.lowered = op_lowered<Op>();
  return entry;
}

template <RunsKernels B, class Op>
constexpr OpKernels<B> make_kernels() {
  OpKernels<B> kernels;
  if constexpr (Runs<B, Op>) {
    kernels.run = [](B& b, const void* op, Ins in, Outs out) { call_kernel(b, op_of<Op>(op), in, out); };
    kernels.accepts = [](const B& b, const void* op, MetaSpan in) {
      return kernel_accepts(b, op_of<Op>(op), in);
    };
  }
  if constexpr (RunsAccumulating<B, Op>) {
    kernels.run_adding = [](B& b, const void* op, Ins in, Outs out, Accumulate mask) {
      call_kernel(b, op_of<Op>(op), in, out, mask);
    };
    kernels.adds = [](const B& b, const void* op, MetaSpan in) { return kernel_adds(b, op_of<Op>(op), in); };
  }
  return kernels;
}

/// The entry of an op on a backend that runs kernels.
template <RunsKernels B, class Op>
constexpr OpEntry<B> make_kernel_entry() {
  static_assert(
      !requires(B & b, const Op& op, Ins in, Outs out) { b.run(op, in, out); },
      "a kernel is a free function: write `friend void run(MyBackend&, const MyOp&, Ins, Outs)`");
  static_assert(ViewOp<Op> || Runs<B, Op> || Assembles<B, Op> || Composes<B, Op>,
                "the backend has no kernel for this op, and the op has no composition");
  OpEntry<B> entry = make_rules<B, Op>();
  entry.evaluate_by = evaluate_entry<B>;
  if constexpr (ViewOp<Op>)
    entry.view = [](const void* op, const Layout& in) { return op_of<Op>(op).view(in); };
  else
    entry.evaluate_in_place_by = evaluate_entry_in_place<B>;
  static_cast<OpKernels<B>&>(entry) = make_kernels<B, Op>();
  if constexpr (Assembles<B, Op>) {
    entry.compose = [](B& b, const void* op, Ins in, MetaSpan metas, MetaSpan results) {
      [[maybe_unused]] const auto scope = announce_composed(b, op_of<Op>(op), metas);
      const std::string_view name = op_name(op_of<Op>(op));
      auto out = allocate_all(b, name, results);
      run_parts(name, [&] { op_of<Op>(op).assemble(b, in, Outs(out)); });
      return out;
    };
  } else if constexpr (Composes<B, Op>) {
    entry.compose = [](B& b, const void* op, Ins in, MetaSpan metas, MetaSpan results) {
      [[maybe_unused]] const auto scope = announce_composed(b, op_of<Op>(op), metas);
      return run_composition(b, Composition<B>::of(op_of<Op>(op)), in, metas, results);
    };
    entry.compose_into = [](B& b, const void* op, Ins in, MetaSpan metas, MetaSpan results, Outs out) {
      [[maybe_unused]] const auto scope = announce_composed(b, op_of<Op>(op), metas);
      copy_into(b, run_composition(b, Composition<B>::of(op_of<Op>(op)), in, metas, results), out);
    };
  }
  return entry;
}

/// The entry of an op, compiled here. A decorator with its own primitive (Autodiff) and a backend chosen at
/// run time have `evaluate` as a member.
template <class B, class Op>
constexpr OpEntry<B> make_entry() {
  if constexpr (requires(B & b, const Op& op, Refs<typename B::Primitive> in) { b.evaluate(op, in); }) {
    OpEntry<B> entry = make_rules<B, Op>();
    entry.evaluate_by = [](const OpEntry<B>&, B& b, const void* op, Refs<typename B::Primitive> in) {
      return b.evaluate(op_of<Op>(op), in);
    };
    return entry;
  } else {
    return make_kernel_entry<B, Op>();
  }
}
template <class B, class Op>
inline constexpr OpEntry<B> own_entry = make_entry<B, Op>();

}  // namespace detail

/// What B does with ops of type Op: from the table of the stack, or compiled here.
template <class B, class Op>
const OpEntry<B>& op_entry() {
  if constexpr (InTable<B, Op>)
    return op_table<B>()[OpPlace<Op>::value];
  else
    return detail::own_entry<B, Op>;
}

/// Runs one op.
template <class B, class Op>
Primitives<B> evaluate(B& b, const Op& op, Refs<typename B::Primitive> in) {
  if constexpr (!InTable<B, Op> && requires { b.evaluate(op, in); })
    return b.evaluate(op, in);
  else
    return op_entry<B, Op>().evaluate(b, &op, in);
}

/// Runs an op whose results go into existing arrays (optimisers update parameters in place). Outputs may be
/// inputs. Counts as an in-place write for tensors saved by a graph.
template <RunsKernels B, class Op>
void evaluate_in_place(B& b, const Op& op, Ins in, Outs out) {
  if constexpr (requires { b.evaluate_in_place(op, in, out); })
    b.evaluate_in_place(op, in, out);
  else
    op_entry<B, Op>().evaluate_in_place(b, &op, in, out);
  for (Array& a : out) a.buffer()->bump_version();
}

}  // namespace ferrite
