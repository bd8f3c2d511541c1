// Running sums. Lines along the axis are independent: side by side they make vector code, one alone runs
// through its elements in order. Totals are f64 for floats.
#include "ferrite/ops/scan.hpp"

#include <algorithm>
#include <cstdlib>

#include "backend_cpu/kit/boxes.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite {
namespace cpu {
namespace {

constexpr std::int64_t widest_scan = 256;

/// A number of lines side by side, `width` of them from these offsets.
struct Lines {
  std::int64_t in, out, width;
};

/// Outputs and inputs without the axis: a nest over the lines' first elements.
LoopNest nest_of_lines(const Array& in, const Array& out, int axis) {
  const Layout source = in.layout().slice(axis, 0, 1, 1), target = out.layout().slice(axis, 0, 1, 1);
  const Layout* layouts[] = {&target, &source};
  return LoopNest(layouts);
}

class RunningSums {
 public:
  RunningSums(const Array& in, const Array& out, int axis)
      : in_(in),
        out_(out),
        length_(in.shape()[axis]),
        step_in_(in.layout().strides[axis]),
        step_out_(out.layout().strides[axis]),
        nest_(nest_of_lines(in, out, axis)) {
    const int inner = nest_.rank - 1;
    // Lines are taken together where their elements are neighbours, or where they are short.
    const bool together = std::abs(nest_.stride[1][inner]) < std::abs(step_in_) || length_ < 64;
    width_ = together ? std::min(widest_scan, nest_.extent[inner]) : 1;
  }

  void run() {
    const std::int64_t per_row = (nest_.extent[nest_.rank - 1] - 1) / width_ + 1;
    const std::int64_t grain = std::max<std::int64_t>(chunk_size / (width_ * length_), 1);
    parallel_ranges(nest_.outer() * per_row, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        visit_compute(in_.dtype(), [&]<class C>() { sum<C>(lines(i / per_row, i % per_row * width_)); });
      }
    });
  }

 private:
  Lines lines(std::int64_t row, std::int64_t column) const {
    const int inner = nest_.rank - 1;
    Lines lines{column * nest_.stride[1][inner], column * nest_.stride[0][inner],
                std::min(width_, nest_.extent[inner] - column)};
    for (int i = inner - 1; i >= 0; --i) {
      const std::int64_t at = row % nest_.extent[i];
      row /= nest_.extent[i];
      lines.in += at * nest_.stride[1][i];
      lines.out += at * nest_.stride[0][i];
    }
    return lines;
  }

  template <class C>
  void sum(const Lines& lines) const {
    using Total = std::conditional_t<std::is_integral_v<C>, std::uint64_t, double>;
    const int inner = nest_.rank - 1;
    const std::int64_t width = lines.width, rows = block_size / width;
    const std::int64_t stride_in[] = {step_in_, nest_.stride[1][inner]};
    const std::int64_t stride_out[] = {step_out_, nest_.stride[0][inner]};
    BlockBuffer buffer, scratch, result;
    Total total[widest_scan] = {};
    for (std::int64_t i = 0; i < length_; i += rows) {
      const Box box{2, {std::min(rows, length_ - i), width}};
      const auto* x = static_cast<const C*>(load_box(box, in_.dtype(), at(in_, lines.in + i * step_in_),
                                                     stride_in, dtype_of<C>, buffer, scratch));
      auto* y = reinterpret_cast<C*>(result.bytes);
      if (width == 1)
        add_up(x, y, box.extent[0], total[0]);
      else
        add_up(x, y, box.extent[0], width, total);
      store_box(box, dtype_of<C>, result.bytes, out_.dtype(), at(out_, lines.out + i * step_out_), stride_out,
                scratch);
    }
  }

  template <class C, class Total>
  static void add_up(const C* x, C* y, std::int64_t n, Total& total) {
    Total sum = total;
    for (std::int64_t i = 0; i < n; ++i) {
      sum += static_cast<Total>(x[i]);
      y[i] = static_cast<C>(sum);
    }
    total = sum;
  }
  template <class C, class Total>
  static void add_up(const C* x, C* y, std::int64_t rows, std::int64_t width, Total* total) {
    for (std::int64_t r = 0; r < rows; ++r, x += width, y += width) {
      for_each_index(width, [=](std::int64_t j) {
        total[j] += static_cast<Total>(x[j]);
        y[j] = static_cast<C>(total[j]);
      });
    }
  }

  static std::byte* at(const Array& x, std::int64_t offset) {
    return x.data() + offset * static_cast<std::int64_t>(size_of(x.dtype()));
  }

  const Array in_, out_;
  const std::int64_t length_, step_in_, step_out_;
  const LoopNest nest_;  // over the lines: output, input
  std::int64_t width_;   // lines taken together
};

}  // namespace
}  // namespace cpu

void run(Cpu&, const op::Scan& op, Ins in, Outs out) {
  if (out[0].shape().numel() == 0) return;
  const int axis = normalize_axis(op.name(), op.axis, in[0].shape().rank());
  const auto from_start = [&](const Array& x) {
    return op.reverse ? x.with_layout(x.layout().flip(axis)) : x;
  };
  cpu::RunningSums(from_start(in[0]), from_start(out[0]), axis).run();
}

}  // namespace ferrite
