// rope: the rotations of all positions are computed first, once for all heads; then each row is read and
// written once.
#include "ferrite/ops/rope.hpp"

#include <cmath>
#include <vector>

#include "ferrite/cpu/rows.hpp"
#include "math/fast_math.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// Cosines and sines [T, D/2].
template <class W>
struct Rotations {
  std::vector<W> c, s;
  std::int64_t half;

  Rotations(const op::Rope& op, const Array& frequencies, const Array* positions, std::int64_t count)
      : half(frequencies.shape()[0]) {
    c.resize(static_cast<std::size_t>(count * half));
    s.resize(c.size());
    const W* frequency = frequencies.data<W>();
    constexpr std::int64_t work = 16;  // of an angle, in elements
    for_row_ranges(count, work * half, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t t = begin; t < end; ++t) {
        const W position = static_cast<W>(positions ? given(*positions, t) : op.start + t);
        for (std::int64_t i = 0; i < half; ++i) set(t * half + i, position * frequency[i], op.inverse);
      }
    });
  }

 private:
  static std::int64_t given(const Array& positions, std::int64_t t) {
    return positions.dtype() == DType::i32 ? positions.data<std::int32_t>()[t]
                                           : positions.data<std::int64_t>()[t];
  }
  void set(std::int64_t at, W angle, bool inverse) {
    W cosine = 0, sine = 0;
    if (std::is_same_v<W, float> && std::abs(angle) <= fast::trig_limit) {
      const fast::SinCos both = fast::sincos(static_cast<float>(angle));
      cosine = static_cast<W>(both.cos), sine = static_cast<W>(both.sin);
    } else {
      cosine = std::cos(angle), sine = std::sin(angle);
    }
    c[static_cast<std::size_t>(at)] = cosine;
    s[static_cast<std::size_t>(at)] = inverse ? -sine : sine;
  }
};

/// One row; the elements of a pair are `apart`, pairs are `step` from each other.
template <std::int64_t step, class W>
void rotate(const W* x, const W* c, const W* s, std::int64_t half, std::int64_t apart, W* y) {
  for_each_index(half, [=](std::int64_t i) {
    const W left = x[i * step], right = x[i * step + apart];
    y[i * step] = left * c[i] - right * s[i];
    y[i * step + apart] = right * c[i] + left * s[i];
  });
}

/// The offset of row `index`, rows counted in row-major order.
std::int64_t row_offset(const Layout& layout, std::int64_t index) {
  std::int64_t offset = 0;
  for (int i = layout.shape.rank() - 2; i >= 0; --i) {
    offset += index % layout.shape[i] * layout.strides[i];
    index /= layout.shape[i];
  }
  return offset;
}

}  // namespace

void run(Cpu& cpu, const op::Rope& op, Ins in, Outs out, Accumulate mask) {
  const Array x = in[0].layout().strides.back() == 1 ? in[0] : dense(cpu, in[0]);
  const Array frequencies = dense(cpu, in[1]), positions = in.size() > 2 ? dense(cpu, in[2]) : Array();
  const Shape& shape = x.shape();
  const int place = op.axis < 0 ? op.axis + shape.rank() : op.axis;
  const std::int64_t width = shape.back(), half = width / 2, count = shape[place];
  std::int64_t between = 1;
  for (int i = place + 1; i + 1 < shape.rank(); ++i) between *= shape[i];
  Destination y(cpu, out[0], accumulates(mask, 0));
  if (shape.numel() == 0) return;
  visit_wide(x.dtype(), [&]<class W>() {
    const Rotations<W> rotations(op, frequencies, in.size() > 2 ? &positions : nullptr, count);
    for_row_ranges(shape.numel() / width, width, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> read(x, width);
      Writer<W> write(y, width);
      for (std::int64_t row = begin; row < end; ++row) {
        const auto at = static_cast<std::size_t>(row / between % count * half);
        const W *from = read(row_offset(x.layout(), row), width), *c = rotations.c.data() + at,
                *s = rotations.s.data() + at;
        if (op.pairs == RopePairs::halves)
          rotate<1>(from, c, s, half, half, write.row(row * width));
        else
          rotate<2>(from, c, s, half, 1, write.row(row * width));
        write.finish(width);
      }
    });
  });
  y.commit();
}

}  // namespace ferrite
