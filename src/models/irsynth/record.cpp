// Making a record: draw a program until one is well-conditioned, write its texts, verify it on the CPU.
#include "ferrite/models/irsynth/record.hpp"

#include <fmt/format.h>

#include "ferrite/kernel/adjoint.hpp"
#include "ferrite/kernel/block.hpp"
#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/parse.hpp"
#include "ferrite/kernel/structure.hpp"
#include "ferrite/models/irsynth/emit_warp.hpp"
#include "models/irsynth/adjoint_check.hpp"
#include "models/irsynth/draw.hpp"
#include "models/irsynth/memory.hpp"
#include "models/irsynth/record_json.hpp"
#include "models/irsynth/record_steps.hpp"
#include "models/irsynth/sha256.hpp"

namespace ferrite::irsynth {

namespace {

using kernel::Value;

// Streams of a seed: programs by index and attempt, the choice of category and level, inputs (64 parameters
// each), directions for gradients.
constexpr int most_attempts = 64;
RandomKey program_key(std::uint64_t seed, std::int64_t index, int attempt) {
  return {seed, static_cast<std::uint64_t>(index) * most_attempts + static_cast<std::uint64_t>(attempt)};
}
RandomKey choice_key(std::uint64_t seed, std::int64_t index) {
  return {seed, 1ull << 61 | static_cast<std::uint64_t>(index)};
}
RandomKey direction_key(std::uint64_t seed, std::int64_t index) {
  return {seed, 1ull << 60 | static_cast<std::uint64_t>(index)};
}

struct Choice {
  const Category* category;
  int level;
};
Choice choose(const Config& config, std::uint64_t seed, std::int64_t index) {
  Draw draw(choice_key(seed, index));
  std::vector<const Category*> fitting;
  for (const Category& c : categories())
    if (c.lowest_level <= config.highest_level && c.highest_level >= config.lowest_level &&
        (c.in_warp || config.style != Style::warp))
      fitting.push_back(&c);
  const Category* c = nullptr;
  if (config.categories.empty())
    c = fitting[static_cast<std::size_t>(draw.below(static_cast<int>(fitting.size())))];
  else
    c = &category(draw.of(std::span<const std::string>(config.categories)));
  const int low = std::max(c->lowest_level, config.lowest_level),
            high = std::min(c->highest_level, config.highest_level);
  // Gradients make large records: one in eight has one, unless all are asked for.
  const bool gradient = high == highest_level && (low == high || draw.chance(0.125));
  return {c, gradient || low == high ? high : draw.between(low, std::min(high, highest_level - 1))};
}

std::vector<Value> interpreted(const Program& p, std::vector<Value> values, kernel::Precision precision) {
  kernel::InterpretOptions options;
  options.precision = precision;
  options.block_dim = p.block_dim;
  options.step_limit = 2'000'000;
  kernel::interpret(p.module, p.kernel(), p.grid, values, options);
  return values;
}

/// Moves every float up or down by four roundings, with signs that begin with `sign`.
std::vector<Value> moved(std::vector<Value> values, const Program& program, std::uint32_t sign) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    const kernel::ScalarType s =
        scalars_of(program.module, values[k].type)[0];  // all fields of a struct have one
    if (!kernel::is_float(s) || program.arguments[k].output) continue;
    const double rounding = s == kernel::ScalarType::f64 ? 0x1p-52 : 0x1p-23;
    for (kernel::Number& n : values[k].numbers) {
      sign = sign * 1664525 + 1013904223;
      n.real *= 1 + (sign >> 31 != 0 ? 4 : -4) * rounding;
    }
  }
  return values;
}

}  // namespace

bool run_in_interpreter(Record& r) {
  const std::vector<Value> native = interpreted(r.program, r.inputs, kernel::Precision::native);
  const std::vector<Value> exact = interpreted(r.program, r.inputs, kernel::Precision::f64);
  r.checks.roundings = roundings_between(exact, native);
  if (!(r.checks.roundings <= accepted_roundings)) return false;
  // Roundings inside the program differ at every input, and at a single input their effects may cancel. So
  // near the limits three more are tried.
  bool doubtful = r.checks.roundings > accepted_roundings / 8;
  for (const std::uint32_t sign : {1u, 2u, 3u}) {
    const std::vector<Value> inputs = moved(r.inputs, r.program, sign);
    const std::vector<Value> shifted = interpreted(r.program, inputs, kernel::Precision::f64);
    const double apart = roundings_between(exact, shifted);
    if (!(apart <= moved_roundings)) return false;
    doubtful = doubtful || apart > moved_roundings / 8;
    if (!doubtful) break;
    const std::vector<Value> rounded = interpreted(r.program, inputs, kernel::Precision::native);
    if (!(roundings_between(shifted, rounded) <= accepted_roundings)) return false;
  }
  r.outputs = native;
  r.checks.interpreted = true;
  return true;
}

void run_on_cpu(Record& r) {
  const kernel::BlockProgram code(r.program.module, r.program.kernel());
  Memory memory(r.program.module, r.inputs);
  kernel::BlockOptions options;
  options.block_dim = r.program.block_dim;
  code.run(r.program.grid, memory.arguments(), options);
  const double apart = roundings_between(r.outputs, memory.values());
  if (!(apart <= parity_roundings))
    r.failure = fmt::format("the CPU's outputs are {} roundings from the interpreter's", apart);
  else
    r.checks.cpu = code.fallback().empty() ? "block program" : "interpreter: " + code.fallback();
}

RandomKey input_key(std::uint64_t seed, std::int64_t index) {
  return {seed, 1ull << 63 | static_cast<std::uint64_t>(index) * 64};
}

namespace {

std::string warp_text(const Config& config, const kernel::Module& module, bool backward) {
  WarpOptions options;
  options.device = config.device;
  options.backward = backward;
  return emit_warp(module, options);
}

}  // namespace

std::string forward_text(const Config& config, const kernel::Module& module) {
  if (config.style == Style::warp) return warp_text(config, module, false);
  return config.device == Device::cuda ? kernel::emit_cuda(module) : kernel::emit_cpp(module);
}
std::string backward_text(const Config& config, const kernel::Module& module, const kernel::Module& back) {
  return config.style == Style::warp ? warp_text(config, module, true) : forward_text(config, back);
}

std::string structure_hash(const Program& program) {
  return sha256(kernel::structural_form(program.module, program.kernel(), kernel::Literals::erased), 32);
}

std::string_view Record::split() const {
  const int share = std::stoi(structure.substr(0, 6), nullptr, 16) % 100;
  return share < 90 ? "train" : share < 95 ? "validation" : "test";
}

void check_gradient(Record& r, const kernel::Module& back, std::uint64_t seed) {
  const AdjointCheck check = check_adjoint(r.program, back, r.inputs, direction_key(seed, r.index));
  (check.wrong ? r.failure : r.checks.adjoint) = check.verdict;
}

Record make_record(const Config& config, std::uint64_t seed, std::int64_t index) {
  const Choice choice = choose(config, seed, index);
  Record r;
  r.index = index;
  const bool backward = config.backward || choice.level == highest_level;
  const bool verify = config.verify != Verify::none;
  kernel::Module back;
  try {
    for (int attempt = 0;; ++attempt) {
      if (attempt == most_attempts)
        throw ValueError(fmt::format("no stable program in {} attempts", attempt));
      r.program = make_program(*choice.category, choice.level, program_key(seed, index, attempt));
      if (backward) {
        try {
          back = kernel::adjoint(r.program.module, r.program.kernel());
          r.checks.adjoint = "";
        } catch (const kernel::KernelError& e) {
          if (choice.level == highest_level) continue;
          back = {};
          r.checks.adjoint = "no gradient: " + e.problem();
        }
      }
      if (!verify && !config.values) break;
      r.inputs = make_arguments(r.program, input_key(seed, index));
      if (run_in_interpreter(r)) break;
    }
    r.structure = structure_hash(r.program);
    r.python = kernel::print(r.program.module);
    r.forward = forward_text(config, r.program.module);
    if (!back.kernels.empty()) r.backward = backward_text(config, r.program.module, back);
    if (!verify) return r;
    r.checks.round_trip = kernel::parse(r.python) == r.program.module;
    if (!r.checks.round_trip) r.failure = "the parser reads another program than was printed";
    run_on_cpu(r);
    if (!back.kernels.empty()) check_gradient(r, back, seed);
  } catch (const Error& e) {
    r.failure = e.what();
  }
  return r;
}

}  // namespace ferrite::irsynth
