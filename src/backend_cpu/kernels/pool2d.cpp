// max_pool2d, avg_pool2d and their gradients: plane by plane, a row of outputs at a time. The taps of the
// window are the outer loops and the outputs the inner one, which has no branches and becomes vector code.
#include "ferrite/ops/pool2d.hpp"

#include <vector>

#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// One spatial axis.
struct Axis {
  std::int64_t input, output, kernel, step, padding;

  /// The outputs [first, last) whose tap k lies inside the input.
  std::int64_t first(std::int64_t k) const {
    return k >= padding ? 0 : std::min(output, (padding - k + step - 1) / step);
  }
  std::int64_t last(std::int64_t k) const {
    const std::int64_t room = input - 1 + padding - k;
    return room < 0 ? 0 : std::min(output, room / step + 1);
  }
};

struct PoolPlanes {
  Axis vertical, horizontal;
  std::int64_t count;  // N * C

  PoolPlanes(const op::PoolGeometry& g, const Shape& x, const Shape& y)
      : vertical{x[2], y[2], g.kernel[0], g.step(0), g.padding[0]},
        horizontal{x[3], y[3], g.kernel[1], g.step(1), g.padding[1]},
        count(x[0] * x[1]) {}
  std::int64_t input() const { return vertical.input * horizontal.input; }
  std::int64_t output() const { return vertical.output * horizontal.output; }

  /// For the taps inside the input, in row-major order of the window: f(start, first, last), where output w
  /// of row `h` in [first, last) meets the input's element start + w * step.
  template <class F>
  void for_taps(std::int64_t h, F&& f) const {
    for (std::int64_t i = 0; i < vertical.kernel; ++i) {
      const std::int64_t row = h * vertical.step + i - vertical.padding;
      if (row < 0 || row >= vertical.input) continue;
      for (std::int64_t j = 0; j < horizontal.kernel; ++j)
        f(row * horizontal.input + j - horizontal.padding, horizontal.first(j), horizontal.last(j));
    }
  }
};

/// Calls f with the step as a constant where it is 1 or 2: other steps leave the loop scalar anyway.
template <class F>
void visit_step(std::int64_t step, F&& f) {
  if (step == 1)
    f(std::integral_constant<std::int64_t, 1>{});
  else if (step == 2)
    f(std::integral_constant<std::int64_t, 2>{});
  else
    f(step);
}

/// As wide as W, so that values and places fill vectors alike.
template <class W>
using Place = std::conditional_t<sizeof(W) == 4, std::int32_t, std::int64_t>;

/// `places` is room for one row of outputs.
template <class W>
void max_plane(const PoolPlanes& planes, const W* x, W* y, std::int64_t* index, Place<W>* places) {
  const Axis &rows = planes.vertical, &columns = planes.horizontal;
  for (std::int64_t h = 0; h < rows.output; ++h, y += columns.output, index += columns.output) {
    // The first element of the window stands until a larger one comes, so that a window of -inf has a place
    // too.
    const std::int64_t top = std::max<std::int64_t>(h * rows.step - rows.padding, 0) * columns.input;
    for (std::int64_t w = 0; w < columns.output; ++w) {
      y[w] = -std::numeric_limits<W>::infinity();
      places[w] = static_cast<Place<W>>(top + std::max<std::int64_t>(w * columns.step - columns.padding, 0));
    }
    visit_step(columns.step, [&](auto step) {
      planes.for_taps(h, [&](std::int64_t start, std::int64_t first, std::int64_t last) {
        for_each_index(last - first,
                       [=, from = x + start + first * step, best = y + first, place = places + first,
                        begin = static_cast<Place<W>>(start + first * step)](std::int64_t w) {
                         const W value = from[w * step], old = best[w];
                         const bool larger = (value > old) | ((value != value) & (old == old));
                         best[w] = larger ? value : old;
                         place[w] = larger ? static_cast<Place<W>>(begin + w * step) : place[w];
                       });
      });
    });
    std::copy_n(places, columns.output, index);
  }
}

template <class W>
void mean_plane(const PoolPlanes& planes, const W* x, W* y) {
  const Axis &rows = planes.vertical, &columns = planes.horizontal;
  const W share = 1 / static_cast<W>(rows.kernel * columns.kernel);
  for (std::int64_t h = 0; h < rows.output; ++h, y += columns.output) {
    std::fill_n(y, columns.output, W{0});
    visit_step(columns.step, [&](auto step) {
      planes.for_taps(h, [&](std::int64_t start, std::int64_t first, std::int64_t last) {
        for_each_index(last - first, [=, from = x + start + first * step, to = y + first](std::int64_t w) {
          to[w] += from[w * step];
        });
      });
    });
    for (std::int64_t w = 0; w < columns.output; ++w) y[w] *= share;
  }
}

template <class W>
void mean_plane_backward(const PoolPlanes& planes, const W* dy, W* dx) {
  const Axis &rows = planes.vertical, &columns = planes.horizontal;
  const W share = 1 / static_cast<W>(rows.kernel * columns.kernel);
  std::fill_n(dx, planes.input(), W{0});
  for (std::int64_t h = 0; h < rows.output; ++h, dy += columns.output) {
    visit_step(columns.step, [&](auto step) {
      planes.for_taps(h, [&](std::int64_t start, std::int64_t first, std::int64_t last) {
        for_each_index(last - first, [=, to = dx + start + first * step, from = dy + first](std::int64_t w) {
          to[w * step] += from[w] * share;
        });
      });
    });
  }
}

/// kernel(plane, x, y) for every plane: n elements of x there make m of y.
template <class W, class Kernel>
void for_planes(const Array& x, std::int64_t n, const Destination& out, std::int64_t m, std::int64_t count,
                Kernel&& kernel) {
  for_row_ranges(count, std::max(n, m), [&](std::int64_t begin, std::int64_t end) {
    Reader<W> read(x, n);
    Writer<W> write(out, m);
    for (std::int64_t p = begin; p < end; ++p) {
      kernel(p, read(p * n, n), write.row(p * m));
      write.finish(m);
    }
  });
}

}  // namespace

void run(Cpu& cpu, const op::MaxPool2d& op, Ins in, Outs out) {
  const PoolPlanes planes(op.geometry, in[0].shape(), out[0].shape());
  const Array x = dense(cpu, in[0]);
  Destination y(cpu, out[0], false), index(cpu, out[1], false);
  // Planes with more places than 32 bits can name are computed in f64, whose places have 64.
  const bool vast = planes.input() > std::numeric_limits<std::int32_t>::max();
  visit_wide(vast ? DType::f64 : x.dtype(), [&]<class W>() {
    for_planes<W>(
        x, planes.input(), y, planes.output(), planes.count, [&](std::int64_t p, const W* from, W* to) {
          std::vector<Place<W>> places(static_cast<std::size_t>(planes.horizontal.output));
          max_plane(planes, from, to, index.array().template data<std::int64_t>() + p * planes.output(),
                    places.data());
        });
  });
  y.commit();
  index.commit();
}

void run(Cpu& cpu, const op::MaxPool2dBackward& op, Ins in, Outs out, Accumulate mask) {
  const Array dy = dense(cpu, in[0]), index = dense(cpu, in[1], DType::i64);
  const std::int64_t m = in[0].shape()[2] * in[0].shape()[3], n = op.input[2] * op.input[3];
  Destination dx(cpu, out[0], accumulates(mask, 0));
  visit_wide(dy.dtype(), [&]<class W>() {
    for_planes<W>(dy, m, dx, n, op.input[0] * op.input[1], [&](std::int64_t p, const W* from, W* to) {
      const std::int64_t* const place = index.data<const std::int64_t>() + p * m;
      std::fill_n(to, n, W{0});
      for (std::int64_t i = 0; i < m; ++i) {
        if (place[i] < 0 || place[i] >= n) op.throw_place(place[i], p * m + i);
        to[place[i]] += from[i];
      }
    });
  });
  dx.commit();
}

void run(Cpu& cpu, const op::AvgPool2d& op, Ins in, Outs out) {
  const PoolPlanes planes(op.geometry, in[0].shape(), out[0].shape());
  const Array x = dense(cpu, in[0]);
  Destination y(cpu, out[0], false);
  visit_wide(x.dtype(), [&]<class W>() {
    for_planes<W>(x, planes.input(), y, planes.output(), planes.count,
                  [&](std::int64_t, const W* from, W* to) { mean_plane(planes, from, to); });
  });
  y.commit();
}

void run(Cpu& cpu, const op::AvgPool2dBackward& op, Ins in, Outs out, Accumulate mask) {
  const PoolPlanes planes(op.geometry, op.input, in[0].shape());
  const Array dy = dense(cpu, in[0]);
  Destination dx(cpu, out[0], accumulates(mask, 0));
  visit_wide(dy.dtype(), [&]<class W>() {
    for_planes<W>(dy, planes.output(), dx, planes.input(), planes.count,
                  [&](std::int64_t, const W* from, W* to) { mean_plane_backward(planes, from, to); });
  });
  dx.commit();
}

}  // namespace ferrite
