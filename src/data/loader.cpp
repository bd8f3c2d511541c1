// Which rows make which batch.
#include "ferrite/data/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"

namespace ferrite::data {
namespace {

/// Distinct from the streams that an Rng of the same seed hands out, which count from 0.
constexpr std::uint64_t shuffle_streams = std::uint64_t{1} << 63;

}  // namespace

DataLoader::DataLoader(Dataset dataset, LoaderConfig config) : dataset_(std::move(dataset)), config_(config) {
  const std::int64_t n = dataset_.size(), size = config_.batch_size;
  if (size < 1) throw ValueError(fmt::format("[loader] batch size {}: must be at least 1", size));
  const std::int64_t ranks = config_.ranks;
  if (config_.rank < 0 || config_.rank >= ranks)
    throw ValueError(fmt::format("[loader] rank {} of {}: must lie in 0 to {}", config_.rank, ranks,
                                 std::max<std::int64_t>(ranks, 1) - 1));
  const bool drops = config_.remainder == Remainder::drop || ranks > 1;
  batches_ = drops ? n / (size * ranks) : (n + size - 1) / size;
  if (batches_ == 0)
    throw ValueError(fmt::format("[loader] {} rows in batches of {}{}: needs at least one batch", n, size,
                                 ranks > 1 ? fmt::format(" on {} ranks", ranks) : ""));
}

std::string DataLoader::describe() const {
  return fmt::format(
      "{} rows in batches of {}{}, {}", dataset_.size(), config_.batch_size,
      config_.remainder == Remainder::drop ? " without the last" : "",
      config_.order == Order::shuffled ? fmt::format("shuffled by seed {}", config_.seed) : "in order");
}

HostBatch DataLoader::next() {
  const std::int64_t n = dataset_.size();
  if (order_epoch_ != position_.epoch) {
    if (config_.order == Order::shuffled) {
      order_ = random_permutation(
          n, {config_.seed, shuffle_streams + static_cast<std::uint64_t>(position_.epoch)});
    } else {
      order_.resize(static_cast<std::size_t>(n));
      std::iota(order_.begin(), order_.end(), std::int64_t{0});
    }
    order_epoch_ = position_.epoch;
  }
  const std::int64_t begin = (position_.batch * config_.ranks + config_.rank) * config_.batch_size;
  const std::int64_t count = std::min(config_.batch_size, n - begin);
  const HostBatch batch = dataset_.rows(
      std::span(order_).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
  if (++position_.batch == batches_) position_ = {position_.epoch + 1, 0};
  return batch;
}

void DataLoader::seek(LoaderPosition position) {
  const bool keeps = config_.remainder == Remainder::keep;  // one rank may have stood before a short batch
  const std::int64_t rows = dataset_.size() + (keeps ? config_.batch_size - 1 : 0);
  position_ = position_on_rank("loader", position, rows / config_.batch_size, config_.ranks, batches_);
}

}  // namespace ferrite::data
