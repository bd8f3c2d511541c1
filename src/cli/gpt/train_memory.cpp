// How much memory a training needs.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cli/gpt/text_files.hpp"
#include "cli/gpt/train.hpp"
#include "cli/machine.hpp"
#include "ferrite/backend/cuda_device.hpp"

namespace ferrite::cli::gpt {

namespace {

/// What ferrite may take of a GPU: FERRITE_CUDA_MEMORY_LIMIT, or more than any GPU has.
double limit_of(AnyBackend backend) {
  const Cuda* const cuda = backend.get_if<Cuda>();
  return cuda ? static_cast<double>(cuda->memory_limit()) : std::numeric_limits<double>::infinity();
}

double total_bytes(const AnyBackend& backend) {
  const Device device = backend.device();
  if (device.kind == DeviceKind::cuda) {
    for (const CudaDeviceInfo& info : cuda_devices())
      if (info.index == device.index)
        return std::min(static_cast<double>(info.total_bytes), limit_of(backend));
  }
  return static_cast<double>(memory_bytes());
}

}  // namespace

TrainMemory estimate_memory(const TrainOptions& o, bool is_16bit) {
  const auto parameters = static_cast<double>(o.model.parameter_count());
  const auto dim = static_cast<double>(o.model.dim), layers = static_cast<double>(o.model.layers);
  const auto length = static_cast<double>(o.length);
  // Two norms, queries, keys and values, attention, two sums with the residual stream, 4 + 4 in the middle
  // of the feed-forward, and a little for gradients on the way back. Scores are made in pieces, when there is
  // room for them. Measured: 34 to 38 bytes in bf16 on an H200 (benches/results/2026-11-17-h200-sizes).
  const double kept_per_layer = dim * (is_16bit ? 37 : 74);
  return {parameters * (is_16bit ? 18 : 16), length * layers * kept_per_layer};
}

std::string too_large(std::string_view command, const TrainOptions& o, const AnyBackend& backend,
                      bool is_16bit, const std::string& reason) {
  const TrainMemory memory = estimate_memory(o, is_16bit);
  const double total = total_bytes(backend);
  const auto rows = static_cast<std::int64_t>((0.9 * total - memory.fixed) / memory.per_row);
  const std::string needs = fmt::format(
      "a batch of {} rows of {} tokens needs about {} beside {} for the model and its optimiser", o.batch,
      o.length, size_text(memory.per_row * static_cast<double>(o.batch)), size_text(memory.fixed));
  if (rows < 1)
    return fmt::format("[{}] {}; {} has {}: give a smaller model or a smaller --length ({})", command, needs,
                       backend.describe(), size_text(total), reason);
  const std::int64_t fitting = std::min(rows, std::max<std::int64_t>(o.batch - 1, 1));
  std::string give = fmt::format("--batch {}", fitting);
  if (command == "gpt train")
    give += fmt::format(" and --micro-batches {}", (o.batch * o.micro_batches + fitting - 1) / fitting);
  return fmt::format("[{}] {}; {} has {}: about {} rows fit: give {} ({})", command, needs,
                     backend.describe(), size_text(total), fitting, give, reason);
}

}  // namespace ferrite::cli::gpt
