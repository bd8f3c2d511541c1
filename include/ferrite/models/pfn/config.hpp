// The config of a prior-fitted network: what it predicts, and its sizes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/core/dtype.hpp"
#include "ferrite/models/priors/config.hpp"

namespace ferrite::pfn {

using priors::Task;

/// The defaults make a classifier of 3.1M parameters.
struct FERRITE_API Config {
  Task task = Task::classification;
  /// Most classes of a dataset. Regression has none.
  std::int64_t classes = 10;
  /// Intervals of the label that regression predicts the probabilities of (see LabelBins).
  std::int64_t bins = 100;
  /// Features of a token.
  std::int64_t dim = 192;
  /// Features of a head; must divide dim.
  std::int64_t head_width = 32;
  std::int64_t layers = 6;
  /// Inside the feed-forward.
  std::int64_t hidden = 512;
  /// Learned rows that stand before the train rows of every dataset.
  std::int64_t registers = 16;
  /// A token shows the cells of its row in the columns at these distances to the right, around the end.
  std::vector<std::int64_t> offsets = {0, 1, 3};
  /// Of the norms.
  double eps = 1e-5;
  DType dtype = DType::f32;

  Config with_task(Task v) const { return ferrite::detail::with(*this, &Config::task, v); }
  Config with_classes(std::int64_t v) const { return ferrite::detail::with(*this, &Config::classes, v); }
  Config with_bins(std::int64_t v) const { return ferrite::detail::with(*this, &Config::bins, v); }
  Config with_dim(std::int64_t v) const { return ferrite::detail::with(*this, &Config::dim, v); }
  Config with_head_width(std::int64_t v) const {
    return ferrite::detail::with(*this, &Config::head_width, v);
  }
  Config with_layers(std::int64_t v) const { return ferrite::detail::with(*this, &Config::layers, v); }
  Config with_hidden(std::int64_t v) const { return ferrite::detail::with(*this, &Config::hidden, v); }
  Config with_registers(std::int64_t v) const { return ferrite::detail::with(*this, &Config::registers, v); }
  Config with_offsets(std::vector<std::int64_t> v) const {
    return ferrite::detail::with(*this, &Config::offsets, std::move(v));
  }
  Config with_eps(double v) const { return ferrite::detail::with(*this, &Config::eps, v); }
  Config with_dtype(DType v) const { return ferrite::detail::with(*this, &Config::dtype, v); }

  std::int64_t heads() const { return dim / head_width; }
  /// Scores of a row: classes or bins.
  std::int64_t outputs() const { return task == Task::classification ? classes : bins; }

  /// Throws ValueError for sizes below 1 (registers below 0, bins below 4, classes below 2) or above 2^20,
  /// heads that do not divide dim, offsets that are negative or none, an eps that is not above 0, and a dtype
  /// that is not floating.
  void check() const;
  /// A JSON object with all members. Files of networks hold it in their metadata (models/pfn/file.hpp).
  std::string to_json() const;
  /// Throws ParseError, in which `name` stands for the source, unless the text is what to_json writes and
  /// passes `check`.
  static Config from_json(std::string_view text, std::string_view name);

  friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace ferrite::pfn
