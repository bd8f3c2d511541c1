// The ops' rules, and their kernels on the CPU: one dataset at a time per thread.
#include "ferrite/models/priors/ops.hpp"

#include <fmt/format.h>

#include "core/isa_table.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "models/priors/cpu_loops.hpp"

namespace ferrite {

using namespace priors;

FERRITE_CHOOSE_TABLE(priors, CpuLoops)

namespace {

constexpr std::int64_t dataset_limit = std::int64_t{1} << 48;

void check_datasets(std::string_view op, std::int64_t first, std::int64_t count) {
  if (count < 1 || first < 0 || first > dataset_limit - count)
    throw ValueError(fmt::format(
        "[{}] {} datasets from number {} on: must be at least one, from 0 to 2^48 - 1", op, count, first));
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

Metas PriorDatasets::example(DType d) const {
  detail::check_dtype(type_name, "x", d, DType::f32);
  return {};
}

void PriorDatasets::fill_host(std::span<void* const> out) const {
  CpuScratch scratch(config);
  for (std::int64_t i = 0; i < count; ++i) chosen_table().generate_one(*this, i, out, scratch);
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

Metas FormulaPrior::example(DType d) const {
  detail::check_dtype(type_name, "x", d, DType::f32);
  return {};
}

void FormulaPrior::fill_host(std::span<void* const> out) const {
  const FormulaLaw law = formula_law(formula(), static_cast<int>(features));
  float *x = static_cast<float*>(out[0]), *y = static_cast<float*>(out[1]);
  for (std::int64_t i = 0; i < count; ++i)
    chosen_table().formula_one(*this, law, i, x + i * rows * features, y + i * rows);
}

}  // namespace op

void run(Cpu&, const op::PriorDatasets& op, Ins, Outs out) {
  const std::vector<void*> pointers = pointers_of(out);
  ScratchPool pool(op.config);
  parallel_for(op.count, [&](std::int64_t i) {
    const ScratchPool::Lease scratch = pool.lease();
    chosen_table().generate_one(op, i, pointers, *scratch);
  });
}

void run(Cpu&, const op::FormulaPrior& op, Ins, Outs out) {
  const FormulaLaw law = formula_law(op.formula(), static_cast<int>(op.features));
  float *x = out[0].data<float>(), *y = out[1].data<float>();
  parallel_ranges(op.count, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      chosen_table().formula_one(op, law, i, x + i * op.rows * op.features, y + i * op.rows);
  });
}

}  // namespace ferrite
