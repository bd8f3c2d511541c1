// Synthetic tabular datasets as tensors of a backend. Dataset i depends only on (config, seed, i): any batch
// size, backend, thread count or device gives the same bits.
//
//   const auto batch = priors::generate(backend, priors::Config{}, /*seed=*/7, /*first=*/0, /*count=*/64);
//   batch.x, batch.y, ...                 stay on the backend
#pragma once

#include "ferrite/models/priors/ops.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {
namespace priors {

/// For code that treats all ops alike (ferrite/stacks/replay.hpp).
using Ops = OpList<op::FormulaPrior, op::PriorDatasets>;

/// `count` datasets, padded to R = config.rows.max rows and F = config.features.max features. Rows [0,
/// train_rows) of a dataset are for training, the rest of its rows for testing. Missing values are NaN. A
/// dataset for which every attempt failed has 0 rows.
template <class B>
struct Batch {
  Tensor<B> x;             ///< f32 [count, R, F]; padding is 0
  Tensor<B> y;             ///< i64 [count, R], padding ignored_label; of regression f32, padding 0
  Tensor<B> row_mask;      ///< bool [count, R]
  Tensor<B> feature_mask;  ///< bool [count, F]
  Tensor<B> levels;        ///< i32 [count, F]: of categorical features; 0 for numeric ones
  Tensor<B> info;          ///< i32 [count, info_fields]
};

/// The datasets first, first + 1, ... first + count - 1 of a seed. Throws ValueError as Config::check does.
template <class B>
Batch<B> generate(B& b, const Config& config, std::uint64_t seed, std::int64_t first, std::int64_t count) {
  const op::PriorDatasets op{config, seed, first, count};
  auto r = evaluate(b, op, Refs<typename B::Primitive>(nullptr, 0));
  const auto tensor = [&](std::size_t i) { return Tensor<B>(b, std::move(r[i])); };
  return {tensor(0), tensor(1), tensor(2), tensor(3), tensor(4), tensor(5)};
}

template <class B>
struct RawBatch {
  Tensor<B> x, y;
};
/// Raw values of the Formula family, all of one size: x f32 [count, rows, features], y f32 [count, rows].
template <class B>
RawBatch<B> generate_formula(B& b, const FormulaConfig& config, std::int64_t rows, std::int64_t features,
                             std::uint64_t seed, std::int64_t first, std::int64_t count) {
  op::FormulaPrior op = op::FormulaPrior{}.with_formula(config);
  op.rows = rows;
  op.features = features;
  op.seed = seed;
  op.first = first;
  op.count = count;
  auto r = evaluate(b, op, Refs<typename B::Primitive>(nullptr, 0));
  return {Tensor<B>(b, std::move(r[0])), Tensor<B>(b, std::move(r[1]))};
}

}  // namespace priors
}  // namespace ferrite
