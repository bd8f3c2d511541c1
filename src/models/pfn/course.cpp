#include "ferrite/models/pfn/course.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"

namespace ferrite::pfn {

namespace {

// Streams of the random numbers that choose sizes.
constexpr std::uint64_t row_draws = 0, column_draws = 1;

std::size_t draw(std::uint64_t seed, std::uint64_t stream, std::int64_t number, std::size_t count) {
  return static_cast<std::size_t>(
      integer_at({seed, stream}, static_cast<std::uint64_t>(number), 0, static_cast<std::int64_t>(count)));
}

}  // namespace

CourseConfig CourseConfig::standard(std::int64_t batches, std::int64_t registers) {
  const auto filled = [&](std::int64_t tiles) { return std::max<std::int64_t>(128 * tiles - registers, 16); };
  // Few of them: a GPU makes plans and a recording for every pair of rows and columns.
  const std::vector<std::int64_t> columns = {2, 4, 7, 12, 20, 34, 58};
  const std::vector<RowCounts> shorter = {{64, 64}, {filled(1), 128}, {filled(2), 128}, {filled(3), 128}};
  const std::vector<RowCounts> longer = {
      {filled(1), 128}, {filled(2), 128}, {filled(4), 128}, {filled(6), 128}, {filled(8), 128}};
  priors::Config prior;
  prior.weights.mlp_scm = 0.6, prior.weights.tree_scm = 0.25, prior.weights.graph = 0.15;
  prior.post.categorical_share = 0.3;
  prior.post.missing_share = 0.1;
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

std::int64_t CourseConfig::first_dataset(std::int64_t number) const {
  std::int64_t most = 0;
  for (const Stage& stage : stages)
    for (const RowCounts& rows : stage.rows)
      for (const std::int64_t columns : stage.columns)
        most = std::max(most, sizes_with(rows, columns).tables);
  const std::int64_t group = prior.group_size;  // its datasets share laws, so they stay in one batch
  return number * ((most + group - 1) / group * group);
}

std::string CourseConfig::describe() const {
  std::string text = fmt::format("prior {}; seed {}; {} cells", prior.to_json(), seed, cells);
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
  for (const TableSizes& sizes : all_sizes()) prior_of(sizes).check();
}

}  // namespace ferrite::pfn
