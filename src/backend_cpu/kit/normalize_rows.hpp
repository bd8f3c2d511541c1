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
[[gnu::flatten]] Statistics<W> normalize_row(const W* x, const W* weight, const W* bias, W eps,
                                             OutputRow<W> y, std::int64_t n, const W* ahead) {
  Statistics<W> s;
  const W count = static_cast<W>(n);
  if constexpr (centred) s.mean = simd::sum<W>(n, [&](auto at) { return at(x); }) / count;
  const W squares = simd::sum<W>(n, [&](auto at) {
    const auto centre = at(x) - s.mean;
    return centre * centre;
  });
  s.rstd = 1 / std::sqrt(squares / count + eps);
  const auto normed = [&](auto at) {
    const auto scaled = (at(x) - s.mean) * s.rstd * at(weight);
    if constexpr (centred)
      return scaled + at(bias);
    else
      return scaled;
  };
  simd::map(y, n, normed, ahead);
  return s;
}

template <class W>
struct GradientRow {
  const W *dy, *x;
  OutputRow<W> dx;
  std::array<const W*, 2> ahead;  // what will be dy and x
  Statistics<W> statistics;
  W mean = 0, slope = 0;  // of dn = dy weight: its mean, and its regression on the normed row

  FERRITE_INLINE auto normed(auto at) const { return (at(x) - statistics.mean) * statistics.rstd; }
};

template <bool centred, class W>
[[gnu::flatten]] void fit_gradient(GradientRow<W>& row, const W* weight, std::int64_t n) {
  const W count = static_cast<W>(n);
  if constexpr (centred) {
    const auto both = [&](auto at) {
      const auto dn = at(row.dy) * at(weight);
      return std::array<simd::Vec<W>, 2>{dn, dn * row.normed(at)};
    };
    const auto sums = simd::sums<W, 2>(n, both, row.ahead);
    row.mean = sums[0] / count;
    row.slope = sums[1] / count;
  } else {
    const auto product = [&](auto at) {
      return std::array<simd::Vec<W>, 1>{at(row.dy) * at(weight) * row.normed(at)};
    };
    row.slope = simd::sums<W, 1>(n, product, row.ahead)[0] / count;
  }
}

/// Fills dx of `count` rows and adds their shares to dweight and dbias, which are read and written once for
/// all of them.
template <bool centred, std::size_t count, class W>
[[gnu::flatten]] void normalize_backward_rows(std::array<GradientRow<W>, count>& rows, const W* weight,
                                              W* dweight, W* dbias, std::int64_t n) {
  for (GradientRow<W>& row : rows) fit_gradient<centred>(row, weight, n);
  using Results = std::array<simd::Vec<W>, count + (centred ? 2 : 1)>;  // dx of the rows, dweight[, dbias]
  simd::walk<W>(
      0, n,
      [&](auto at) {
        Results r;
        r[count] = at(dweight);
        if constexpr (centred) r[count + 1] = at(dbias);
        for (std::size_t k = 0; k < count; ++k) {
          const GradientRow<W>& row = rows[k];
          const auto g = at(row.dy), xhat = row.normed(at);
          r[k] = (g * at(weight) - row.mean - xhat * row.slope) * row.statistics.rstd;
          r[count] += g * xhat;
          if constexpr (centred) r[count + 1] += g;
        }
        return r;
      },
      [&](auto at, int, const Results& r) {
        for (std::size_t k = 0; k < count; ++k) at.store(rows[k].dx, r[k]);
        at.store(dweight, r[count]);
        if constexpr (centred) at.store(dbias, r[count + 1]);
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
        const W* const row = read(r * x.stride, n);
        const Statistics<W> s =
            normalize_row<centred>(row, weight.data<const W>(), bias.data<const W>(), static_cast<W>(op.eps),
                                   write.output(r * n), n, read.ahead(row, x.stride));
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
      struct Access {
        Reader<W> dy, x;
        Writer<W> dx;
      };
      const auto access = [&] {
        return Access{Reader<W>(dy.array, n), Reader<W>(x.array, n), Writer<W>(target[0], n)};
      };
      std::array<Access, 2> pair{access(), access()};
      std::int64_t next = begin;
      const auto take = [&]<std::size_t count>() {
        std::array<GradientRow<W>, count> rows;
        constexpr auto step = static_cast<std::int64_t>(count);
        for (std::size_t k = 0; k < count; ++k, ++next) {
          const W* const dy_row = pair[k].dy(next * dy.stride, n);
          const W* const x_row = pair[k].x(next * x.stride, n);
          rows[k] = {dy_row,
                     x_row,
                     pair[k].dx.output(next * n),
                     {pair[k].dy.ahead(dy_row, step * dy.stride), pair[k].x.ahead(x_row, step * x.stride)},
                     {centred ? mean.data<W>()[next] : W{0}, rstd.data<W>()[next]}};
        }
        normalize_backward_rows<centred>(rows, weight.data<const W>(), dweight, dbias, n);
        for (std::size_t k = 0; k < count; ++k) pair[k].dx.finish(n);
      };
      if (centred && pair[0].x.in_place())
        while (end - next >= 2) take.template operator()<2>();
      while (next < end) take.template operator()<1>();
    });
    for (std::size_t k = 0; k < parameters; ++k)
      sum_rows(partial.data() + k * chunks * n, chunks, n, target[1 + k]);
  });
  for (Destination& t : target) t.commit();
}

}  // namespace ferrite::cpu
