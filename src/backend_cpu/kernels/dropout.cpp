// dropout: the mask is drawn on the way and never stored.
#include "ferrite/ops/dropout.hpp"

#include <cmath>

#include "backend_cpu/math/random_words.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

static_assert(block_size % words_per_draw == 0 && chunk_size % block_size == 0);

/// An element is kept where its draw, the top 24 bits of the word, is at least `threshold` = p 2^24.
template <class W>
void drop_block(const std::uint32_t* words, std::uint32_t threshold, W scale, const W* x, W* y,
                std::int64_t n) {
  for_each_index(n, [=](std::int64_t i) {
    const W scaled = x[i] * scale;  // always, or the loop would have a branch
    y[i] = words[i] >> 8 >= threshold ? scaled : W{0};
  });
}

}  // namespace

void run(Cpu& cpu, const op::Dropout& op, Ins in, Outs out, Accumulate mask) {
  const Array x = dense(cpu, in[0]);
  Destination y(cpu, out[0], accumulates(mask, 0));
  const double scale = op.p < 1 ? 1 / (1 - op.p) : 0;
  const auto threshold = static_cast<std::uint32_t>(std::ceil(static_cast<float>(op.p) * 0x1p24f));
  visit_wide(x.dtype(), [&]<class W>() {
    parallel_ranges(x.shape().numel(), chunk_size, [&](std::int64_t chunk, std::int64_t end) {
      Reader<W> read(x, block_size);
      Writer<W> write(y, block_size);
      std::uint32_t words[block_size];
      for (std::int64_t begin = chunk; begin < end; begin += block_size) {
        const std::int64_t n = std::min(block_size, end - begin);
        for (std::int64_t i = 0; i < n; i += words_per_draw)
          draw_words({op.seed, op.stream}, begin + i, words + i);
        drop_block(words, threshold, static_cast<W>(scale), read(begin, n), write.row(begin), n);
        write.finish(n);
      }
    });
  });
  y.commit();
}

}  // namespace ferrite
