// Batches by their number.
#include "ferrite/data/source.hpp"

#include <fmt/format.h>

#include "ferrite/core/error.hpp"

namespace ferrite::data {

LoaderPosition position_on_rank(std::string_view who, LoaderPosition position, std::int64_t all,
                                std::int64_t ranks, std::int64_t own) {
  if (position.epoch < 0 || position.batch < 0 || position.batch >= all)
    throw ValueError(fmt::format("[{}] epoch {}, batch {}: batches of an epoch are 0 to {}", who,
                                 position.epoch, position.batch, all - 1));
  const std::int64_t batch = (position.batch + ranks - 1) / ranks;
  return batch < own ? LoaderPosition{position.epoch, batch} : LoaderPosition{position.epoch + 1, 0};
}

void BatchSource::seek(LoaderPosition position) {
  throw ValueError(fmt::format("[batch source] {} cannot seek: epoch {}, batch {} was asked for", describe(),
                               position.epoch, position.batch));
}

Generated::Generated(std::string description, Function function, std::int64_t batches_per_epoch)
    : description_(std::move(description)), function_(std::move(function)), per_epoch_(batches_per_epoch) {
  if (!function_) throw ValueError("[generated] no function: needs one from a number to a batch");
  if (per_epoch_ < 0)
    throw ValueError(fmt::format("[generated] {} batches per epoch: must not be negative", per_epoch_));
}

std::optional<HostBatch> Generated::pull() {
  std::optional<HostBatch> batch = function_(next_);
  if (!batch) return batch;
  ++next_;
  // The last batch of an epoch may be short.
  if (per_epoch_ == 1 || position().batch > 0 || batch->size() > rows_) rows_ = batch->size();
  return batch;
}

LoaderPosition Generated::position() const {
  return per_epoch_ == 0 ? LoaderPosition{0, next_} : LoaderPosition{next_ / per_epoch_, next_ % per_epoch_};
}

void Generated::seek(LoaderPosition position) {
  if (position.epoch < 0 || position.batch < 0 || (per_epoch_ == 0 && position.epoch != 0)) {
    throw ValueError(fmt::format("[generated] epoch {}, batch {}: no batch has this place", position.epoch,
                                 position.batch));
  }
  next_ = position.epoch * per_epoch_ + position.batch;
}

}  // namespace ferrite::data
