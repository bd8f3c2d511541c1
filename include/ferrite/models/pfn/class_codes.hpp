// More classes than a network tells apart, by codes: each coding gives every class one of a few symbols, a
// network predicts the symbols of one coding at a time, and the probabilities of the classes follow.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite::pfn {

/// A value. No two classes have the same symbols in all codings of a round, and each round deals the classes
/// anew, so that more rounds correct errors.
class FERRITE_API ClassCodes {
 public:
  /// Codings come in rounds of the least number that tells the classes apart: two up to 100 classes of 10
  /// symbols. If there are no more classes than symbols, there is one coding, in which a class is its symbol.
  /// Depends on its arguments alone. ValueError for fewer than 2 classes or symbols, or for no rounds.
  explicit ClassCodes(std::int64_t classes, std::int64_t rounds = 2, std::uint64_t seed = 0,
                      std::int64_t symbols = 10);

  std::int64_t classes() const { return classes_; }
  std::int64_t codings() const { return static_cast<std::int64_t>(symbol_of_.size()); }
  /// Symbols are less than this, in every coding.
  std::int64_t symbols() const { return symbols_; }
  std::int32_t symbol(std::int64_t coding, std::int32_t of_class) const {
    return symbol_of_[static_cast<std::size_t>(coding)][static_cast<std::size_t>(of_class)];
  }
  /// Labels of one coding for rows of these classes. ValueError for a class that there is not.
  std::vector<std::int32_t> encode(std::int64_t coding, std::span<const std::int32_t> classes) const;

  /// `probabilities` holds [rows, symbols()] of every coding, one after the other. Begins from the normalised
  /// product over a class's symbols and takes some steps towards those probabilities of classes [rows,
  /// classes] which make the symbols most likely. So independent symbols of a round give their product, and
  /// symbols that agree with each other give about the classes' own probabilities. A row of zeros counts as
  /// equal symbols.
  /// # Shapes: [codings, rows, symbols] -> [rows, classes]
  std::vector<double> decode(std::span<const double> probabilities, std::int64_t rows) const;

 private:
  std::int64_t classes_, rounds_, symbols_;
  std::vector<std::vector<std::int32_t>> symbol_of_;  // by coding, then by class
};

}  // namespace ferrite::pfn
