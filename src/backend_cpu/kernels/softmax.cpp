// softmax, log_softmax and their gradients: one row at a time, which stays in the first-level cache, so that
// memory sees each input and each output once.
#include "ferrite/ops/softmax.hpp"

#include "backend_cpu/simd/simd.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

template <class W>
[[gnu::flatten]] void softmax_row(const W* x, OutputRow<W> y, std::int64_t n, const W* ahead) {
  const W top = simd::max<W>(n, [&](auto at) { return at(x); });
  const W total = simd::map_sum(
      y.draft, n, [&](auto at) { return simd::exp(at(x) - top); }, ahead);
  const W scale = 1 / total;
  simd::map(y, n, [&](auto at) { return at(y.draft) * scale; });
}

template <class W>
[[gnu::flatten]] void log_softmax_row(const W* x, OutputRow<W> y, std::int64_t n, const W* ahead) {
  const W top = simd::max<W>(n, [&](auto at) { return at(x); });
  const W log_total = std::log(simd::sum<W>(
      n, [&](auto at) { return simd::exp(at(x) - top); }, ahead));
  simd::map(y, n, [&](auto at) { return (at(x) - top) - log_total; });
}

template <class W>
[[gnu::flatten]] void softmax_backward_row(const W* y, const W* dy, OutputRow<W> dx, std::int64_t n) {
  const W dot = simd::sum<W>(n, [&](auto at) { return at(y) * at(dy); });
  simd::map(dx, n, [&](auto at) { return at(y) * (at(dy) - dot); });
}

template <class W>
[[gnu::flatten]] void log_softmax_backward_row(const W* y, const W* dy, OutputRow<W> dx, std::int64_t n) {
  const W total = simd::sum<W>(n, [&](auto at) { return at(dy); });
  simd::map(dx, n, [&](auto at) { return at(dy) - simd::exp(at(y)) * total; });
}

/// kernel(x, y, n, ahead) for every row along `axis`, with x[k] the row of input k, y that of the output, and
/// `ahead` what to fetch meanwhile.
template <class Kernel>
void along_axis(Cpu& cpu, std::string_view name, int axis, Ins in, const Array& out, Accumulate mask,
                Kernel&& kernel) {
  axis = normalize_axis(name, axis, out.shape().rank());
  Destination target(cpu, axis_last(out, axis), accumulates(mask, 0));
  SmallVector<Rows, 2> rows;
  for (std::size_t k = 0; k < in.size(); ++k) rows.push_back(rows_of(cpu, axis_last(in[k], axis)));
  const std::int64_t n = rows[0].length;
  visit_wide(out.dtype(), [&]<class W>() {
    for_row_ranges(rows[0].count, n, [&](std::int64_t begin, std::int64_t end) {
      SmallVector<Reader<W>, 2> read;
      for (const Rows& r : rows) read.push_back(Reader<W>(r.array, n));
      Writer<W> write(target, n);
      for (std::int64_t i = begin; i < end; ++i) {
        const W* x[2] = {};
        for (std::size_t k = 0; k < read.size(); ++k) x[k] = read[k](i * rows[k].stride, n);
        kernel(x, write.output(i * n), n, read[0].ahead(x[0], rows[0].stride));
        write.finish(n);
      }
    });
  });
  target.commit();
}

}  // namespace

void run(Cpu& cpu, const op::Softmax& op, Ins in, Outs out) {
  along_axis(cpu, op.type_name, op.axis, in, out[0], Accumulate::none,
             [](auto x, auto y, std::int64_t n, auto ahead) { softmax_row(x[0], y, n, ahead); });
}
void run(Cpu& cpu, const op::LogSoftmax& op, Ins in, Outs out) {
  along_axis(cpu, op.type_name, op.axis, in, out[0], Accumulate::none,
             [](auto x, auto y, std::int64_t n, auto ahead) { log_softmax_row(x[0], y, n, ahead); });
}
void run(Cpu& cpu, const op::SoftmaxBackward& op, Ins in, Outs out, Accumulate mask) {
  along_axis(cpu, op.type_name, op.axis, in, out[0], mask,
             [](auto x, auto dx, std::int64_t n, auto) { softmax_backward_row(x[0], x[1], dx, n); });
}
void run(Cpu& cpu, const op::LogSoftmaxBackward& op, Ins in, Outs out, Accumulate mask) {
  along_axis(cpu, op.type_name, op.axis, in, out[0], mask,
             [](auto x, auto dx, std::int64_t n, auto) { log_softmax_backward_row(x[0], x[1], dx, n); });
}

}  // namespace ferrite
