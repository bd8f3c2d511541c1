// From arrays to launches: collapses layouts, chooses the kernel, splits problems that 32 bits cannot count.
#include "backend_cuda/kit/elementwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "ferrite/core/error.hpp"
#include "ferrite/core/integers.hpp"

namespace ferrite::cuda {
namespace {

constexpr std::int64_t most_items = std::numeric_limits<std::int32_t>::max();

template <class T>
std::uint64_t bits_of(T value) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

/// One run: the op, and facts about its operands before they are collapsed.
class Run {
 public:
  Run(const Call& call, const Elementwise& op, std::span<const Source> sources, const Array& out, bool add)
      : call_(call), op_(op), sources_(sources), out_(out), add_(add) {
    typed_ = out.dtype() == op.result;
    std::size_t widest = size_of(op.result);
    for (const Source& source : sources) {
      typed_ = typed_ && (!source.array || source.array->dtype() == source.dtype);
      widest = std::max(widest, size_of(source.dtype));
    }
    lanes_ = pack_lanes_for(widest);
  }

  void start() const {
    const std::int64_t n = out_.shape().numel();
    if (n == 0 || (typed_ && op_.typed.dense && n <= most_items && run_if_dense(n))) return;
    Layout layouts[1 + max_inputs];
    const Layout* operands[1 + max_inputs] = {&out_.layout()};
    Pointers pointers = {out_.data()};
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      const Array* x = sources_[k].array;
      layouts[k] = x ? x->layout().expand(out_.shape())
                     : Layout{out_.shape(), Shape::filled(out_.shape().rank(), 0), 0};
      operands[k + 1] = &layouts[k];
      pointers.at[k + 1] = x ? x->data() : nullptr;
    }
    run_nest(LoopNest(std::span(operands, sources_.size() + 1)), pointers);
  }

 private:
  /// Of the first element of each operand; nullptr: the value.
  struct Pointers {
    std::byte* at[1 + max_inputs] = {};
  };

  DType dtype_of(int operand) const {
    if (operand == 0) return out_.dtype();
    const Source& source = sources_[static_cast<std::size_t>(operand - 1)];
    return source.array ? source.array->dtype() : source.dtype;
  }
  int operands() const { return 1 + static_cast<int>(sources_.size()); }
  bool is_aligned(const std::byte* data, DType dtype) const {
    return reinterpret_cast<std::uintptr_t>(data) % (static_cast<std::size_t>(lanes_) * size_of(dtype)) == 0;
  }

  ElementwiseArgs args_for(const Pointers& pointers, std::int64_t count, std::uint64_t value) const {
    ElementwiseArgs args{};
    args.out = pointers.at[0];
    for (int k = 1; k < operands(); ++k) args.in[k - 1] = pointers.at[k];
    args.value = value;
    args.parameter = op_.parameter;
    args.count = static_cast<std::uint32_t>(count);
    args.fn = op_.fn;
    args.add = add_;
    return args;
  }

  /// A short path for the most common case, without a loop nest.
  bool run_if_dense(std::int64_t n) const {
    if (!out_.layout().is_contiguous() || !is_aligned(out_.data(), out_.dtype())) return false;
    Pointers pointers = {out_.data()};
    bool single[max_inputs] = {};
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      const Array* x = sources_[k].array;
      if (!x) continue;
      pointers.at[k + 1] = x->data();
      const std::int64_t size = x->shape().numel();
      single[k] = size == 1;
      if (single[k]) continue;
      if (size != n || !x->layout().is_contiguous() || !is_aligned(x->data(), x->dtype())) return false;
    }
    launch_dense(pointers, n, single);
    return true;
  }

  void launch_dense(const Pointers& pointers, std::int64_t n, const bool (&single)[max_inputs]) const {
    ElementwiseArgs args = args_for(pointers, n, op_.typed_value);
    std::copy(std::begin(single), std::end(single), args.single);
    const std::int64_t packs = std::max<std::int64_t>(n / lanes_, 1);
    launch(call_, op_.typed.dense, divide_up(packs, block_threads), args, Start::early);
  }

  /// The largest number of elements that an operand spans.
  static std::int64_t reach(const LoopNest& nest, int axis) {
    std::int64_t farthest = 0;
    for (int k = 0; k < nest.operands; ++k)
      farthest = std::max(farthest, (nest.extent[axis] - 1) * std::abs(nest.stride[k][axis]));
    return farthest;
  }
  static bool fits(const LoopNest& nest) {
    if (nest.numel() > most_items) return false;
    std::int64_t sum = 0;
    for (int axis = 0; axis < nest.rank; ++axis) {
      const std::int64_t r = reach(nest, axis);
      if (r > most_items - sum) return false;
      sum += r;
    }
    return true;
  }

  /// Cuts the nest along its longest axis until 32 bits can count everything.
  void run_nest(const LoopNest& nest, const Pointers& pointers) const {
    if (fits(nest)) return run_piece(nest, pointers);
    int axis = 0;
    for (int i = 1; i < nest.rank; ++i)
      if (reach(nest, i) > reach(nest, axis)) axis = i;
    LoopNest first = nest, rest = nest;
    first.extent[axis] = nest.extent[axis] / 2;
    if (first.extent[axis] > 64) first.extent[axis] &= -64;  // whole packs stay whole
    rest.extent[axis] -= first.extent[axis];
    Pointers further = pointers;
    for (int k = 0; k < operands(); ++k) {
      if (further.at[k])
        further.at[k] +=
            first.extent[axis] * nest.stride[k][axis] * static_cast<std::int64_t>(size_of(dtype_of(k)));
    }
    run_nest(first, pointers);
    run_nest(rest, further);
  }

  void run_piece(const LoopNest& nest, const Pointers& pointers) const {
    const int last = nest.rank - 1;
    if (!typed_ || !takes_packs(nest, pointers)) return launch_strided(nest, pointers);
    if (nest.rank == 1 && op_.typed.dense) {
      bool single[max_inputs] = {};
      for (int k = 1; k < operands(); ++k) single[k - 1] = nest.stride[k][last] == 0;
      return launch_dense(pointers, nest.extent[last], single);
    }
    if (!op_.typed.rows || nest.extent[last] % lanes_ != 0) return launch_strided(nest, pointers);
    launch_rows(nest, pointers);
  }

  /// True if whole packs can be read and written along the last axis.
  bool takes_packs(const LoopNest& nest, const Pointers& pointers) const {
    const int last = nest.rank - 1;
    if (nest.stride[0][last] != 1) return false;
    for (int k = 0; k < operands(); ++k) {
      if (!pointers.at[k] || nest.stride[k][last] == 0) continue;
      if (nest.stride[k][last] != 1 || !is_aligned(pointers.at[k], dtype_of(k))) return false;
      for (int axis = 0; axis < last; ++axis)
        if (nest.extent[axis] > 1 && nest.stride[k][axis] % lanes_ != 0) return false;
    }
    return true;
  }

  void launch_rows(const LoopNest& nest, const Pointers& pointers) const {
    const int last = nest.rank - 1;
    LoopNest packs = nest;
    packs.extent[last] /= lanes_;
    GridArgs args = grid_args(packs, pointers, op_.typed_value);
    for (int k = 0; k < operands(); ++k) {
      const bool single = nest.stride[k][last] == 0;
      if (k > 0) args.common.single[k - 1] = single;
      for (int axis = 0; axis + 1 < args.rank && !single; ++axis) args.stride[k][axis] /= lanes_;
    }
    launch(call_, op_.typed.rows, divide_up(packs.numel(), block_threads * packs_per_thread(lanes_)), args,
           Start::early);
  }

  void launch_strided(const LoopNest& nest, const Pointers& pointers) const {
    const GridArgs args = grid_args(nest, pointers, op_.compute_value);
    launch(call_, op_.strided, divide_up(nest.numel(), block_threads * strided_items), args, Start::early);
  }

  /// The last axis stays the last, even if it has extent 1; others of extent 1 (left by a cut) are dropped.
  GridArgs grid_args(const LoopNest& nest, const Pointers& pointers, std::uint64_t value) const {
    GridArgs args{};
    args.common = args_for(pointers, nest.numel(), value);
    for (int k = 0; k < operands(); ++k) args.dtype[k] = dtype_of(k);
    for (int axis = 0; axis < nest.rank; ++axis) {
      const bool is_step = nest.extent[axis] > 1;
      if (!is_step && axis + 1 < nest.rank) continue;
      args.extent[args.rank] = Divisor(static_cast<std::uint32_t>(nest.extent[axis]));
      for (int k = 0; k < operands() && is_step; ++k)
        args.stride[k][args.rank] = static_cast<std::int32_t>(nest.stride[k][axis]);
      ++args.rank;
    }
    return args;
  }

  const Call& call_;
  const Elementwise& op_;
  std::span<const Source> sources_;
  const Array& out_;
  bool add_;
  bool typed_;  // all arrays have the dtypes of the typed kernels
  int lanes_;
};

}  // namespace

void run_elementwise(const Call& call, const Elementwise& op, std::span<const Source> sources,
                     const Array& out, bool add) {
  if (add && out.dtype() == DType::bool_) {
    throw BackendError(
        fmt::format("[{}] accumulating truth values: only numbers can be added up", call.op()));
  }
  Run(call, op, sources, out, add).start();
}

void set_value(Elementwise& op, Scalar scalar, DType dtype) {
  visit_any_dtype(dtype, [&]<class T>() {
    const T value = scalar.to<T>();
    op.typed_value = bits_of(value);
    visit_compute(dtype, [&]<class C>() { op.compute_value = bits_of(convert<C>(value)); });
  });
}

}  // namespace ferrite::cuda
