#include "ferrite/models/pfn/course.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"

namespace ferrite::pfn {

namespace {

// Streams of the random numbers that choose sizes.
constexpr std::uint64_t row_draws = 0, column_draws = 1;

// The prior's numbering has 2^48 datasets.
constexpr std::int64_t datasets_of_a_size = std::int64_t{1} << 40, most_sizes = 256;
constexpr std::int64_t datasets_of_a_rank = std::int64_t{1} << 32, most_ranks = 128;  // of a size

std::size_t draw(std::uint64_t seed, std::uint64_t stream, std::int64_t number, std::size_t count) {
  return static_cast<std::size_t>(
      integer_at({seed, stream}, static_cast<std::uint64_t>(number), 0, static_cast<std::int64_t>(count)));
}

}  // namespace

CourseConfig CourseConfig::standard(std::int64_t batches, std::int64_t registers) {
  const auto filled = [&](std::int64_t tiles) { return std::max<std::int64_t>(128 * tiles - registers, 16); };
  // Few of them: a GPU makes plans and a recording for every pair of rows and columns.
  const std::vector<std::int64_t> columns = {3, 5, 8, 13, 21, 36, 63};
  const std::vector<RowCounts> shorter = {{64, 64}, {filled(1), 128}, {filled(2), 128}, {filled(3), 128}};
  const std::vector<RowCounts> longer = {
      {filled(1), 128}, {filled(2), 128}, {filled(4), 128}, {filled(6), 128}, {filled(8), 128}};
  // All families, and columns and classes as real tables have them (the preset "realistic"), less extreme.
  priors::Config prior;
  prior.group_size = 1;  // a batch of few tables should still be of many kinds
  prior.weights.mlp_scm = 0.45, prior.weights.tree_scm = 0.2, prior.weights.graph = 0.35;
  prior.post.binary_share = 0.4;
  prior.post.cuts = priors::ClassCuts::shares;
  prior.post.categorical_share = 0.6;
  prior.post.category_scale = 6;
  prior.post.category_codes = true;
  prior.post.skewed_share = 0.3;
  prior.post.missing_share = 0.25;
  prior.post.missing_columns = 0.5;
  prior.post.missing_rate = 0.25;
  std::vector<Stage> stages = {{0, shorter, columns}};
  if (batches >= 5) stages.push_back({batches - batches / 5, longer, columns});
  return CourseConfig{}.with_prior(prior).with_stages(stages);
}

const Stage& CourseConfig::stage_of(std::int64_t number) const {
  const auto later = std::ranges::find_if(stages, [&](const Stage& stage) { return stage.first > number; });
  return *(later - 1);
}

TableSizes CourseConfig::sizes_with(const RowCounts& rows, std::int64_t columns) const {
  const std::int64_t of_a_table = (rows.train + rows.query) * (columns + 1);
  return {std::max<std::int64_t>(1, cells / of_a_table), rows, columns};
}

TableSizes CourseConfig::sizes_of(std::int64_t number) const {
  const Stage& stage = stage_of(number);
  return sizes_with(stage.rows[draw(seed, row_draws, number, stage.rows.size())],
                    stage.columns[draw(seed, column_draws, number, stage.columns.size())]);
}

priors::Config CourseConfig::prior_of(const TableSizes& sizes) const {
  priors::Config config = prior;
  const auto rows = static_cast<int>(sizes.rows.train + sizes.rows.query);
  const auto columns = static_cast<int>(sizes.columns);
  const double share = static_cast<double>(sizes.rows.train) / rows;
  config.rows = {rows, rows};
  config.features = {columns, columns};
  config.train_share = {share, share};
  // Every class has rows of both kinds: short tables have fewer classes.
  const auto most = static_cast<int>(std::min(sizes.rows.train, sizes.rows.query) / 2);
  config.post.classes.max = std::clamp(most, config.post.classes.min, config.post.classes.max);
  return config;
}

std::vector<TableSizes> CourseConfig::all_sizes() const {
  std::vector<TableSizes> sizes;
  for (const Stage& stage : stages) {
    for (const RowCounts& rows : stage.rows) {
      for (const std::int64_t columns : stage.columns)
        if (const TableSizes one = sizes_with(rows, columns); std::ranges::find(sizes, one) == sizes.end())
          sizes.push_back(one);
    }
  }
  return sizes;
}

std::int64_t CourseConfig::datasets_between(const TableSizes& sizes) const {
  const std::int64_t group = prior.group_size;
  return (sizes.tables + group - 1) / group * group;
}

std::int64_t CourseConfig::first_dataset(const TableSizes& sizes) const {
  const std::vector<TableSizes> all = all_sizes();
  return (std::ranges::find(all, sizes) - all.begin()) * datasets_of_a_size;
}

CourseBatch CourseConfig::held_out(std::int64_t number) const {
  constexpr std::int64_t far = std::int64_t{1} << 32;  // no run is so long
  const TableSizes sizes = sizes_of(far + number);
  return {sizes, first_dataset(sizes) + datasets_of_a_size / 2 + number * datasets_between(sizes)};
}

bool CourseConfig::is_held_out(const CourseBatch& batch) {
  return batch.first_dataset % datasets_of_a_size >= datasets_of_a_size / 2;
}

CourseReader::CourseReader(const CourseConfig& course, std::int64_t rank) : course_(course), rank_(rank) {
  if (rank < 0 || rank >= most_ranks)
    throw ValueError(fmt::format("[pfn course] rank {}: must lie in 0 to {}", rank, most_ranks - 1));
}

CourseReader::Counted& CourseReader::counted(const TableSizes& sizes) {
  const auto known =
      std::ranges::find_if(before_, [&](const Counted& counted) { return counted.sizes == sizes; });
  return known != before_.end() ? *known : before_.emplace_back(Counted{sizes, 0});
}

CourseBatch CourseReader::next() {
  const TableSizes sizes = course_.sizes_of(next_++);
  const std::int64_t of_this_size = counted(sizes).batches++ * course_.datasets_between(sizes);
  return {sizes, course_.first_dataset(sizes) + rank_ * datasets_of_a_rank + of_this_size};
}

void CourseReader::seek(std::int64_t number) {
  if (number < 0) throw ValueError(fmt::format("[pfn course] batch {}: must be at least 0", number));
  before_.clear();
  for (next_ = 0; next_ < number; ++next_) ++counted(course_.sizes_of(next_)).batches;
}

std::string CourseConfig::describe() const {
  std::string text =
      fmt::format("prior {}; seed {}; {} cells; datasets by size", prior.to_json(), seed, cells);
  for (const Stage& stage : stages) {
    text += fmt::format("; from {}: rows", stage.first);
    for (const RowCounts& rows : stage.rows) text += fmt::format(" {}+{}", rows.train, rows.query);
    text += ", columns";
    for (const std::int64_t columns : stage.columns) text += fmt::format(" {}", columns);
  }
  return text;
}

void CourseConfig::check() const {
  if (stages.empty() || stages[0].first != 0)
    throw ValueError("[pfn course] the first stage must begin at batch 0");
  if (cells < 1) throw ValueError(fmt::format("[pfn course] {} cells: must be at least 1", cells));
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (stages[i].rows.empty() || stages[i].columns.empty())
      throw ValueError(fmt::format("[pfn course] stage {}: no rows or no columns to draw from", i));
    for (const RowCounts& rows : stages[i].rows)
      if (rows.train < 1 || rows.query < 1)
        throw ValueError(fmt::format("[pfn course] {} train rows and {} query rows: must be at least 1 each",
                                     rows.train, rows.query));
    for (const std::int64_t columns : stages[i].columns)
      if (columns < 1) throw ValueError(fmt::format("[pfn course] {} columns: must be at least 1", columns));
    if (i > 0 && stages[i].first <= stages[i - 1].first)
      throw ValueError(fmt::format("[pfn course] stage {} begins at batch {}: must be after stage {}, at {}",
                                   i, stages[i].first, i - 1, stages[i - 1].first));
  }
  const std::vector<TableSizes> sizes = all_sizes();
  if (std::ssize(sizes) > most_sizes)
    throw ValueError(fmt::format("[pfn course] {} sizes of tables: at most {}", sizes.size(), most_sizes));
  for (const TableSizes& one : sizes) prior_of(one).check();
}

}  // namespace ferrite::pfn
