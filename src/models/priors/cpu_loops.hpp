// The loops of the generators on the CPU, as each instruction set has them. Their bits are the same in all.
#pragma once

#include <span>

#include "ferrite/models/priors/ops.hpp"
#include "models/priors/cpu_scratch.hpp"
#include "models/priors/formula.hpp"

namespace ferrite::priors {

struct CpuLoops {
  /// Dataset i of the op, into its place of the outputs.
  void (*generate_one)(const op::PriorDatasets& op, std::int64_t i, std::span<void* const> out,
                       CpuScratch& scratch);
  /// x [rows, features] and y [rows] of raw Formula dataset i.
  void (*formula_one)(const op::FormulaPrior& op, const FormulaLaw& law, std::int64_t i, float* x, float* y);
};

}  // namespace ferrite::priors
