// DataLoader: batches in an order that depends only on the seed and the epoch, so that its position is two
// numbers.
#pragma once

#include <iterator>

#include "ferrite/data/dataset.hpp"
#include "ferrite/data/source.hpp"

namespace ferrite::data {

/// shuffled: a different order in every epoch, which depends only on the seed and the epoch.
enum class Order : std::uint8_t { shuffled, sequential };
/// What happens to the last batch of an epoch if the batch size does not divide the data.
enum class Remainder : std::uint8_t { keep, drop };

/// How a DataLoader cuts its data into batches.
struct LoaderConfig {
  std::int64_t batch_size = 32;
  Order order = Order::shuffled;
  Remainder remainder = Remainder::keep;
  std::uint64_t seed = 0;
  /// This process takes every ranks-th batch, from batch `rank` on. With several ranks, rows that do not fill
  /// a batch on every one are dropped from the end of the epoch.
  std::int64_t rank = 0, ranks = 1;

  LoaderConfig with_batch_size(std::int64_t v) const {
    return detail::with(*this, &LoaderConfig::batch_size, v);
  }
  LoaderConfig with_order(Order v) const { return detail::with(*this, &LoaderConfig::order, v); }
  LoaderConfig with_remainder(Remainder v) const { return detail::with(*this, &LoaderConfig::remainder, v); }
  LoaderConfig with_seed(std::uint64_t v) const { return detail::with(*this, &LoaderConfig::seed, v); }
  LoaderConfig with_rank(std::int64_t number, std::int64_t of) const {
    return detail::with(detail::with(*this, &LoaderConfig::rank, number), &LoaderConfig::ranks, of);
  }
};

/// One thread at a time.
class FERRITE_API DataLoader final : public BatchSource {
 public:
  /// Throws ValueError for a batch size below 1, a rank that is not below ranks, and where no epoch would
  /// have a batch.
  explicit DataLoader(Dataset dataset, LoaderConfig config = {});

  std::int64_t batches_per_epoch() const { return batches_; }
  /// "1437 rows in batches of 64, shuffled by seed 0": what fixes the order of the data. The same on all
  /// ranks, in any number.
  std::string describe() const override;
  const Dataset& dataset() const { return dataset_; }
  const LoaderConfig& config() const { return config_; }

  /// The batch at the position, which moves on; epochs follow each other without end.
  HostBatch next();
  std::optional<HostBatch> pull() override { return next(); }
  LoaderPosition position() const override { return {position_.epoch, position_.batch * config_.ranks}; }
  bool can_seek() const override { return true; }
  /// Throws ValueError for a position that no epoch has.
  void seek(LoaderPosition position) override;
  std::int64_t batch_size() const override { return config_.batch_size; }

  /// What is left of the current epoch, on a backend: for (const auto& [x, y] : loader.epoch(backend)).
  template <class B>
  class Epoch {
   public:
    Epoch(DataLoader& loader, B& backend) : loader_(loader), backend_(backend) {}
    class Iterator {
     public:
      Iterator(Epoch& epoch, std::int64_t left) : epoch_(epoch), left_(left) { read(); }
      const Batch<B>& operator*() const { return batch_; }
      Iterator& operator++() {
        --left_;
        read();
        return *this;
      }
      bool operator==(std::default_sentinel_t) const { return left_ == 0; }

     private:
      void read() {
        if (left_ > 0) batch_ = to_batch(epoch_.backend_, epoch_.loader_.next());
      }
      Epoch& epoch_;
      std::int64_t left_;
      Batch<B> batch_;
    };
    Iterator begin() { return {*this, loader_.batches_ - loader_.position_.batch}; }
    std::default_sentinel_t end() const { return {}; }

   private:
    DataLoader& loader_;
    B& backend_;
  };
  template <class B>
  Epoch<B> epoch(B& backend) {
    return {*this, backend};
  }

 private:
  Dataset dataset_;
  LoaderConfig config_;
  std::int64_t batches_;
  LoaderPosition position_;
  std::vector<std::int64_t> order_;  // of epoch order_epoch_
  std::int64_t order_epoch_ = -1;
};

}  // namespace ferrite::data
