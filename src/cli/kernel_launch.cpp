#include "cli/kernel_launch.hpp"

#include <fmt/format.h>

#include "ferrite/backend/cuda_launch.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/tensor/host.hpp"
#include "ferrite/tensor/launch.hpp"

namespace ferrite::cli {

using namespace kernel;

namespace {

/// The interpreter takes every argument, and tensors do not.
void check_fits_tensors(const Kernel& kernel, int p, const Value& value) {
  const auto refuse = [&](const char* why) {
    const Variable& v = kernel.parameter(p);
    throw ValueError(fmt::format("[kernel run] '{}', {}: {}; run it without --backend", v.name,
                                 to_string(v.type, kernel.module().struct_names()), why));
  };
  if (value.type.is_array() && value.type.kind == Type::Kind::structure) refuse("no tensor holds structs");
  for (const Value& field : value.fields)
    if (field.type.is_array()) refuse("a struct with arrays in it is not launched on tensors");
}

}  // namespace

std::string launch_on(const std::string& name, const Kernel& kernel, const Grid& grid,
                      std::span<Value> arguments) {
  AnyBackend backend(name);
  std::vector<Tensor<AnyBackend>> tensors(arguments.size());
  std::vector<Argument<AnyBackend>> list(arguments.size());
  for (std::size_t p = 0; p < arguments.size(); ++p) {
    check_fits_tensors(kernel, static_cast<int>(p), arguments[p]);
    if (!arguments[p].type.is_array()) {
      list[p].value = arguments[p];
      continue;
    }
    // bf16 comes as f32, and what is narrower than i32 as i32.
    tensors[p] =
        cast(from_host(backend, tensor_from(arguments[p])), *dtype_of_elements(arguments[p].type.element()));
    list[p] = {&tensors[p], true, {}};
  }
  kernel::launch(backend, kernel, grid, std::span<Argument<AnyBackend>>(list));
  for (std::size_t p = 0; p < arguments.size(); ++p)
    if (tensors[p].defined()) arguments[p] = value_from(arguments[p].type, to_host(tensors[p]));

  std::string where = "ran on " + backend.describe();
  if (backend.device().kind == DeviceKind::cuda) {
    Cuda gpu(backend.device().index);
    where += ": " + to_string(launch_blocks(gpu, kernel, grid));
  }
  return where;
}

}  // namespace ferrite::cli
