// BatchSource: where training data comes from. A DataLoader is one; so is a function, or any class that a
// program derives.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ferrite/data/batch.hpp"

namespace ferrite::data {

/// The next batch is number `batch` of epoch `epoch`. Where several ranks have batches of their own, those of
/// all ranks are counted, so that another number of ranks can go on from there.
struct LoaderPosition {
  std::int64_t epoch = 0;
  std::int64_t batch = 0;
  friend bool operator==(const LoaderPosition&, const LoaderPosition&) = default;
};

/// From a position in the `all` batches of an epoch to one of a rank that has `own` of them. Batches that do
/// not fill a step of all ranks are left out. ValueError, in the name of `who`, if no epoch has the position.
FERRITE_API LoaderPosition position_on_rank(std::string_view who, LoaderPosition position, std::int64_t all,
                                            std::int64_t ranks, std::int64_t own);

/// Batches one after the other. One thread at a time.
class FERRITE_API BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// The next batch, or nothing if there is none left.
  virtual std::optional<HostBatch> pull() = 0;
  /// Describes the data and their order; a resumed run must have the same description.
  virtual std::string describe() const = 0;
  /// The position of the next batch; the trainer reports the epoch, and checkpoints keep both numbers.
  virtual LoaderPosition position() const = 0;
  /// Goes to a position that `position` gave, in this run or another. If a source cannot, a resumed run takes
  /// the next batches it gives, and is not the same bit for bit. Throws ValueError, with nothing changed.
  virtual bool can_seek() const { return false; }
  virtual void seek(LoaderPosition position);
  /// The approximate number of rows in its batches; evaluations use the same number.
  virtual std::int64_t batch_size() const { return 32; }
};

/// Batches that a function makes from their number, 0, 1, 2, ..., without end. If the function is pure, the
/// source resumes exactly.
class FERRITE_API Generated final : public BatchSource {
 public:
  using Function = std::function<std::optional<HostBatch>(std::int64_t number)>;

  /// `description` stands for the function in checkpoints. `batches_per_epoch`, if not 0, is only for
  /// reports: the numbers go on counting.
  Generated(std::string description, Function function, std::int64_t batches_per_epoch = 0);

  std::optional<HostBatch> pull() override;
  std::string describe() const override { return description_; }
  LoaderPosition position() const override;
  bool can_seek() const override { return true; }
  void seek(LoaderPosition position) override;
  std::int64_t batch_size() const override { return rows_; }

 private:
  std::string description_;
  Function function_;
  std::int64_t per_epoch_;
  std::int64_t next_ = 0;
  std::int64_t rows_ = 32;  // of the last batch
};

}  // namespace ferrite::data
