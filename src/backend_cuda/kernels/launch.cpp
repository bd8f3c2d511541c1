// Kernels of the user on the GPU: the launch, and the choice of its parameters.
#include <fmt/format.h>

#include <bit>
#include <limits>

#include "backend_cuda/jit/kernel_images.hpp"
#include "backend_cuda/runtime/device_context.hpp"
#include "backend_cuda/runtime/libraries.hpp"
#include "backend_cuda/runtime/stopwatch.hpp"
#include "core/hash.hpp"
#include "decorators/profiled/launch_note.hpp"
#include "ferrite/backend/cuda_launch.hpp"
#include "ferrite/backend/evaluate.hpp"
#include "ferrite/core/integers.hpp"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/ops/launch.hpp"
#include "kernel/interpret/machine.hpp"
#include "kernel/ir/element_layout.hpp"

namespace ferrite {

using namespace cuda;

namespace {

constexpr std::string_view op_name_of_launches = "launch";  // memory reports keep names as they are
constexpr std::int64_t launch_worth_comparing = 1 << 18;    // threads

/// One launch: what emitted kernels take (kernel/emit.hpp).
class KernelLaunch {
 public:
  KernelLaunch(const Call& call, const kernel::Kernel& kernel, const kernel::Grid& grid, std::int64_t threads)
      : call_(call),
        kernel_(kernel),
        image_(KernelImages::of(call.context()).get(call, kernel_, grid.block_dim)),
        threads_(threads) {
    for (int axis = 0; axis < grid.dim.rank(); ++axis)
      grid_.shape[axis] = static_cast<std::int32_t>(grid.dim[axis]);
    grid_.block_dim = grid.block_dim;
    grid_.size = static_cast<std::int32_t>(threads);
  }

  LaunchBlocks start(void* const* arguments) {
    return start(kernel_.sees_blocks() ? own_blocks() : launch_shapes[choose(arguments)], arguments);
  }
  /// As start() would, without measuring.
  LaunchBlocks expected() {
    return launch_of(kernel_.sees_blocks() ? own_blocks() : launch_shapes[recall().value_or(0)]);
  }

 private:
  LaunchShape own_blocks() const { return {grid_.block_dim, 1}; }
  LaunchBlocks launch_of(LaunchShape shape) const {
    return {divide_up(threads_, std::int64_t{shape.threads} * shape.items), shape.threads, shape.items};
  }

  LaunchBlocks start(LaunchShape shape, void* const* arguments) {
    grid_.block_dim = shape.threads;
    std::vector<void*> parameters = {&grid_};
    parameters.insert(parameters.end(), arguments, arguments + kernel_.parameters());
    const LaunchBlocks launch = launch_of(shape);
    const LaunchConfig config(call_.stream(), grid_of(launch.blocks), launch.threads);
    check(cudaLaunchKernelExC(config.get(), reinterpret_cast<const void*>(image_->kernel), parameters.data()),
          call_.op());
    return launch;
  }

  Autotuner& tuner() const { return Libraries::of(call_.context()).tuner(); }
  std::size_t size() const {
    return static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(threads_)));
  }
  std::string problem() const {
    return fmt::format("launch {} {:016x} 2^{}", kernel_.name(), hash_text(kernel_.cuda_source()), size());
  }
  static std::vector<std::string> names() {
    std::vector<std::string> all;
    for (const LaunchShape s : launch_shapes) all.push_back(fmt::format("{}x{}", s.threads, s.items));
    return all;
  }

  /// The choice, if it is known or needs no measurement.
  std::optional<std::size_t> recall() {
    const std::int8_t known = image_->shapes[size()];
    if (known >= 0) return static_cast<std::size_t>(known);
    if (threads_ < launch_worth_comparing && tuner().compares()) return 0;
    return tuner().recall(problem(), names());
  }
  std::size_t choose(void* const* arguments) {
    auto choice = recall();
    if (!choice && !call_.context().is_capturing()) {
      choice = tuner().choose(problem(), names(), [&](std::size_t i) { return measure(i, arguments); });
      if (!choice) choice = 0;  // none could be measured, and the next launch need not try again
    }
    if (choice) image_->shapes[size()] = static_cast<std::int8_t>(*choice);
    return choice.value_or(0);
  }

  /// On copies of the arrays that the kernel changes; infinity if there can be none.
  double measure(std::size_t i, void* const* arguments) {
    try {
      const auto parameters = static_cast<std::size_t>(kernel_.parameters());
      std::vector<void*> trial(arguments, arguments + parameters);
      std::vector<kernel::ArrayArgument> arrays(parameters);
      std::vector<Scratch<std::byte>> copies;
      for (std::size_t p = 0; p < parameters; ++p) {
        if (!kernel_.uses()[p].changes()) continue;
        const kernel::Type type = kernel_.parameter(static_cast<int>(p)).type;
        arrays[p] = *static_cast<const kernel::ArrayArgument*>(arguments[p]);
        std::int64_t count = 1;
        for (int axis = type.dims; axis-- > 0; count *= arrays[p].shape[axis])
          if (arrays[p].strides[axis] != count && arrays[p].shape[axis] > 1)
            return i == 0 ? 0 : std::numeric_limits<double>::infinity();  // not dense: the first will do
        const auto bytes = count * kernel::layout_of(kernel_.module(), type.element()).size;
        copies.emplace_back(call_, bytes);
        call_.context().copy_on_device(copies.back().data(), arrays[p].data, static_cast<std::size_t>(bytes));
        arrays[p].data = copies.back().data();
        trial[p] = &arrays[p];
      }
      return median_seconds(call_.context(), [&] { start(launch_shapes[i], trial.data()); });
    } catch (const Error&) {  // refused at launch, or no memory to try it
      static_cast<void>(cudaGetLastError());
      return i == 0 ? 0 : std::numeric_limits<double>::infinity();
    }
  }

  const Call& call_;
  const kernel::Kernel& kernel_;
  std::shared_ptr<KernelImages::Image> image_;
  std::int64_t threads_;
  kernel::LaunchArgument grid_;
};

std::int64_t threads_of(const kernel::Kernel& kernel, const kernel::Grid& grid) {
  return kernel::checked_threads(kernel.function(), {grid.dim.begin(), grid.dim.end()}, grid.block_dim);
}

}  // namespace

void run(Cuda& cuda, const op::Launch& op, Ins in, Outs out) { op.run_on(cuda, in, out); }

void Cuda::launch_kernel(const kernel::Kernel& kernel, const kernel::Grid& grid, void* const* arguments) {
  const Call call(*this, op_name_of_launches);
  const std::int64_t threads = threads_of(kernel, grid);
  if (threads > 0) {
    const LaunchBlocks launch = KernelLaunch(call, kernel, grid, threads).start(arguments);
    if (stopwatch_runs()) detail::note_launch(to_string(launch));
  }
  call.finish();
}

LaunchBlocks launch_blocks(Cuda& cuda, const kernel::Kernel& kernel, const kernel::Grid& grid) {
  const Call call(cuda, op_name_of_launches);
  const std::int64_t threads = threads_of(kernel, grid);
  return threads > 0 ? KernelLaunch(call, kernel, grid, threads).expected() : LaunchBlocks{};
}

void Cuda::prepare(const kernel::Kernel& kernel, int block_dim) {
  const Call call(*this, op_name_of_launches);
  KernelImages::of(call.context()).get(call, kernel, block_dim);
}

}  // namespace ferrite
