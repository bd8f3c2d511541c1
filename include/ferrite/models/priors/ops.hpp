// The ops that make synthetic datasets. PriorDatasets makes finished training sets of any family.
// FormulaPrior makes the raw values of the Formula family, millions of small datasets at a time.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "ferrite/models/priors/config.hpp"
#include "ferrite/ops/op.hpp"

namespace ferrite {
namespace priors {

/// Rises with every change of a law or of its arithmetic: datasets of two versions have different bits.
inline constexpr int generator_version = 3;

/// Why a draw is rejected and made again.
enum class Filter : std::uint8_t {
  non_finite,         ///< a value is not finite or beyond 1e15
  constant_features,  ///< all features are
  constant_target,
  too_few_classes,  ///< fewer than post.classes.min have a row
  unfair_split,     ///< no order of the rows found in which train and test have the same classes
  disconnected,     ///< x and y have no common cause (Graph)
  unlearnable,      ///< neither a feature nor the nearest neighbour tells anything about y
  none
};
inline constexpr int filters = static_cast<int>(Filter::none);
FERRITE_API std::string_view to_string(Filter filter);

// Columns of `info`.
inline constexpr int info_rows = 0, info_train_rows = 1, info_features = 2, info_classes = 3, info_family = 4,
                     info_attempts = 5, info_rejected = 6, info_fields = info_rejected + filters;

/// The label of padded rows, which softmax_cross_entropy ignores.
inline constexpr std::int64_t ignored_label = -100;

}  // namespace priors

namespace op {

/// Finished datasets `first` to `first + count - 1`. Outputs as in priors::Batch, in that order.
struct FERRITE_API PriorDatasets {
  static constexpr std::string_view type_name = "prior_datasets";
  priors::Config config;
  std::uint64_t seed = 0;
  std::int64_t first = 0;
  std::int64_t count = 1;

  /// Throws ValueError for a config that check() refuses and for datasets outside [0, 2^48).
  Metas infer(MetaSpan in) const;
  /// It has no inputs. Throws DTypeError for other values than f32.
  Metas example(DType d) const;
  static void attributes(auto& self, auto&& visit) {
    visit("config", self.config);
    visit("seed", self.seed);
    visit("first", self.first);
    visit("count", self.count);
  }
  /// One dataset after the other, on the host; a backend without a kernel does this.
  void fill_host(std::span<void* const> out) const;
  template <class B>
  void assemble(B& b, Ins in, Outs out) const;
};

/// Raw Formula datasets `first` to `first + count - 1`: x f32 [count, rows, features], y f32 [count, rows].
/// At most max_rows rows and max_features features.
struct FERRITE_API FormulaPrior {
  static constexpr std::string_view type_name = "formula_prior";
  std::int64_t rows = 64;
  std::int64_t features = 4;
  std::int64_t terms_min = 2, terms_max = 6;
  double range = 3, coefficient_min = 0.2, coefficient_max = 2, frequency_min = 0.3, frequency_max = 2,
         shift = 1, noise = 0;
  std::uint64_t seed = 0;
  std::int64_t first = 0;
  std::int64_t count = 1;

  /// The values that infer has checked, as a config.
  priors::FormulaConfig formula() const;
  FormulaPrior with_formula(const priors::FormulaConfig& formula) const;
  /// Throws ValueError for sizes, terms and laws beyond their limits, and for datasets outside [0, 2^48).
  Metas infer(MetaSpan in) const;
  /// It has no inputs. Throws DTypeError for other values than f32.
  Metas example(DType d) const;
  static void attributes(auto& self, auto&& visit) {
    visit("rows", self.rows);
    visit("features", self.features);
    visit("terms_min", self.terms_min);
    visit("terms_max", self.terms_max);
    visit("range", self.range);
    visit("coefficient_min", self.coefficient_min);
    visit("coefficient_max", self.coefficient_max);
    visit("frequency_min", self.frequency_min);
    visit("frequency_max", self.frequency_max);
    visit("shift", self.shift);
    visit("noise", self.noise);
    visit("seed", self.seed);
    visit("first", self.first);
    visit("count", self.count);
  }
  void fill_host(std::span<void* const> out) const;
  template <class B>
  void assemble(B& b, Ins in, Outs out) const;
};

}  // namespace op

// Kernels (backend/concept.hpp).
FERRITE_API void run(Cpu&, const op::FormulaPrior& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::FormulaPrior& op, Ins in, Outs out);
FERRITE_API void run(Cpu&, const op::PriorDatasets& op, Ins in, Outs out);
FERRITE_API void run(Cuda&, const op::PriorDatasets& op, Ins in, Outs out);

namespace detail {
/// Computes the outputs in host memory and copies them over.
template <class B, class Op>
void assemble_on_host(B& b, const Op& op, Outs out) {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<void*> pointers;
  for (const Array& array : out) pointers.push_back(bytes.emplace_back(array.meta().bytes()).data());
  op.fill_host(pointers);
  for (std::size_t i = 0; i < out.size(); ++i) b.copy_from_host(out[i], pointers[i]);
}
}  // namespace detail

template <class B>
void op::PriorDatasets::assemble(B& b, Ins, Outs out) const {
  detail::assemble_on_host(b, *this, out);
}
template <class B>
void op::FormulaPrior::assemble(B& b, Ins, Outs out) const {
  detail::assemble_on_host(b, *this, out);
}

}  // namespace ferrite
