// The target of a table: classes or numbers, and every reason why it can be neither.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ferrite/core/error.hpp"
#include "io/csv_value.hpp"
#include "models/pfn/encoder_state.hpp"
#include "models/quantile_tokenizer/dates.hpp"
#include "models/quantile_tokenizer/table_text.hpp"

namespace ferrite::pfn::detail {

namespace {

using quantile_tokenizer::is_date;
using quantile_tokenizer::printable;

/// The different values of a target, and the rows that have one.
struct TargetValues {
  std::vector<std::string> names;  // by value if all are numbers, else by bytes
  std::int64_t rows = 0;
  bool integers = true;
};

void sort_names(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  const auto number = [](const std::string& name) { return io_detail::parse_number(name); };
  if (std::all_of(names.begin(), names.end(), [&](const std::string& name) { return !!number(name); }))
    std::stable_sort(names.begin(), names.end(),
                     [&](const std::string& a, const std::string& b) { return *number(a) < *number(b); });
}

TargetValues values_of(const RawColumn& column) {
  TargetValues values;
  if (column.is_text()) {
    std::vector<bool> seen(column.text.distinct.size());
    for (const std::int32_t code : column.text.codes) {
      if (code < 0) continue;
      ++values.rows;
      seen[static_cast<std::size_t>(code)] = true;
    }
    for (std::size_t i = 0; i < seen.size(); ++i)
      if (seen[i]) values.names.push_back(column.text.distinct[i]);
    sort_names(values.names);
    values.integers = false;
    return values;
  }
  std::set<double> numbers;
  for (const double value : column.numbers) {
    if (!std::isfinite(value)) continue;
    ++values.rows;
    numbers.insert(value + 0.0);
    values.integers = values.integers && value == std::trunc(value) && !is_date(column.kind);
  }
  for (const double value : numbers)
    values.names.push_back(is_date(column.kind)
                               ? quantile_tokenizer::date_text(value, column.kind == FieldKind::date)
                               : number_text(value));
  return values;
}

/// The first that is no number: the others may well be.
const std::string& example_of_text(const std::vector<std::string>& names) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [](const std::string& name) { return !io_detail::parse_number(name); });
  return found == names.end() ? names.front() : *found;
}

Task decide(const RawColumn& column, const TargetValues& values, const EncoderConfig& config,
            std::vector<std::string>& notices) {
  const std::string name = printable(column.name);
  const auto different = static_cast<std::int64_t>(values.names.size());
  if (config.task) {
    if (column.is_text() && *config.task == Task::regression)
      throw ValueError(
          fmt::format("[pfn.fit] target '{}', such as '{}': regression needs numbers; name texts that mean a "
                      "missing value (--missing, TableConfig::missing), or ask for classification",
                      name, printable(example_of_text(values.names))));
    return *config.task;
  }
  if (column.is_text()) return Task::classification;
  if (is_date(column.kind))
    notices.push_back(
        fmt::format("the target '{}' has dates: they are predicted as seconds since 1970", name));
  const bool few = different <= config.integer_classes && 2 * different <= values.rows;
  if (!values.integers || !few) {
    if (values.integers && different == values.rows)
      notices.push_back(fmt::format(
          "the target '{}' has another integer in every row, as numbers of rows have: they are predicted as "
          "amounts; choose another target if they only name rows, or ask for regression if they are amounts",
          name));
    return Task::regression;
  }
  if (different > 2)
    notices.push_back(fmt::format(
        "the target '{}' has {} different integers, which are taken as classes; ask for regression if they "
        "are amounts",
        name, different));
  return Task::classification;
}

}  // namespace

std::string named(std::span<const std::string> names) {
  constexpr std::size_t most = 5;
  std::string out;
  for (const std::string& name : names.first(std::min(names.size(), most)))
    out += (out.empty() ? "'" : ", '") + printable(name) + "'";
  return names.size() > most ? fmt::format("{} and {} more", out, names.size() - most) : out;
}

std::string reading_hint(const Table& table) {
  if (!table.columns().empty() && table.columns()[0].name == "c0")
    return "; c0 and so on are numbers of columns: if the file's first row has their names, read it with "
           "--header present (TableConfig::header)";
  if (table.columns().size() != 1) return "";
  const char suspect = io_detail::suspected_delimiter(table.columns()[0].name, 0);
  if (suspect == 0) return "";
  return fmt::format(
      "; {0} seems to separate columns: read the file with --delimiter {0} (TableConfig::delimiter), or "
      "convert it",
      io_detail::delimiter_name(suspect));
}

TargetFit fit_target(const Table& train, const std::string& target, const EncoderConfig& config,
                     std::vector<std::string>& notices) {
  const std::string name = printable(target);
  const RawColumn* const column = train.find(target);
  if (!column) {
    std::vector<std::string> all;
    for (const RawColumn& c : train.columns()) all.push_back(c.name);
    throw ValueError(fmt::format("[pfn.fit] target '{}': there is no such column; choose one of {}{}", name,
                                 named(all), reading_hint(train)));
  }
  const TargetValues values = values_of(*column);
  const std::int64_t infinite = std::count_if(column->numbers.begin(), column->numbers.end(),
                                              [](double value) { return std::isinf(value); });
  if (values.rows == 0)
    throw ValueError(fmt::format(
        "[pfn.fit] target '{}', {} rows: all are {}; choose another target or fill in what is known", name,
        train.rows(), infinite == 0 ? "missing" : "missing or infinite"));
  if (values.rows < 2)
    throw ValueError(fmt::format(
        "[pfn.fit] target '{}': one row has a target and at least two are needed; add rows", name));
  if (values.names.size() < 2)
    throw ValueError(
        fmt::format("[pfn.fit] target '{}' is '{}' in every row: there is nothing to learn; choose another "
                    "target or add rows with other values",
                    name, printable(values.names.front())));
  const std::string note = spoilt_values(*column), hint = note.empty() ? "" : fmt::format("; it {}", note);
  if (!note.empty()) notices.push_back(fmt::format("the target '{}' {}", name, note));
  TargetFit fit{target, decide(*column, values, config, notices), {}};
  if (fit.task == Task::classification) {
    const auto classes = static_cast<std::int64_t>(values.names.size());
    const std::string_view advice = column->is_text() ? "choose a target that repeats"
                                                      : "ask for regression or choose a target that repeats";
    if (classes == values.rows)
      throw ValueError(
          fmt::format("[pfn.fit] target '{}': every row has a class of its own, as names and "
                      "numbers of rows have; {}{}",
                      name, advice, hint));
    if (classes > config.most_classes)
      throw ValueError(
          fmt::format("[pfn.fit] target '{}', {} classes: at most {} are possible; join classes, "
                      "or {}{}",
                      name, classes, config.most_classes, advice, hint));
    fit.class_names = values.names;
  }
  const auto tell_left_out = [&](std::int64_t rows, std::string_view what) {
    if (rows > 0)
      notices.push_back(fmt::format("{} of {} rows have {} target '{}' and are left out of training", rows,
                                    train.rows(), what, name));
  };
  tell_left_out(train.rows() - values.rows - infinite, "no");
  tell_left_out(infinite, "an infinite");
  return fit;
}

std::vector<std::int32_t> class_codes(const RawColumn& column, const TargetFit& fit, std::int64_t& unknown) {
  FeatureFit classes;  // they are the categories of the target
  classes.kind = FeatureKind::category;
  classes.categories = fit.class_names;
  LostCells lost;
  std::vector<std::int32_t> codes;
  for (const float code : encode(column, classes, lost))
    codes.push_back(std::isnan(code) ? -1 : static_cast<std::int32_t>(code));
  unknown += lost.unknown;
  return codes;
}

std::vector<double> target_numbers(const RawColumn& column, std::int64_t& unknown) {
  const auto read = [](const std::string& text) { return io_detail::parse_number(text).value_or(NAN); };
  LostCells lost;
  std::vector<double> values = read_values(column, read, lost);
  unknown += lost.unreadable + lost.infinite;
  return values;
}

}  // namespace ferrite::pfn::detail
