// Course: the synthetic tables that a prior-fitted network learns from, batch by batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/core/export.hpp"
#include "ferrite/models/priors/config.hpp"

namespace ferrite::pfn {

/// Rows of a table that are shown with their labels, and rows whose labels are to be predicted.
struct RowCounts {
  std::int64_t train = 0, query = 0;
  friend bool operator==(const RowCounts&, const RowCounts&) = default;
};

/// The tables of one batch all have this size, so that nothing is padded.
struct TableSizes {
  std::int64_t tables = 0;
  RowCounts rows;
  std::int64_t columns = 0;
  friend bool operator==(const TableSizes&, const TableSizes&) = default;
};

/// From batch `first` on, sizes are drawn from these lists, each entry as often as any other.
struct Stage {
  std::int64_t first = 0;
  std::vector<RowCounts> rows;
  std::vector<std::int64_t> columns;
};

/// Batches of one size are counted by themselves, and one after the other they take the datasets of the prior
/// that belong to that size: so many of them can be made at once.
struct CourseBatch {
  TableSizes sizes;
  std::int64_t first_dataset = 0;
};

/// What batch `number` holds depends on the config, the number and the rank alone: a run can go on from any
/// batch.
struct FERRITE_API CourseConfig {
  /// Of the values. Its rows, features and train_share are those of the sizes that are drawn.
  priors::Config prior;
  /// In ascending order of `first`; the first begins at 0. Later ones usually have longer tables.
  std::vector<Stage> stages;
  /// Tables fill a batch until it has about this many cells, labels included.
  std::int64_t cells = 100'000;
  std::uint64_t seed = 1;

  CourseConfig with_prior(const priors::Config& v) const {
    return ferrite::detail::with(*this, &CourseConfig::prior, v);
  }
  CourseConfig with_stages(std::vector<Stage> v) const {
    return ferrite::detail::with(*this, &CourseConfig::stages, std::move(v));
  }
  CourseConfig with_cells(std::int64_t v) const {
    return ferrite::detail::with(*this, &CourseConfig::cells, v);
  }
  CourseConfig with_seed(std::uint64_t v) const {
    return ferrite::detail::with(*this, &CourseConfig::seed, v);
  }

  /// For a run of so many batches of a network with so many registers: tables of up to 496 rows, and in the
  /// last fifth of up to 1,136; 3 to 63 columns, mixed alike in both stages. Registers and train rows
  /// together are multiples of 128 rows mostly, as are query rows: attention is fastest on those.
  static CourseConfig standard(std::int64_t batches, std::int64_t registers);

  /// The size of batch `number`.
  TableSizes sizes_of(std::int64_t number) const;
  /// The prior of tables of one size.
  priors::Config prior_of(const TableSizes& sizes) const;
  /// A batch that no run comes to, for evaluations; of the sizes of batch `number` of the last stage.
  CourseBatch held_out(std::int64_t number) const;
  static bool is_held_out(const CourseBatch& batch);
  /// The datasets from one batch of a size to the next: those that share laws stay in one batch.
  std::int64_t datasets_between(const TableSizes& sizes) const;
  /// The first dataset of a size, in the prior's numbering. Sizes share none.
  std::int64_t first_dataset(const TableSizes& sizes) const;
  /// All sizes that the course can draw.
  std::vector<TableSizes> all_sizes() const;
  /// Every member, for checkpoints: a run resumes only with the same course.
  std::string describe() const;
  /// Throws ValueError that names the rule, also for sizes that the prior refuses.
  void check() const;

 private:
  TableSizes sizes_with(const RowCounts& rows, std::int64_t columns) const;
  const Stage& stage_of(std::int64_t number) const;
};

/// The batches of a course in their order. Ranks that train together have the same sizes and other datasets.
class FERRITE_API CourseReader {
 public:
  /// Throws ValueError unless the rank lies in 0 to 127.
  explicit CourseReader(const CourseConfig& course, std::int64_t rank = 0);
  CourseBatch next();
  /// The number of the next batch.
  std::int64_t position() const { return next_; }
  void seek(std::int64_t number);

 private:
  struct Counted {
    TableSizes sizes;
    std::int64_t batches = 0;
  };
  Counted& counted(const TableSizes& sizes);

  CourseConfig course_;
  std::int64_t rank_, next_ = 0;
  std::vector<Counted> before_;  // batches of each size before the next one
};

}  // namespace ferrite::pfn
