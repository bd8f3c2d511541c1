// Launches a fused kernel: on a GPU through its backend, on the CPU without a compiler, for any backend.
#include "decorators/lazy/fused_kernel.hpp"

namespace ferrite::lazy {

namespace {

/// A scalar as kernels take it. Integers of every width begin with their lowest byte.
union Packed {
  float f32;
  double f64;
  std::int64_t integer;
};
Packed pack(const ScalarArgument& argument) {
  if (argument.type == kernel::ScalarType::f32) return {.f32 = static_cast<float>(argument.value.real)};
  if (argument.type == kernel::ScalarType::f64) return {.f64 = argument.value.real};
  return {.integer = argument.value.integer};
}

}  // namespace

void FusedKernel::launch(Executor& executor, Device device, const Shape& grid,
                         std::span<kernel::ArrayArgument> arrays, std::span<const ScalarArgument> scalars) {
  std::vector<Packed> values;
  for (const ScalarArgument& s : scalars) values.push_back(pack(s));
  std::vector<void*> arguments;
  for (kernel::ArrayArgument& a : arrays) arguments.push_back(&a);
  for (Packed& v : values) arguments.push_back(&v);
  const std::span<const std::int64_t> dim(grid.begin(), grid.end());
  if (device.kind == DeviceKind::cuda)
    executor.launch(compiled, grid, arguments.data());
  else
    compiled.program().run(dim, arguments.data());
  ++launches;
}

}  // namespace ferrite::lazy
