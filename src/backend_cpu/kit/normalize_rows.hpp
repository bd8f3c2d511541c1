// layer_norm and rms_norm with their gradients. The two differ by the mean alone, so that they share their
// code: rms_norm is the form that is not centred.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "backend_cpu/simd/simd.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite::cpu {

template <class W>
struct Statistics {
  W mean = 0, rstd = 0;
};

template <bool centred, class W>
[[gnu::flatten]] Statistics<W> normalize_row(const W* x, const W* weight, const W* bias, W eps, W* y,
                                             std::int64_t n) {
  Statistics<W> s;
  const W count = static_cast<W>(n);
  if constexpr (centred) s.mean = simd::sum<W>(n, [&](auto at) { return at(x); }) / count;
  const W squares = simd::sum<W>(n, [&](auto at) {
    const auto centre = at(x) - s.mean;
    return centre * centre;
  });
  s.rstd = 1 / std::sqrt(squares / count + eps);
  simd::map(y, n, [&](auto at) {
    const auto scaled = (at(x) - s.mean) * s.rstd * at(weight);
    if constexpr (centred)
      return scaled + at(bias);
    else
      return scaled;
  });
  return s;
}

/// Fills dx and adds the row's share to dweight and dbias.
template <bool centred, class W>
[[gnu::flatten]] void normalize_backward_row(const W* dy, const W* x, const W* weight, Statistics<W> s, W* dx,
                                             W* dweight, W* dbias, std::int64_t n) {
  const auto normed = [&](auto at) { return (at(x) - s.mean) * s.rstd; };
  const W count = static_cast<W>(n);
  W mean = 0, slope = 0;  // of dn = dy weight: its mean, and its regression on the normed row
  if constexpr (centred) {
    const auto sums = simd::sums<W, 2>(n, [&](auto at) {
      const auto dn = at(dy) * at(weight);
      return std::array<simd::Vec<W>, 2>{dn, dn * normed(at)};
    });
    mean = sums[0] / count;
    slope = sums[1] / count;
  } else {
    slope = simd::sum<W>(n, [&](auto at) { return at(dy) * at(weight) * normed(at); }) / count;
  }
  struct Results {
    simd::Vec<W> dx, dweight, dbias;
  };
  simd::walk<W>(
      0, n,
      [&](auto at) {
        const auto g = at(dy), xhat = normed(at);
        return Results{(g * at(weight) - mean - xhat * slope) * s.rstd, at(dweight) + g * xhat,
                       centred ? at(dbias) + g : g};
      },
      [&](auto at, int, const Results& r) {
        at.store(dx, r.dx);
        at.store(dweight, r.dweight);
        if constexpr (centred) at.store(dbias, r.dbias);
      });
}

template <bool centred, class Op>
void normalize(Cpu& cpu, const Op& op, Ins in, Outs out) {
  const Rows x = rows_of(cpu, in[0]);
  const std::int64_t n = x.length;
  SmallVector<Destination, 3> target;
  for (const Array& a : out) target.push_back(Destination(cpu, a, false));
  visit_wide(out[0].dtype(), [&]<class W>() {
    const Array weight = dense(cpu, in[1], dtype_of<W>);
    const Array bias = centred ? dense(cpu, in[2], dtype_of<W>) : weight;
    W* const rstd = target[centred ? 2 : 1].array().template data<W>();
    for_row_ranges(x.count, n, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> read(x.array, n);
      Writer<W> write(target[0], n);
      for (std::int64_t r = begin; r < end; ++r) {
        const Statistics<W> s =
            normalize_row<centred>(read(r * x.stride, n), weight.data<const W>(), bias.data<const W>(),
                                   static_cast<W>(op.eps), write.row(r * n), n);
        write.finish(n);
        if (centred) target[1].array().template data<W>()[r] = s.mean;
        rstd[r] = s.rstd;
      }
    });
  });
  for (Destination& t : target) t.commit();
}

template <bool centred>
void normalize_backward(Cpu& cpu, Ins in, Outs out, Accumulate mask) {
  constexpr std::size_t parameters = centred ? 2 : 1;  // weight, bias
  const Rows dy = rows_of(cpu, in[0]), x = rows_of(cpu, in[1]);
  const std::int64_t n = x.length;
  SmallVector<Destination, 3> target;
  for (std::size_t i = 0; i < out.size(); ++i)
    target.push_back(Destination(cpu, out[i], accumulates(mask, i)));
  // Chunks of rows, at most 64 of them, each with sums of its own for dweight and dbias.
  const std::int64_t grain =
      std::max({std::int64_t{1}, (x.count + 63) / 64, chunk_size / std::max<std::int64_t>(n, 1)});
  const std::int64_t chunks = (x.count + grain - 1) / grain;
  visit_wide(out[0].dtype(), [&]<class W>() {
    const Array weight = dense(cpu, in[2], dtype_of<W>);
    const Array mean = dense(cpu, in[3], dtype_of<W>), rstd = dense(cpu, in[in.size() - 1], dtype_of<W>);
    std::vector<W> partial(static_cast<std::size_t>(chunks * n) * parameters);
    parallel_ranges(x.count, grain, [&](std::int64_t begin, std::int64_t end) {
      W* const dweight = partial.data() + begin / grain * n;
      W* const dbias = dweight + chunks * n * (parameters - 1);
      Reader<W> read_dy(dy.array, n), read_x(x.array, n);
      Writer<W> write(target[0], n);
      for (std::int64_t r = begin; r < end; ++r) {
        const Statistics<W> s{centred ? mean.data<W>()[r] : W{0}, rstd.data<W>()[r]};
        normalize_backward_row<centred>(read_dy(r * dy.stride, n), read_x(r * x.stride, n),
                                        weight.data<const W>(), s, write.row(r * n), dweight, dbias, n);
        write.finish(n);
      }
    });
    for (std::size_t k = 0; k < parameters; ++k)
      sum_rows(partial.data() + k * chunks * n, chunks, n, target[1 + k]);
  });
  for (Destination& t : target) t.commit();
}

}  // namespace ferrite::cpu
