#include "ferrite/models/pfn/table_encoder.hpp"

#include <fmt/format.h>

#include <cmath>
#include <unordered_set>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "models/pfn/encoder_state.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::pfn {

namespace {

using quantile_tokenizer::printable;
using Names = std::vector<std::string>;
using NameSet = std::unordered_set<std::string_view>;

/// Sentences about the cells of a table that were not understood.
void tell_lost(const std::vector<detail::FeatureFit>& fits, const std::vector<detail::LostCells>& lost,
               Names& notices) {
  std::string_view told;
  for (std::size_t i = 0; i < fits.size(); ++i) {
    if (fits[i].column == told) continue;  // the parts of a date lose the same cells
    told = fits[i].column;
    const std::string name = printable(fits[i].column);
    if (lost[i].unknown > 0)
      notices.push_back(
          fmt::format("column '{}': {} cells have categories that no train row has, and are taken as missing",
                      name, lost[i].unknown));
    if (lost[i].unreadable > 0)
      notices.push_back(fmt::format("column '{}': {} cells are not {}, and are taken as missing", name,
                                    lost[i].unreadable,
                                    fits[i].kind == detail::FeatureKind::number ? "numbers" : "dates"));
    if (lost[i].infinite > 0)
      notices.push_back(fmt::format("column '{}': {} cells are infinite, and are taken as missing", name,
                                    lost[i].infinite));
  }
}

}  // namespace

std::vector<std::uint8_t> EncodedTable::is_category() const {
  std::vector<std::uint8_t> flags;
  for (const Feature& feature : features) flags.push_back(feature.is_category);
  return flags;
}

EncodedTable EncodedTable::take(std::span<const std::int64_t> taken) const {
  EncodedTable out{task, features, class_names, static_cast<std::int64_t>(taken.size()), {}, {}, {}, {}};
  out.x.reserve(taken.size() * features.size());
  for (const std::int64_t r : taken) {
    if (r < 0 || r >= rows)
      throw ValueError(fmt::format("[encoded_table] row {}: the table has rows 0 to {}", r, rows - 1));
    out.x.insert(out.x.end(), x.begin() + r * columns(), x.begin() + (r + 1) * columns());
    if (!classes.empty()) out.classes.push_back(classes[static_cast<std::size_t>(r)]);
    if (!targets.empty()) out.targets.push_back(targets[static_cast<std::size_t>(r)]);
  }
  return out;
}

std::vector<std::int64_t> EncodedTable::labelled_rows() const {
  std::vector<std::int64_t> labelled;
  for (std::int64_t r = 0; r < rows && has_targets(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    if (task == Task::classification ? classes[i] >= 0 : !std::isnan(targets[i])) labelled.push_back(r);
  }
  return labelled;
}

void EncodedTable::check_targets(std::string_view who) const {
  if (rows < 1) throw ValueError(fmt::format("[{}] no rows: at least one is needed", who));
  if (!has_targets() || static_cast<std::int64_t>(labelled_rows().size()) != rows)
    throw ValueError(fmt::format(
        "[{}] {} rows: every one needs a target; TableEncoder::transform_train leaves out those without", who,
        rows));
}

TableEncoder TableEncoder::fit(const Table& train, const std::string& target, const EncoderConfig& config) {
  return TableEncoder(std::make_shared<detail::EncoderState>(detail::fit_encoder(train, target, config)));
}

Task TableEncoder::task() const { return state_->target.task; }
const std::string& TableEncoder::target() const { return state_->target.name; }
const std::vector<std::string>& TableEncoder::class_names() const { return state_->target.class_names; }
const std::vector<Feature>& TableEncoder::features() const { return state_->features; }
const std::vector<std::string>& TableEncoder::notices() const { return state_->notices; }
const std::vector<std::string>& TableEncoder::missing() const { return state_->missing; }

EncodedTable TableEncoder::transform(const Table& table) const {
  const std::vector<detail::FeatureFit>& fits = state_->fits;
  Names missing, ignored;
  NameSet known(state_->unused.begin(), state_->unused.end());
  known.insert(state_->target.name);
  for (const detail::FeatureFit& fit : fits)
    if (known.insert(fit.column).second && !table.find(fit.column)) missing.push_back(fit.column);
  if (!missing.empty())
    throw ValueError(
        fmt::format("[pfn.transform] {} {}: the train table has {} and this one does not; add "
                    "{}, empty if need be, or fit without{}",
                    detail::plural(missing.size(), "column", "columns"), detail::named(missing),
                    detail::plural(missing.size(), "it", "them"),
                    detail::plural(missing.size(), "it", "them"), detail::reading_hint(table)));
  EncodedTable out;
  out.task = state_->target.task;
  out.features = state_->features;
  out.class_names = state_->target.class_names;
  out.rows = table.rows();
  out.x.resize(static_cast<std::size_t>(out.rows) * fits.size());
  std::vector<detail::LostCells> lost(fits.size());
  parallel_for(static_cast<std::int64_t>(fits.size()), [&](std::int64_t i) {
    const auto c = static_cast<std::size_t>(i);
    const std::vector<float> column = detail::encode(*table.find(fits[c].column), fits[c], lost[c]);
    for (std::size_t r = 0; r < column.size(); ++r) out.x[r * fits.size() + c] = column[r];
  });
  for (const RawColumn& column : table.columns())
    if (!known.contains(column.name)) ignored.push_back(column.name);
  detail::tell(out.notices, ignored, "is not in the train table", "are not in the train table", "ignored");
  tell_lost(fits, lost, out.notices);
  if (const RawColumn* const target = table.find(state_->target.name)) {
    const std::int64_t unknown = detail::set_targets(out, *target, state_->target);
    if (unknown > 0)
      out.notices.push_back(fmt::format(
          "target '{}': {} rows have {}", printable(state_->target.name), unknown,
          out.task == Task::classification ? "classes that no train row has" : "no finite number"));
  }
  return out;
}

EncodedTable TableEncoder::transform_train(const Table& train) const {
  EncodedTable all = transform(train);
  if (!all.has_targets())
    throw ValueError(
        fmt::format("[pfn.transform] target '{}': the table does not have this column", printable(target())));
  const std::vector<std::int64_t> rows = all.labelled_rows();
  if (rows.empty())
    throw ValueError(
        fmt::format("[pfn.transform] target '{}': no row has a known target", printable(target())));
  if (static_cast<std::int64_t>(rows.size()) == all.rows) return all;
  EncodedTable out = all.take(rows);
  out.notices = std::move(all.notices);
  return out;
}

}  // namespace ferrite::pfn
