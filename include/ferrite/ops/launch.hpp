// launch: a user's kernel on arrays (call it through tensor/launch.hpp). As an op it goes through every
// decorator: Profiled counts it, Parity runs it on both backends.
#pragma once

#include "ferrite/core/scalar.hpp"
#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/interpreter.hpp"
#include "ferrite/kernel/kernel.hpp"
#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace kernel {

/// A launch without its arrays: `values` has one entry per parameter, empty for arrays.
struct FERRITE_API LaunchCall {
  Kernel kernel;
  Grid grid;
  std::vector<Value> values;

  std::string to_json() const;
  static LaunchCall from_json(std::string_view text);
};

/// A number for a scalar parameter. Integers may become floats; throws ValueError for the reverse, and for a
/// parameter that takes no number.
FERRITE_API Value number_argument(const Kernel& kernel, int parameter, Scalar number);
/// A value for a parameter that is not an array; throws ValueError unless it has the parameter's type.
FERRITE_API Value value_argument(const Kernel& kernel, int parameter, Value value);

/// An array in the form that emitted code and block programs take, or nothing if its elements are not
/// contiguous: then use a dense copy.
FERRITE_API std::optional<ArrayArgument> array_argument(Type type, const Array& array);

/// True if two arrays certainly have an element in common. Views with gaps are not examined in full: then it
/// may be false although they do.
FERRITE_API bool share_elements(const Array& a, const Array& b);

/// The bytes of a parameter that is not an array, laid out as in C.
FERRITE_API std::vector<std::byte> packed_value(const Module& module, const Value& value);

}  // namespace kernel

namespace op {

/// in: the array parameters of the kernel, in order. out: the arrays that it changes, with their final
/// contents. An output that is not the array itself starts as a copy of it.
struct FERRITE_API Launch {
  static constexpr LibraryName type_name = "launch";
  static constexpr bool takes_storage = true;  // the kernel says which dtypes it computes with
  kernel::LaunchCall call;

  std::string_view name() const {
    return call.kernel.defined() ? call.kernel.name() : std::string_view(type_name);
  }
  /// Throws ShapeError or DTypeError for arrays that do not fit their parameters. All floating arrays may be
  /// f64 instead of the kernel's dtype: Reference then computes in f64, as the oracle of the other backends.
  Metas infer(MetaSpan in) const;
  static void attributes(auto& self, auto&& visit) { visit("call", self.call); }
  /// Doubles the elements of an array of f32.
  Metas example(DType d);
  bool widened(MetaSpan in) const;
  Cost cost(MetaSpan in, MetaSpan out) const;
  /// How many threads may add to one element.
  double reduction_length(MetaSpan in) const;

  /// For backends: runs it through b.launch_kernel(kernel, grid, arguments), with a pointer to each argument
  /// as emitted code takes them. Throws DTypeError for arrays that are widened.
  template <class B>
  void run_on(B& b, Ins in, Outs out) const;

  /// The array parameters, and the output that each one is (-1: it is only read).
  struct Slot {
    int parameter;
    int output;
  };
  std::vector<Slot> slots() const;
};

template <class B>
void Launch::run_on(B& b, Ins in, Outs out) const {
  Metas metas;
  for (std::size_t i = 0; i < in.size(); ++i) metas.push_back(in[i].meta());
  if (widened(metas))
    throw DTypeError("[" + std::string(name()) + "] tensors of f64 for arrays of narrower floats: cast them");
  const kernel::Kernel& k = call.kernel;
  const auto count = static_cast<std::size_t>(k.parameters());
  std::vector<std::vector<std::byte>> bytes(count);
  std::vector<kernel::ArrayArgument> arrays(count);
  std::vector<void*> arguments(count);
  SmallVector<Array, 6> held;                                // dense copies live until the kernel has run
  SmallVector<std::pair<std::size_t, std::size_t>, 2> back;  // held, out
  const auto copy = [&](const Array& from, Array& to) {
    const Array* source[] = {&from};
    detail::run_kernel(b, op::Copy{to.dtype()}, Ins(source, 1), Outs(&to, 1));
  };
  std::size_t i = 0;
  for (const Slot& slot : slots()) {
    const auto p = static_cast<std::size_t>(slot.parameter);
    Array array = in[i++];
    if (slot.output >= 0) {
      Array& target = out[static_cast<std::size_t>(slot.output)];
      if (target.data() != array.data()) copy(array, target);
      array = target;
    }
    const kernel::Type type = k.parameter(slot.parameter).type;
    auto argument = kernel::array_argument(type, array);
    if (!argument) {
      Array dense = b.allocate(array.meta());
      copy(array, dense);
      if (slot.output >= 0) back.push_back({held.size(), static_cast<std::size_t>(slot.output)});
      argument = kernel::array_argument(type, dense);
      held.push_back(std::move(dense));
    }
    arrays[p] = *argument;
    arguments[p] = &arrays[p];
  }
  for (std::size_t p = 0; p < count; ++p) {
    if (k.parameter(static_cast<int>(p)).type.is_array()) continue;
    bytes[p] = kernel::packed_value(k.module(), call.values[p]);
    arguments[p] = bytes[p].data();
  }
  b.launch_kernel(k, call.grid, arguments.data());
  for (const auto& [copied, target] : back) copy(held[copied], out[target]);
}

}  // namespace op

// Kernels (backend/concept.hpp).
/// User kernels, in blocks of threads (kernel/block.hpp).
FERRITE_API void run(Cpu&, const op::Launch& op, Ins in, Outs out);
/// User kernels: compiled by NVRTC at the first launch, or loaded from the cache on disk. The threads per
/// block and the elements per thread are chosen by measurement (docs/kernels.md). Inside a capture a kernel
/// must have been launched or prepared before (BackendError).
FERRITE_API void run(Cuda&, const op::Launch& op, Ins in, Outs out);
}  // namespace ferrite
