// Kernels of the user: block programs on Cpu, the interpreter on Reference.
#include <limits>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/evaluate.hpp"
#include "ferrite/backend/reference.hpp"
#include "ferrite/ops/launch.hpp"
#include "kernel/interpret/packed_values.hpp"

namespace ferrite {

namespace {

std::span<const std::int64_t> extents(const kernel::Grid& grid) { return {grid.dim.begin(), grid.dim.end()}; }

kernel::InterpretOptions options_of(const kernel::Kernel& kernel, const kernel::Grid& grid,
                                    kernel::Precision precision) {
  kernel::InterpretOptions options{precision, grid.block_dim, std::numeric_limits<std::int64_t>::max()};
  options.refuse_races = kernel.is_adjoint();  // its contract: kernel/adjoint.hpp
  return options;
}

/// Arrays of f64 for a kernel of narrower floats: nothing is rounded.
void interpret_widened(Reference& b, const op::Launch& op, Ins in, Outs out) {
  const kernel::Kernel& k = op.call.kernel;
  std::vector<kernel::Value> values = op.call.values;
  const auto slots = op.slots();
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const kernel::Type type = k.parameter(slots[i].parameter).type;
    const HostTensor host = HostTensor::make(in[i].dtype(), in[i].shape(), [&](std::span<std::byte> bytes) {
      b.copy_to_host(in[i], bytes.data());
    });
    // By way of an array of f64, whose numbers are those of any float.
    kernel::Value& value = values[static_cast<std::size_t>(slots[i].parameter)];
    value = kernel::value_from(
        kernel::is_float(type.scalar) ? type.with_scalar(kernel::ScalarType::f64) : type, host);
    value.type = type;
  }
  kernel::interpret(k.module(), k.function(), extents(op.call.grid), values,
                    options_of(k, op.call.grid, kernel::Precision::f64));
  for (const auto& slot : slots) {
    if (slot.output < 0) continue;
    kernel::Value& value = values[static_cast<std::size_t>(slot.parameter)];
    if (kernel::is_float(value.type.scalar)) value.type = value.type.with_scalar(kernel::ScalarType::f64);
    const HostTensor host = kernel::tensor_from(value);
    Array dense = b.allocate({host.shape(), host.dtype()});
    b.copy_from_host(dense, host.bytes().data());
    const Array* source[] = {&dense};
    Array& target = out[static_cast<std::size_t>(slot.output)];
    run(b, op::Copy{target.dtype()}, Ins(source, 1), Outs(&target, 1));
  }
}

}  // namespace

void run(Cpu& cpu, const op::Launch& op, Ins in, Outs out) { op.run_on(cpu, in, out); }

void Cpu::launch_kernel(const kernel::Kernel& kernel, const kernel::Grid& grid, void* const* arguments) {
  kernel::BlockOptions options;
  options.block_dim = grid.block_dim;
  kernel.program().run(extents(grid), arguments, options);
}

void run(Reference& reference, const op::Launch& op, Ins in, Outs out) {
  if (op.widened(detail::metas_of(in))) return interpret_widened(reference, op, in, out);
  op.run_on(reference, in, out);
}

void Reference::launch_kernel(const kernel::Kernel& kernel, const kernel::Grid& grid,
                              void* const* arguments) {
  kernel::interpret_packed(kernel.module(), kernel.function(), extents(grid), arguments,
                           options_of(kernel, grid, kernel::Precision::native));
}

}  // namespace ferrite
