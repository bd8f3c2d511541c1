// Launches of kernels that users write in CUDA C++, and the checks that CUDA leaves to the caller.
#include "ferrite/cuda/raw_kernel.hpp"

#include <fmt/format.h>

#include "backend_cuda/jit/kernel_images.hpp"
#include "backend_cuda/kit/shared_memory.hpp"

namespace ferrite {

using namespace cuda;

namespace {

constexpr std::string_view op_name_of_raw_kernels = "raw kernel";  // memory reports keep names as they are
constexpr std::int64_t free_shared_bytes = 48 << 10;               // more must be asked for

/// Of the state of a RawKernel.
kernel::RawText text_of(const auto& state) { return {state.source, state.name + ".cu", state.options}; }

dim3 dim3_of(RawGrid::Extents e) {
  return {static_cast<unsigned>(e.x), static_cast<unsigned>(e.y), static_cast<unsigned>(e.z)};
}

/// CUDA only says that a configuration is invalid.
void check_grid(const std::string& name, const RawGrid& grid, const cudaDeviceProp& gpu) {
  const auto check_extent = [&](const char* what, char axis, std::int64_t given, std::int64_t least,
                                std::int64_t most) {
    if (given < least || given > most)
      throw ValueError(
          fmt::format("[{}] {} {} along {}: must be {} to {}", name, given, what, axis, least, most));
  };
  const auto check_extents = [&](const char* what, RawGrid::Extents e, std::int64_t least, const int* most) {
    check_extent(what, 'x', e.x, least, most[0]);
    check_extent(what, 'y', e.y, least, most[1]);
    check_extent(what, 'z', e.z, least, most[2]);
  };
  check_extents("blocks", grid.blocks, 0, gpu.maxGridSize);
  check_extents("threads", grid.threads, 1, gpu.maxThreadsDim);
  const std::int64_t threads = grid.threads.x * grid.threads.y * grid.threads.z;
  if (threads > gpu.maxThreadsPerBlock)
    throw ValueError(fmt::format("[{}] blocks of {} threads: at most {}; use more and smaller blocks", name,
                                 threads, gpu.maxThreadsPerBlock));
  const auto most_shared = static_cast<std::int64_t>(gpu.sharedMemPerBlockOptin);
  if (grid.shared_bytes < 0 || grid.shared_bytes > most_shared)
    throw ValueError(fmt::format("[{}] {} bytes of shared memory: a block of this GPU has at most {}", name,
                                 grid.shared_bytes, most_shared));
}

void check_tensor(const std::string& name, std::size_t i, const Array& array, Device device) {
  if (!array.defined())
    throw ValueError(fmt::format("[{}] argument {} is a tensor without data: give it one", name, i + 1));
  if (array.device() != device)
    throw DeviceError(fmt::format("[{}] argument {} is on {}, and the launch on {}: copy it there first",
                                  name, i + 1, to_string(array.device()), to_string(device)));
  if (!array.layout().is_contiguous())
    throw ShapeError(
        fmt::format("[{}] argument {}, {}, is not dense: a raw kernel sees only its first element's address; "
                    "pass contiguous(x)",
                    name, i + 1, to_string(array.meta())));
}

/// The launch would read past the arguments, or shift them.
void check_sizes(const std::string& name, std::span<const RawArgument> arguments,
                 const std::vector<std::size_t>& parameters) {
  if (arguments.size() != parameters.size())
    throw ValueError(fmt::format("[{}] {} arguments: the kernel has {} parameters", name, arguments.size(),
                                 parameters.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_tensor = arguments[i].is_tensor();
    const std::size_t given = is_tensor ? sizeof(void*) : arguments[i].bytes().size();
    if (given == parameters[i]) continue;
    throw ValueError(fmt::format("[{}] argument {} is {} of {} bytes, and the kernel's parameter has {}: {}",
                                 name, i + 1, is_tensor ? "a tensor, a pointer" : "a value", given,
                                 parameters[i],
                                 is_tensor ? "the order of the arguments may be wrong"
                                           : "give a value of the parameter's type, such as 2.0f for float"));
  }
}

}  // namespace

const RawKernel::State& RawKernel::state() const {
  if (!state_) throw ValueError("[raw kernel] a default-constructed RawKernel: make one by from_source");
  return *state_;
}

void RawKernel::launch_list(Cuda& cuda, const RawGrid& grid, std::span<const RawArgument> arguments) const {
  const State& s = state();
  const Call call(cuda, op_name_of_raw_kernels);
  check_grid(s.name, grid, call.properties());
  const auto image = KernelImages::of(call.context()).get_raw(call, s.name, s.id, [&] { return text_of(s); });
  std::vector<void*> data(arguments.size()), parameters;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const RawArgument& a = arguments[i];
    if (a.is_tensor()) {
      check_tensor(s.name, i, a.array(), cuda.device());
      data[i] = a.array().data();
      parameters.push_back(&data[i]);
    } else {
      parameters.push_back(const_cast<std::byte*>(a.bytes().data()));
    }
  }
  if (image->parameters) check_sizes(s.name, arguments, *image->parameters);
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) return;

  const auto* const kernel = reinterpret_cast<const void*>(image->kernel);
  if (grid.shared_bytes > free_shared_bytes) allow_all_shared_memory(call, kernel);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3_of(grid.blocks);
  config.blockDim = dim3_of(grid.threads);
  config.dynamicSmemBytes = static_cast<std::size_t>(grid.shared_bytes);
  config.stream = call.stream();
  check(cudaLaunchKernelExC(&config, kernel, parameters.data()), s.name);
  for (const RawArgument& a : arguments)
    if (a.is_tensor() && a.changes()) a.array().buffer()->bump_version();
  call.finish();
}

void RawKernel::prepare(Cuda& cuda) const {
  const State& s = state();
  const Call call(cuda, op_name_of_raw_kernels);
  KernelImages::of(call.context()).get_raw(call, s.name, s.id, [&] { return text_of(s); });
}

std::string RawKernel::ptx(int architecture) const { return kernel::raw_ptx(text_of(state()), architecture); }

}  // namespace ferrite
