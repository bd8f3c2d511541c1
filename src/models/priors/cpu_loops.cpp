#include "models/priors/cpu_loops.hpp"

#include <algorithm>

#include "core/isa_table.hpp"
#include "models/priors/generate.hpp"
#include "models/priors/team.hpp"

namespace ferrite::priors {
namespace {

void generate_one(const op::PriorDatasets& op, std::int64_t i, std::span<void* const> out,
                  CpuScratch& scratch) {
  SerialTeam team;
  generate_dataset(team, op.config, op.seed, static_cast<std::uint64_t>(op.first + i), scratch.plan(),
                   scratch.workspace(), slice_of(out.data(), op.config, i));
}

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

}  // namespace

FERRITE_ISA_TABLE(priors, CpuLoops) = {generate_one, formula_one};

}  // namespace ferrite::priors
