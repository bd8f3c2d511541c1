// How much memory a training needs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/gpt/text_files.hpp"
#include "cli/gpt/train.hpp"
#include "ferrite/backend/cuda_device.hpp"

namespace ferrite::cli::gpt {

namespace {

double total_bytes(const AnyBackend& backend) {
  const Device device = backend.device();
  if (device.kind == DeviceKind::cuda) {
    for (const CudaDeviceInfo& info : cuda_devices())
      if (info.index == device.index) return static_cast<double>(info.total_bytes);
  }
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
}

}  // namespace

TrainMemory estimate_memory(const TrainOptions& o, bool is_16bit) {
  const auto parameters = static_cast<double>(o.model.parameter_count());
  const auto dim = static_cast<double>(o.model.dim), layers = static_cast<double>(o.model.layers);
  const auto length = static_cast<double>(o.length);
  // Two norms, queries, keys and values, attention, two sums with the residual stream, 4 + 4 in the middle
  // of the feed-forward, and their gradients on the way back.
  const double kept_per_layer = 18 * dim * (is_16bit ? 2.5 : 4);
  const double scores = static_cast<double>(o.model.padded_vocab()) * (is_16bit ? 4 : 8);
  return {parameters * (is_16bit ? 18 : 16), length * (layers * kept_per_layer + scores)};
}

std::string too_large(const TrainOptions& o, const AnyBackend& backend, bool is_16bit,
                      const std::string& reason) {
  const TrainMemory memory = estimate_memory(o, is_16bit);
  const double total = total_bytes(backend);
  const auto rows = static_cast<std::int64_t>((0.9 * total - memory.fixed) / memory.per_row);
  const std::string needs = fmt::format(
      "a batch of {} rows of {} tokens needs about {} beside {} for the model and its optimiser", o.batch,
      o.length, size_text(memory.per_row * static_cast<double>(o.batch)), size_text(memory.fixed));
  if (rows < 1)
    return fmt::format("[gpt train] {}; {} has {}: give a smaller model or a smaller --length ({})", needs,
                       backend.describe(), size_text(total), reason);
  const std::int64_t fitting = std::min(rows, std::max<std::int64_t>(o.batch - 1, 1));
  return fmt::format(
      "[gpt train] {}; {} has {}: about {} rows fit: give --batch {} and --micro-batches {} ({})", needs,
      backend.describe(), size_text(total), fitting, fitting,
      (o.batch * o.micro_batches + fitting - 1) / fitting, reason);
}

}  // namespace ferrite::cli::gpt
