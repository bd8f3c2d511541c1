// TableEncoder: turns tables as they come into the numbers that a network for tables reads. It is fitted on
// the train rows alone; what it leaves out or guesses is said in notices.
#pragma once

#include <memory>
#include <optional>

#include "ferrite/core/config.hpp"
#include "ferrite/models/pfn/table.hpp"
#include "ferrite/models/priors/config.hpp"

namespace ferrite::pfn {

using priors::Task;

struct EncoderConfig {
  /// Decided by the target if it is not given: texts and few different integers are classes.
  std::optional<Task> task;
  /// A target of at most this many different integers, each twice on average, is one of classes.
  std::int64_t integer_classes = 10;
  /// More classes than this are an error.
  std::int64_t most_classes = 1000;
  /// If there are more columns, those that tell most about the target are kept: by mutual information with
  /// the classes, or by the share of the target's variance that ten quantiles of the column explain, both
  /// corrected for chance.
  std::int64_t most_columns = 500;
  /// If a column has more categories, the most frequent are kept, as far as they appear twice, and all others
  /// become one category.
  std::int64_t most_categories = 100;
  /// Columns of numbers or dates that are categories, unless every row has another one.
  std::vector<std::string> categories;
  /// Columns that are not used.
  std::vector<std::string> drop;
  /// A column of dates also gives its months, weekdays and hours, where they differ.
  bool date_parts = true;
  /// Where all dates of a column could be read both ways, as 03/04/2024, the day comes before the month.
  bool day_first = false;

  EncoderConfig with_task(Task v) const { return with(&EncoderConfig::task, v); }
  EncoderConfig with_integer_classes(std::int64_t v) const {
    return with(&EncoderConfig::integer_classes, v);
  }
  EncoderConfig with_most_classes(std::int64_t v) const { return with(&EncoderConfig::most_classes, v); }
  EncoderConfig with_most_columns(std::int64_t v) const { return with(&EncoderConfig::most_columns, v); }
  EncoderConfig with_most_categories(std::int64_t v) const {
    return with(&EncoderConfig::most_categories, v);
  }
  EncoderConfig with_categories(std::vector<std::string> v) const {
    return with(&EncoderConfig::categories, std::move(v));
  }
  EncoderConfig with_drop(std::vector<std::string> v) const {
    return with(&EncoderConfig::drop, std::move(v));
  }
  EncoderConfig with_date_parts(bool v) const { return with(&EncoderConfig::date_parts, v); }
  EncoderConfig with_day_first(bool v) const { return with(&EncoderConfig::day_first, v); }

 private:
  template <class T>
  EncoderConfig with(T EncoderConfig::*member, std::type_identity_t<T> value) const {
    return ferrite::detail::with(*this, member, std::move(value));
  }
};

/// A column of an encoded table.
struct Feature {
  std::string name;
  std::string column;  // of the table that it came from
  bool is_category = false;
  std::int64_t categories = 0;  // codes are less than this
  friend bool operator==(const Feature&, const Feature&) = default;
};

/// Rows of numbers and, where they are known, their targets.
struct FERRITE_API EncodedTable {
  Task task = Task::classification;
  std::vector<Feature> features;
  std::vector<std::string> class_names;
  std::int64_t rows = 0;
  /// # Shapes: [rows, features]; NaN is missing.
  std::vector<float> x;
  /// For classification: places in class_names, -1 for a missing or unknown class. Empty without a target.
  std::vector<std::int32_t> classes;
  /// For regression: NaN for a missing one. Empty without a target.
  std::vector<double> targets;
  /// What was left out, guessed or not known, one sentence each.
  std::vector<std::string> notices;

  std::int64_t columns() const { return static_cast<std::int64_t>(features.size()); }
  std::int64_t class_count() const { return static_cast<std::int64_t>(class_names.size()); }
  bool has_targets() const { return !classes.empty() || !targets.empty(); }
  const float* row(std::int64_t r) const { return x.data() + r * columns(); }
  /// One for each feature, 0 or 1, as a network takes them.
  std::vector<std::uint8_t> is_category() const;
  /// The rows of these places, in this order, without notices; ValueError for a place that there is not.
  EncodedTable take(std::span<const std::int64_t> rows) const;
  /// The places of the rows that have a target.
  std::vector<std::int64_t> labelled_rows() const;
  /// ValueError, in the name of `who`, unless there are rows and every one has a target.
  void check_targets(std::string_view who) const;
};

namespace detail {
struct EncoderState;
}

/// A value. Numbers are moved and scaled only where f32 could not tell them apart or hold them, and kept
/// within 1e30. Dates become days since the first of the train table. Texts become codes of the train table's
/// texts in the order of their bytes. Infinities are missing. Columns that are constant, have no value, or
/// have another text in every row, and in more than half of them one, are dropped.
class FERRITE_API TableEncoder {
 public:
  /// Rows without a target are left out. Throws ValueError naming the column, and what to do, for a target
  /// that is not there, has no value or always the same, has a class for every row or more than
  /// `most_classes`, or texts for regression; for fewer than two rows; and if no column is left to predict
  /// from.
  static TableEncoder fit(const Table& train, const std::string& target, const EncoderConfig& config = {});

  Task task() const;
  const std::string& target() const;
  /// In ascending order: by value if the classes are numbers, else by bytes. Empty for regression.
  const std::vector<std::string>& class_names() const;
  const std::vector<Feature>& features() const;
  /// What the fit left out or guessed, one sentence each.
  const std::vector<std::string>& notices() const;
  /// What meant a missing cell where the train table was read: for TableConfig::missing of other tables.
  const std::vector<std::string>& missing() const;

  /// All rows of a table, with targets if it has that column. Columns are found by name; ValueError naming
  /// all that are not there. Unknown categories and cells that are not numbers become missing, other columns
  /// are ignored: notices say which and how many.
  EncodedTable transform(const Table& table) const;
  /// The rows of a table that have a target, to learn from. ValueError if there are none.
  EncodedTable transform_train(const Table& train) const;

  /// The whole fit as JSON, and back. ParseError for anything that to_json did not write.
  std::string to_json() const;
  static TableEncoder from_json(std::string_view text);

 private:
  explicit TableEncoder(std::shared_ptr<const detail::EncoderState> state) : state_(std::move(state)) {}

  std::shared_ptr<const detail::EncoderState> state_;  // never changes, so copies share it
};

}  // namespace ferrite::pfn
