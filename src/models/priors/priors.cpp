// The ops' rules, and their loops on the CPU: one dataset at a time per thread.
#include "ferrite/models/priors/ops.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "models/priors/cpu_scratch.hpp"
#include "models/priors/generate.hpp"
#include "models/priors/team.hpp"

namespace ferrite {
namespace {

using namespace priors;

constexpr std::int64_t dataset_limit = std::int64_t{1} << 48;

void check_datasets(std::string_view op, std::int64_t first, std::int64_t count) {
  if (count < 1 || first < 0 || first > dataset_limit - count)
    throw ValueError(fmt::format(
        "[{}] {} datasets from number {} on: must be at least one, from 0 to 2^48 - 1", op, count, first));
}

void generate_one(const op::PriorDatasets& op, std::int64_t i, std::span<void* const> out,
                  CpuScratch& scratch) {
  SerialTeam team;
  generate_dataset(team, op.config, op.seed, static_cast<std::uint64_t>(op.first + i), scratch.plan(),
                   scratch.workspace(), slice_of(out.data(), op.config, i));
}

/// x [rows, features] and y [rows] of one raw Formula dataset.
void formula_one(const op::FormulaPrior& op, const FormulaLaw& law, std::int64_t i, float* x, float* y) {
  const DatasetKey key{op.seed, static_cast<std::uint64_t>(op.first + i), 0};
  const auto rows = static_cast<int>(op.rows), features = law.features;
  const Stream values = key.stream(Purpose::formula_values);
  const std::int64_t elements = op.rows * op.features;
  for (std::int64_t begin = 0; begin < elements; begin += 2 * cpu::words_per_draw) {
    std::uint32_t words[cpu::words_per_draw];
    float numbers[2 * cpu::words_per_draw];
    cpu::draw_words(values.key, static_cast<std::int64_t>(4 * values.base) + begin / 2, words);
    for (int g = 0; g < 2 * cpu::words_per_draw; g += feature_group) {
      for (int l = 0; l < feature_blocks; ++l) {
        for (int j = 0; j < 8; j += 2) {
          const std::uint32_t word = words[g / 2 + 4 * l + j / 2];
          float* const pair = numbers + g + feature_place(l, j);
          pair[0] = feature_from_half(word & 0xffffu, law.range);
          pair[1] = feature_from_half(word >> 16, law.range);
        }
      }
    }
    std::copy_n(numbers, std::min(elements - begin, 2 * cpu::words_per_draw), x + begin);
  }
  std::fill_n(y, rows, 0.0f);
  for (int k = 0; k < formula_terms(law, key); ++k) {
    const FormulaTerm term = formula_term(law, key, k);
    const float* column = x + term.feature;
    const auto add = [&](auto kind) {
      FormulaTerm constant = term;
      constant.kind = kind();
      for (int r = 0; r < rows; ++r) y[r] = add_term(constant, column[r * features], y[r]);
    };
    switch (term.kind) {  // outside the loop over rows
      case TermKind::sin:
        add(std::integral_constant<TermKind, TermKind::sin>{});
        break;
      case TermKind::cos:
        add(std::integral_constant<TermKind, TermKind::cos>{});
        break;
      case TermKind::tanh:
        add(std::integral_constant<TermKind, TermKind::tanh>{});
        break;
      case TermKind::exp:
        add(std::integral_constant<TermKind, TermKind::exp>{});
        break;
      default:
        add(std::integral_constant<TermKind, TermKind::linear>{});
    }
  }
  if (law.noise > 0) {
    SerialTeam team;
    add_noise(team, key, 0, law.noise, y, rows);
  }
}

std::vector<void*> pointers_of(Outs out) {
  std::vector<void*> pointers;
  for (const Array& array : out) pointers.push_back(array.data<std::byte>());
  return pointers;
}

}  // namespace

namespace priors {

std::string_view to_string(Filter filter) {
  static constexpr std::string_view names[] = {
      "non-finite values", "constant features", "constant target", "too few classes",
      "unfair split",      "disconnected",      "unlearnable",     "none"};
  return names[static_cast<int>(filter)];
}

}  // namespace priors

namespace op {

Metas PriorDatasets::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 0, 0);
  config.check();
  check_datasets(type_name, first, count);
  const std::int64_t rows = config.rows.max, features = config.features.max;
  const DType target = config.task == Task::classification ? DType::i64 : DType::f32;
  Metas metas;
  metas.push_back({{count, rows, features}, DType::f32});
  metas.push_back({{count, rows}, target});
  metas.push_back({{count, rows}, DType::bool_});
  metas.push_back({{count, features}, DType::bool_});
  metas.push_back({{count, features}, DType::i32});
  metas.push_back({{count, info_fields}, DType::i32});
  for (const Meta& meta : metas) check_extents(type_name, meta.shape);
  return metas;
}

void PriorDatasets::fill_host(std::span<void* const> out) const {
  CpuScratch scratch(config);
  for (std::int64_t i = 0; i < count; ++i) generate_one(*this, i, out, scratch);
}

FormulaConfig FormulaPrior::formula() const {
  return {{static_cast<int>(terms_min), static_cast<int>(terms_max)},
          range,
          {coefficient_min, coefficient_max},
          {frequency_min, frequency_max},
          shift,
          noise};
}

FormulaPrior FormulaPrior::with_formula(const FormulaConfig& f) const {
  FormulaPrior op = *this;
  op.terms_min = f.terms.min;
  op.terms_max = f.terms.max;
  op.range = f.range;
  op.coefficient_min = f.coefficient.min;
  op.coefficient_max = f.coefficient.max;
  op.frequency_min = f.frequency.min;
  op.frequency_max = f.frequency.max;
  op.shift = f.shift;
  op.noise = f.noise;
  return op;
}

Metas FormulaPrior::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 0, 0);
  check_datasets(type_name, first, count);
  if (rows < 1 || rows > max_rows || features < 1 || features > max_features)
    throw ValueError(fmt::format("[{}] {} rows of {} features: needs 1 to {} rows and 1 to {} features",
                                 type_name, rows, features, max_rows, max_features));
  if (terms_min < 1 || terms_max > max_terms || terms_min > terms_max)
    throw ValueError(fmt::format("[{}] {} to {} terms: needs a range within 1 to {}", type_name, terms_min,
                                 terms_max, max_terms));
  Config config;
  config.formula = formula();
  config.check();
  Metas metas;
  metas.push_back({{count, rows, features}, DType::f32});
  metas.push_back({{count, rows}, DType::f32});
  for (const Meta& meta : metas) check_extents(type_name, meta.shape);
  return metas;
}

void FormulaPrior::fill_host(std::span<void* const> out) const {
  const FormulaLaw law = formula_law(formula(), static_cast<int>(features));
  float *x = static_cast<float*>(out[0]), *y = static_cast<float*>(out[1]);
  for (std::int64_t i = 0; i < count; ++i) formula_one(*this, law, i, x + i * rows * features, y + i * rows);
}

}  // namespace op

void run(Cpu&, const op::PriorDatasets& op, Ins, Outs out) {
  const std::vector<void*> pointers = pointers_of(out);
  ScratchPool pool(op.config);
  parallel_for(op.count, [&](std::int64_t i) {
    const ScratchPool::Lease scratch = pool.lease();
    generate_one(op, i, pointers, *scratch);
  });
}

void run(Cpu&, const op::FormulaPrior& op, Ins, Outs out) {
  const FormulaLaw law = formula_law(op.formula(), static_cast<int>(op.features));
  float *x = out[0].data<float>(), *y = out[1].data<float>();
  parallel_ranges(op.count, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      formula_one(op, law, i, x + i * op.rows * op.features, y + i * op.rows);
  });
}

}  // namespace ferrite
