// mish on the CPU: all threads, any layout, f32 (also for 16-bit floats) or f64.
#include <ferrite/cpu/kernel.hpp>

#include "mish.hpp"

using namespace ferrite;

void run(Cpu& cpu, const Mish&, Ins in, Outs out) {
  const Array x = cpu::dense(cpu, in[0]);
  cpu::Destination y(cpu, out[0], false);
  cpu::visit_wide(x.dtype(), [&]<class W>() {
    parallel_ranges(x.shape().numel(), cpu::chunk_size, [&](std::int64_t begin, std::int64_t end) {
      cpu::Reader<W> read(x, cpu::chunk_size);
      cpu::Writer<W> write(y, cpu::chunk_size);
      const W* const from = read(begin, end - begin);
      W* const to = write.row(begin);
      for (std::int64_t i = 0; i < end - begin; ++i) {
        const W softplus = std::max(from[i], W{0}) + std::log1p(std::exp(-std::abs(from[i])));
        to[i] = from[i] * std::tanh(softplus);
      }
      write.finish(end - begin);
    });
  });
  y.commit();
}
