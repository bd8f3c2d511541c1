// dropout: the mask is drawn on the way and never stored.
#include "ferrite/ops/dropout.hpp"

#include "backend_cpu/random_words.hpp"
#include "backend_cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

static_assert(block_size % words_per_draw == 0 && chunk_size % block_size == 0);

template <class W>
void drop_block(const std::uint32_t* words, float p, W scale, const W* x, W* y, std::int64_t n) {
  FERRITE_VECTORIZE
  for (std::int64_t i = 0; i < n; ++i) y[i] = uniform_from_word<float>(words[i]) >= p ? x[i] * scale : W{0};
}

}  // namespace

void Cpu::run(const op::Dropout& op, Ins in, Outs out, Accumulate mask) {
  const Array x = dense(*this, in[0]);
  Destination y(*this, out[0], accumulates(mask, 0));
  const double scale = op.p < 1 ? 1 / (1 - op.p) : 0;
  visit_wide(x.dtype(), [&]<class W>() {
    parallel_ranges(x.shape().numel(), chunk_size, [&](std::int64_t chunk, std::int64_t end) {
      Reader<W> read(x, block_size);
      Writer<W> write(y, block_size);
      std::uint32_t words[block_size];
      for (std::int64_t begin = chunk; begin < end; begin += block_size) {
        const std::int64_t n = std::min(block_size, end - begin);
        for (std::int64_t i = 0; i < n; i += words_per_draw) draw_words({op.seed, op.stream}, begin + i, words + i);
        drop_block(words, static_cast<float>(op.p), static_cast<W>(scale), read(begin, n), write.row(begin), n);
        write.finish(n);
      }
    });
  });
  y.commit();
}

}  // namespace ferrite
