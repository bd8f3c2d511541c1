// Members of an ensemble: each sees the table with columns and classes in another order, and some see numbers
// in another scale. All of it is fitted on the train rows alone.
#pragma once

#include <memory>
#include <span>

#include "ferrite/models/pfn/table_encoder.hpp"

namespace ferrite::pfn {

/// What happens to features that are numbers. Missing cells stay missing.
///   none    nothing
///   normal  quantiles of the train rows become those of a normal distribution
///   tails   beyond three (robust) deviations from the median numbers grow by their logarithm only
enum class NumberScale : std::uint8_t { none, normal, tails };
constexpr int count_of(NumberScale) { return 3; }

struct MemberConfig {
  std::uint64_t seed = 0;  // of the orders
  bool permute_columns = true;
  bool permute_classes = true;
  NumberScale numbers = NumberScale::none;
};
/// Of the orders and the sample of member `index`. Ensembles of seeds that lie close together have no seed in
/// common; those of seed 0 are 0, 1, 2 and so on.
FERRITE_API std::uint64_t member_seed(std::uint64_t seed, std::int64_t index);
/// Member `index` of an ensemble of any size. The first sees the table as it is; of the others, every second
/// one has normal numbers, and the rest take turns between none and tails.
FERRITE_API MemberConfig member_config(std::uint64_t seed, std::int64_t index);

/// The scale of one feature: linear between knots and constant outside, or one that compresses tails.
struct FERRITE_API FeatureScale {
  NumberScale kind = NumberScale::none;
  std::vector<double> values, scores;  // of knots, ascending
  double centre = 0, deviation = 1;

  float operator()(float value) const;
  /// For values of train rows, ascending, none of which is NaN.
  static FeatureScale fit(NumberScale kind, const std::vector<double>& sorted);
};

/// The quantile of the standard normal distribution, for a level in (0, 1); exact to about 1e-15.
FERRITE_API double normal_quantile(double level);

/// A value.
class FERRITE_API EnsembleMember {
 public:
  /// A member for each config; what several have in common is fitted once. `train` needs no targets.
  /// `classes` are those that members put in order: of the table, or symbols of codes for them.
  static std::vector<EnsembleMember> fit(const EncodedTable& train, std::span<const MemberConfig> configs,
                                         std::int64_t classes);

  /// Writes the cells of some rows as the member sees them. The table must have these rows, and the features
  /// of the train table: nothing is checked.
  /// # Shapes: to [rows, features]
  void write_cells(const EncodedTable& table, std::span<const std::int64_t> rows, float* to) const;
  /// Of each feature of the member: its place in the table.
  const std::vector<std::int64_t>& columns() const { return columns_; }
  /// Of each class of the table: its place for the member.
  std::vector<std::int32_t> class_places() const;
  /// Probabilities [rows, classes] of the member's classes, by the classes of the table.
  std::vector<double> restore(std::span<const double> probabilities) const;

  /// The whole fit as JSON, and back. ParseError for anything that to_json did not write.
  std::string to_json() const;
  static EnsembleMember from_json(std::string_view text);

 private:
  std::vector<std::int64_t> columns_;  // of each feature of the member: its place in the table
  std::vector<std::int64_t> classes_;  // of each class of the member: its place in the table
  std::shared_ptr<const std::vector<FeatureScale>> scales_;  // of each feature of the table; never changes
};

}  // namespace ferrite::pfn
