// Prefetch: a source whose batches are made ahead on a thread, while the trainer works on earlier ones.
#pragma once

#include <memory>

#include "ferrite/data/source.hpp"

namespace ferrite::data {

/// The same batches in the same order as `source`, which must outlive it and which nobody else may use
/// meanwhile. An error of the source is thrown by the pull that would have returned the batch. The position
/// is that of the batches handed out, so a run resumes exactly if the source can seek. The source itself is
/// up to `depth` batches ahead; when the Prefetch ends, a source that can seek is put back to the position.
///
///     data::DataLoader loader(training);
///     data::Prefetch ahead(loader);
///     train::Trainer<B> trainer(net, optimizer, ahead, step, config);
class FERRITE_API Prefetch final : public BatchSource {
 public:
  /// Throws ValueError if depth < 1. The thread starts with the first pull.
  explicit Prefetch(BatchSource& source, int depth = 2);
  ~Prefetch() override;

  std::optional<HostBatch> pull() override;
  std::string describe() const override { return description_; }
  LoaderPosition position() const override { return position_; }
  bool can_seek() const override { return source_.can_seek(); }
  void seek(LoaderPosition position) override;
  std::int64_t batch_size() const override { return rows_; }

 private:
  class Worker;

  BatchSource& source_;
  std::string description_;
  int depth_;
  LoaderPosition position_;
  std::int64_t rows_;
  std::unique_ptr<Worker> worker_;  // null before the first pull and after a seek
};

}  // namespace ferrite::data
