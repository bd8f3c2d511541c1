// batch_norm and its gradient: two walks over the planes [n, c], the first for the statistics of each plane,
// which are then merged per channel in the order of n.
#include "ferrite/ops/batch_norm.hpp"

#include <vector>

#include "backend_cpu/simd/simd.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// x [N, C, ...] as N * C planes of `length` elements. Short planes would leave vectors half empty: then the
/// channel comes first, and each channel is one plane.
struct Planes {
  std::int64_t batch, channels, length;
  bool channel_first;

  explicit Planes(const Shape& x) : batch(x[0]), channels(x[1]), length(1) {
    for (int i = 2; i < x.rank(); ++i) length *= x[i];
    channel_first = length < 16;
    if (channel_first) {
      length *= batch;
      batch = 1;
    }
  }
  Array arrange(const Array& x) const {
    if (!channel_first) return x;
    Shape order;
    for (int i = 0; i < x.shape().rank(); ++i) order.push_back(i < 2 ? 1 - i : i);
    return x.with_layout(x.layout().permute(order));
  }
  std::int64_t count() const { return batch * channels; }
  double per_channel() const { return static_cast<double>(batch * length); }
};

/// Two numbers per plane or per channel.
struct Moments {
  double first = 0, second = 0;
};

/// Mean, and sum of squared distances from it.
template <class W>
[[gnu::flatten]] Moments plane_moments(const W* x, std::int64_t n) {
  const W mean = simd::sum<W>(n, [&](auto at) { return at(x); }) / static_cast<W>(n);
  const W squares = simd::sum<W>(n, [&](auto at) {
    const auto centre = at(x) - mean;
    return centre * centre;
  });
  return {mean, squares};
}

template <class W>
[[gnu::flatten]] void scale_plane(const W* x, W mean, W scale, W shift, OutputRow<W> y, std::int64_t n) {
  simd::map(y, n, [&](auto at) { return (at(x) - mean) * scale + shift; });
}

/// Sums of dy and of dy times the normed x.
template <class W>
[[gnu::flatten]] Moments plane_gradients(const W* dy, const W* x, W mean, W rstd, std::int64_t n) {
  const auto sums = simd::sums<W, 2>(n, [&](auto at) {
    const auto g = at(dy);
    return std::array<simd::Vec<W>, 2>{g, g * ((at(x) - mean) * rstd)};
  });
  return {sums[0], sums[1]};
}

template <class W>
[[gnu::flatten]] void plane_dx(const W* dy, const W* x, W mean, W scale, W offset, W slope, OutputRow<W> dx,
                               std::int64_t n) {
  simd::map(dx, n, [&](auto at) { return (at(dy) - offset - (at(x) - mean) * slope) * scale; });
}

}  // namespace

void run(Cpu& cpu, const op::BatchNorm& op, Ins in, Outs out) {
  const Planes planes(in[0].shape());
  const std::int64_t n = planes.length, channels = planes.channels;
  const Array x = dense(cpu, planes.arrange(in[0]));
  Destination y(cpu, planes.arrange(out[0]), false), mean(cpu, out[1], false), rstd(cpu, out[2], false);
  visit_wide(out[0].dtype(), [&]<class W>() {
    std::vector<Moments> parts(static_cast<std::size_t>(planes.count()));
    for_row_ranges(planes.count(), n, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> read(x, n);
      for (std::int64_t p = begin; p < end; ++p)
        parts[static_cast<std::size_t>(p)] = plane_moments(read(p * n, n), n);
    });
    W* const means = mean.array().data<W>();
    W* const rstds = rstd.array().data<W>();
    for (std::int64_t c = 0; c < channels; ++c) {
      double centre = 0, squares = 0;
      for (std::int64_t p = c; p < planes.count(); p += channels)
        centre += parts[static_cast<std::size_t>(p)].first;
      centre /= static_cast<double>(planes.batch);
      for (std::int64_t p = c; p < planes.count(); p += channels) {
        const Moments& part = parts[static_cast<std::size_t>(p)];
        squares += part.second + static_cast<double>(n) * (part.first - centre) * (part.first - centre);
      }
      means[c] = static_cast<W>(centre);
      rstds[c] = static_cast<W>(1 / std::sqrt(squares / planes.per_channel() + op.eps));
    }
    const Array weight = dense(cpu, in[1], dtype_of<W>), bias = dense(cpu, in[2], dtype_of<W>);
    for_row_ranges(planes.count(), n, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> read(x, n);
      Writer<W> write(y, n);
      for (std::int64_t p = begin; p < end; ++p) {
        const std::int64_t c = p % channels;
        scale_plane(read(p * n, n), means[c], rstds[c] * weight.data<W>()[c], bias.data<W>()[c],
                    write.output(p * n), n);
        write.finish(n);
      }
    });
  });
  y.commit();
  mean.commit();
  rstd.commit();
}

void run(Cpu& cpu, const op::BatchNormBackward&, Ins in, Outs out, Accumulate mask) {
  const Planes planes(in[1].shape());
  const std::int64_t n = planes.length, channels = planes.channels;
  const Array dy = dense(cpu, planes.arrange(in[0])), x = dense(cpu, planes.arrange(in[1]));
  Destination dx(cpu, planes.arrange(out[0]), accumulates(mask, 0));
  Destination dweight(cpu, out[1], accumulates(mask, 1)), dbias(cpu, out[2], accumulates(mask, 2));
  visit_wide(out[0].dtype(), [&]<class W>() {
    const Array weight = dense(cpu, in[2], dtype_of<W>);
    const Array mean = dense(cpu, in[3], dtype_of<W>), rstd = dense(cpu, in[4], dtype_of<W>);
    const W* const means = mean.data<W>();
    const W* const rstds = rstd.data<W>();
    std::vector<Moments> parts(static_cast<std::size_t>(planes.count()));
    for_row_ranges(planes.count(), n, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> read_dy(dy, n), read_x(x, n);
      for (std::int64_t p = begin; p < end; ++p) {
        const std::int64_t c = p % channels;
        parts[static_cast<std::size_t>(p)] =
            plane_gradients(read_dy(p * n, n), read_x(p * n, n), means[c], rstds[c], n);
      }
    });
    Writer<W> write_weight(dweight, channels), write_bias(dbias, channels);
    W* const weight_gradient = write_weight.row(0);
    W* const bias_gradient = write_bias.row(0);
    for (std::int64_t c = 0; c < channels; ++c) {
      Moments total;
      for (std::int64_t p = c; p < planes.count(); p += channels) {
        total.first += parts[static_cast<std::size_t>(p)].first;
        total.second += parts[static_cast<std::size_t>(p)].second;
      }
      bias_gradient[c] = static_cast<W>(total.first);
      weight_gradient[c] = static_cast<W>(total.second);
    }
    const W share = static_cast<W>(1 / planes.per_channel());
    for_row_ranges(planes.count(), n, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> read_dy(dy, n), read_x(x, n);
      Writer<W> write(dx, n);
      for (std::int64_t p = begin; p < end; ++p) {
        const std::int64_t c = p % channels;
        plane_dx(read_dy(p * n, n), read_x(p * n, n), means[c], rstds[c] * weight.data<W>()[c],
                 bias_gradient[c] * share, weight_gradient[c] * rstds[c] * share, write.output(p * n), n);
        write.finish(n);
      }
    });
    write_weight.finish(channels);
    write_bias.finish(channels);
  });
  dx.commit();
  dweight.commit();
  dbias.commit();
}

}  // namespace ferrite
