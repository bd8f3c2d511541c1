// The kernels of Cpu, as each instruction set has them.
#pragma once

#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/op_table.hpp"
#include "ferrite/cpu/blocks.hpp"
#include "ferrite/ops/list.hpp"

namespace ferrite::cpu {

struct Kernels {
  std::array<OpKernels<Cpu>, op::Core::size> ops;
  decltype(&cpu::convert_block) convert_block;
  decltype(&cpu::fill_block) fill_block;
  decltype(&cpu::add_block) add_block;
};

}  // namespace ferrite::cpu
