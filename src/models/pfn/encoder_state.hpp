// What a TableEncoder has fitted.
#pragma once

#include "ferrite/models/pfn/table_encoder.hpp"
#include "models/pfn/category_codes.hpp"
#include "models/pfn/feature_fit.hpp"

namespace ferrite::pfn::detail {

struct TargetFit {
  std::string name;
  Task task = Task::classification;
  std::vector<std::string> class_names;
};

struct EncoderState {
  TargetFit target;
  std::vector<FeatureFit> fits;
  std::vector<Feature> features;     // of each fit
  std::vector<std::string> unused;   // columns of the train table that no feature reads
  std::vector<std::string> missing;  // of the train table
  std::vector<std::string> notices;
};

/// What TableEncoder::fit fits, and throws.
EncoderState fit_encoder(const Table& train, const std::string& target, const EncoderConfig& config);

std::string_view plural(std::size_t count, std::string_view one, std::string_view many);
/// Adds a sentence unless there are no names: "columns 'a', 'b' are constant: dropped".
void tell(std::vector<std::string>& notices, const std::vector<std::string>& names, std::string_view is,
          std::string_view are, std::string_view consequence);
/// Up to five names in quotes, and how many more there are.
std::string named(std::span<const std::string> names);
/// "; and what to do" about a table that seems to be read in a wrong way: of one column whose name seems to
/// be several, or without names; empty for all others.
std::string reading_hint(const Table& table);

/// Decides the task and the classes. Throws what TableEncoder::fit throws about targets.
TargetFit fit_target(const Table& train, const std::string& target, const EncoderConfig& config,
                     std::vector<std::string>& notices);
/// Of every row: its class, or -1. Unknown classes are counted.
std::vector<std::int32_t> class_codes(const RawColumn& column, const TargetFit& fit, std::int64_t& unknown);
/// Of every row: its number, or NaN, also for texts that are not numbers and for infinities, which are
/// counted.
std::vector<double> target_numbers(const RawColumn& column, std::int64_t& unknown);

/// Sets the classes or the targets of a table, and gives the number of rows with unknown classes, or with
/// what is not a finite number.
std::int64_t set_targets(EncodedTable& table, const RawColumn& column, const TargetFit& target);

/// How much a column tells about the target; see EncoderConfig::most_columns.
double class_score(std::span<const float> column, bool is_category, std::span<const std::int32_t> classes,
                   std::int64_t class_count);
double variance_score(std::span<const float> column, bool is_category, std::span<const double> targets);

}  // namespace ferrite::pfn::detail
