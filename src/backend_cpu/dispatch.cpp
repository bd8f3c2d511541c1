// run(Cpu&, op, ...) for a library with several instruction sets: calls the kernel of the chosen one. (Where
// there is one set, its kernels themselves have these names.)
#include "backend_cpu/kernels.hpp"
#include "core/isa_table.hpp"
#include "ferrite/ops/all.hpp"

namespace ferrite {

namespace cpu {

FERRITE_CHOOSE_TABLE(backend_cpu, Kernels)

void convert_block(DType from, const void* source, DType to, void* target, std::int64_t n) {
  chosen_table().convert_block(from, source, to, target, n);
}
void fill_block(DType dtype, const void* value, void* target, std::int64_t n) {
  chosen_table().fill_block(dtype, value, target, n);
}
void add_block(DType dtype, const void* source, void* target, std::int64_t n) {
  chosen_table().add_block(dtype, source, target, n);
}

}  // namespace cpu

namespace {

template <class Op>
const OpKernels<Cpu>& kernel_of() {
  return cpu::chosen_table().ops[op::Core::index_of<Op>()];
}

}  // namespace

#define FERRITE_RUN(Op) \
  void run(Cpu& cpu, const op::Op& op, Ins in, Outs out) { kernel_of<op::Op>().run(cpu, &op, in, out); }
#define FERRITE_RUN_ADDING(Op)                                              \
  void run(Cpu& cpu, const op::Op& op, Ins in, Outs out, Accumulate mask) { \
    kernel_of<op::Op>().run_adding(cpu, &op, in, out, mask);                \
  }
#define FERRITE_ACCEPTS(Op)                                     \
  bool accepts(const Cpu& cpu, const op::Op& op, MetaSpan in) { \
    return kernel_of<op::Op>().accepts(cpu, &op, in);           \
  }

// The kernels that the headers of ops declare (cmake/CpuKernelList.cmake).
#include "backend_cpu/kernel_list.hpp"

}  // namespace ferrite
