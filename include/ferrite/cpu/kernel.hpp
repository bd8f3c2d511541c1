// Everything for writing a CPU kernel, in the library or outside (examples/custom_op, CONTRIBUTING.md): rows
// of any layout as dense floats or doubles, blocks that stay in the first-level cache, and threads.
//
//   void run(Cpu& cpu, const Mish&, Ins in, Outs out) {
//     cpu::visit_wide(in[0].dtype(), [&]<class W>() {       // float, or double for f64
//       const cpu::Rows x = cpu::rows_of(cpu, in[0]);       // along the last axis, copied if necessary
//       cpu::Destination y(cpu, out[0], false);             // row-major: the output itself or a temporary
//       cpu::for_row_ranges(x.count, x.length, [&](std::int64_t begin, std::int64_t end) { ... });
//       y.commit();
//     });
//   }
#pragma once

#include "ferrite/cpu/blocks.hpp"
#include "ferrite/cpu/rows.hpp"
