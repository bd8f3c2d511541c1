// softmax_cross_entropy and its gradient, row by row, without ever storing the softmax.

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend_cpu/simd/simd.hpp"
#include "ferrite/cpu/rows.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// The targets as i64, each a class or the ignored one; anything else is a ValueError.
Array checked_targets(Cpu& cpu, std::string_view name, const Array& targets, std::int64_t classes,
                      std::int64_t ignore_index) {
  const Array result = dense(cpu, targets, DType::i64);
  op::check_targets(name,
                    {result.data<const std::int64_t>(), static_cast<std::size_t>(result.shape().numel())},
                    classes, ignore_index);
  return result;
}

template <class W>
[[gnu::flatten]] W row_max(const W* x, std::int64_t n) {
  return simd::max<W>(n, [&](auto at) { return at(x); });
}

/// The sum of exp(x - shift) over a row without the element at `apart`, which may be beyond it; `ahead` is
/// the next row.
template <class W>
[[gnu::flatten]] W row_exp_sum(const W* x, W shift, std::int64_t n, std::int64_t apart, const W* ahead) {
  return simd::sum<W>(
      n, [&](auto at) { return at.with(simd::exp(at(x) - shift), apart, W{0}); }, ahead);
}

/// What logsumexp is where the maximum is not finite.
template <class W>
W row_limit(const W* x, W top, std::int64_t n) {
  const bool nan = std::any_of(x, x + n, [](W v) { return std::isnan(v); });
  return nan ? std::numeric_limits<W>::quiet_NaN() : top;
}

/// The mean of x - shift: beside large logits a difference of means would lose digits.
template <class W>
[[gnu::flatten]] W row_mean(const W* x, W shift, std::int64_t n) {
  return simd::sum<W>(n, [&](auto at) { return at(x) - shift; }) / static_cast<W>(n);
}

/// A row's log(sum(exp)) in parts. The target stands apart: near certainty its part of the sum is close to 1,
/// and the others, which then are all that counts, would be lost beside it.
template <class W>
struct LogSum {
  W shift, log_sum;       // the largest logit, or 0 where it is not finite, and the rest
  W own = 0, others = 0;  // parts of the sum; valid for a finite maximum
  bool finite;

  LogSum(const W* row, std::int64_t n, std::int64_t target, bool has_target, const W* ahead) {
    const W top = row_max(row, n);
    finite = std::isfinite(top);
    shift = finite ? top : W{0};
    if (!finite) {
      log_sum = row_limit(row, top, n);
    } else if (has_target) {
      own = std::exp(row[target] - shift);
      others = row_exp_sum(row, shift, n, target, ahead);
      log_sum = std::log(own + others);
    } else {
      log_sum = std::log(row_exp_sum(row, shift, n, n, ahead));
    }
  }
  W loss(const W* row, std::int64_t n, std::int64_t target, W smoothing) const {
    const W loss = finite && own > others ? std::log1p(others / own) : log_sum - (row[target] - shift);
    return smoothing == 0 ? loss : loss + (log_sum - row_mean(row, shift, n) - loss) * smoothing;
  }
  /// Of the target: its probability less 1.
  W error(const W* row, std::int64_t target) const {
    return finite ? -others / (own + others) : std::expm1(row[target] - log_sum);
  }
};

/// The columns of a row: classes, then padding.
struct ClassColumns {
  std::int64_t classes, all;
};

/// dx = scale (p - target distribution), with log(p) = x - shift - log_sum and p - 1 of the target given.
template <class W>
[[gnu::flatten]] void row_gradient(const W* x, W shift, W log_sum, std::int64_t target, W error, W smoothing,
                                   W scale, OutputRow<W> dx, ClassColumns n) {
  const W spread = smoothing / static_cast<W>(n.classes);
  const W of_target = (error + smoothing - spread) * scale;
  simd::map(dx, n.classes, [&](auto at) {
    return at.with((simd::exp(at(x) - shift - log_sum) - spread) * scale, target, of_target);
  });
  std::fill(dx.data + n.classes, dx.data + n.all, W{0});
}

}  // namespace

void run(Cpu& cpu, const op::SoftmaxCrossEntropy& op, Ins in, Outs out) {
  const Rows x = rows_of(cpu, in[0]);
  const std::int64_t n = op::classes_of(x.length, op.classes);
  const Array targets = checked_targets(cpu, op.type_name, in[1], n, op.ignore_index);
  Destination loss(cpu, out[0], false), lse(cpu, out[1], false);
  visit_wide(out[0].dtype(), [&]<class W>() {
    for_row_ranges(x.count, n, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> read(x.array, n);
      const W smoothing = static_cast<W>(op.label_smoothing);
      for (std::int64_t r = begin; r < end; ++r) {
        const W* const row = read(r * x.stride, n);
        const std::int64_t target = targets.data<const std::int64_t>()[r];
        const bool ignored = target == op.ignore_index;
        const LogSum<W> sum(row, n, target, !ignored, read.ahead(row, x.stride));
        const W value = ignored ? W{0} : sum.loss(row, n, target, smoothing);
        loss.array().template data<W>()[r] = value;
        lse.array().template data<W>()[r] = sum.log_sum + sum.shift;
      }
    });
  });
  loss.commit();
  lse.commit();
}

void run(Cpu& cpu, const op::SoftmaxCrossEntropyBackward& op, Ins in, Outs out, Accumulate mask) {
  const Rows x = rows_of(cpu, in[1]);
  const ClassColumns n{op::classes_of(x.length, op.classes), x.length};
  const Array targets = checked_targets(cpu, op.type_name, in[2], n.classes, op.ignore_index);
  Destination dx(cpu, out[0], accumulates(mask, 0));
  visit_wide(out[0].dtype(), [&]<class W>() {
    const Array dloss = dense(cpu, in[0], dtype_of<W>), lse = dense(cpu, in[3], dtype_of<W>);
    const W smoothing = static_cast<W>(op.label_smoothing);
    for_row_ranges(x.count, n.all, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> read(x.array, n.classes);
      Writer<W> write(dx, n.all);
      for (std::int64_t r = begin; r < end; ++r) {
        const OutputRow<W> row = write.output(r * n.all);
        const std::int64_t target = targets.data<const std::int64_t>()[r];
        if (target == op.ignore_index) {
          std::fill_n(row.data, n.all, W{0});
        } else {
          const W* const logits = read(r * x.stride, n.classes);
          const W log_sum = lse.data<const W>()[r];
          // p - 1 as expm1: near certainty the difference of the two would keep only rounding errors.
          row_gradient(logits, log_sum, W{0}, target, std::expm1(logits[target] - log_sum), smoothing,
                       dloss.data<const W>()[r], row, n);
        }
        write.finish(n.all);
      }
    });
  });
  dx.commit();
}

void run(Cpu& cpu, const op::SoftmaxCrossEntropyWithGradient& op, Ins in, Outs out) {
  const Rows x = rows_of(cpu, in[0]);
  const ClassColumns n{op::classes_of(x.length, op.classes), x.length};
  const Array targets = checked_targets(cpu, op.type_name, in[1], n.classes, op.ignore_index);
  Destination loss(cpu, out[0], false), dx(cpu, out[1], false);
  const bool in_place = dx.array().data() == x.array.data();
  visit_wide(out[0].dtype(), [&]<class W>() {
    const W smoothing = static_cast<W>(op.label_smoothing);
    const W scale = dense(cpu, in[2], dtype_of<W>).template data<const W>()[0];
    for_row_ranges(x.count, n.all, [&](std::int64_t begin, std::int64_t end) {
      Reader<W> read(x.array, n.classes);
      Writer<W> write(dx, n.all);
      for (std::int64_t r = begin; r < end; ++r) {
        const W* const row = read(r * x.stride, n.classes);
        const std::int64_t target = targets.data<const std::int64_t>()[r];
        const bool ignored = target == op.ignore_index;
        const LogSum<W> sum(row, n.classes, target, !ignored, read.ahead(row, x.stride));
        loss.array().template data<W>()[r] = ignored ? W{0} : sum.loss(row, n.classes, target, smoothing);
        const OutputRow<W> gradient = in_place ? write.in_cache(r * n.all) : write.output(r * n.all);
        if (ignored)
          std::fill_n(gradient.data, n.all, W{0});
        else
          row_gradient(row, sum.shift, sum.log_sum, target, sum.error(row, target), smoothing, scale,
                       gradient, n);
        write.finish(n.all);
      }
    });
  });
  loss.commit();
  dx.commit();
}

}  // namespace ferrite
