// The table of one instruction set: compiled, like the kernels, once for each.
#include "backend_cpu/kernels.hpp"
#include "core/isa_table.hpp"
#include "ferrite/backend/evaluate.hpp"
#include "ferrite/ops/all.hpp"

namespace ferrite::cpu {
namespace {

template <class... Ops>
constexpr Kernels make_kernels(OpList<Ops...>) {
  return {{detail::make_kernels<Cpu, Ops>()...}, convert_block, fill_block, add_block};
}

}  // namespace

FERRITE_ISA_TABLE(backend_cpu, Kernels) = make_kernels(op::Core{});

}  // namespace ferrite::cpu
