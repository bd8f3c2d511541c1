// Random programs, run on B and on Lazy<B>: chains, views, writes in place, reductions, reads in between. The
// ops are those that a fused kernel computes bit by bit as B does, so every tensor must have the same bytes.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "ferrite/stacks.hpp"

namespace ferrite::lazy_tests {

/// A program is a function of its seed: the same calls on every backend.
template <class B>
class Program {
 public:
  Program(B& backend, std::uint64_t seed) : backend_(backend), choose_(seed), rng_(seed) {
    for (const Shape& shape : {Shape{6, 10}, Shape{6, 10}, Shape{10}, Shape{6, 1}, Shape{10, 6}, Shape{60}})
      pool_.push_back(cast(randint(backend_, shape, rng_, -8, 8), pick_dtype()));
  }

  std::vector<std::vector<std::byte>> run(int steps) {
    std::vector<std::vector<std::byte>> seen;
    for (int i = 0; i < steps; ++i) {
      switch (choose_() % 16) {
        case 0:
          seen.push_back(to_bytes(any()));
          break;
        case 1:
          write_in_place();
          break;
        case 2:
          replace(view(any()));
          break;
        case 3:
          replace(reduced(any()));
          break;
        case 4:
          replace(contiguous(cast(any(), pick_dtype())));
          break;
        default:
          replace(elementwise());
      }
    }
    for (const Tensor<B>& x : pool_) seen.push_back(to_bytes(x));
    return seen;
  }

 private:
  DType pick_dtype() {
    constexpr DType dtypes[] = {DType::f32, DType::f32, DType::f32, DType::bf16, DType::f64, DType::i32};
    return dtypes[choose_() % std::size(dtypes)];
  }
  Tensor<B>& any() { return pool_[choose_() % pool_.size()]; }
  void replace(Tensor<B> x) {
    if (x.dtype() == DType::bool_) x = cast(x, DType::f32);
    any() = x;
  }
  /// A tensor that broadcasts with x.
  Tensor<B> partner(const Tensor<B>& x) {
    for (int i = 0; i < 8; ++i) {
      const Tensor<B>& y = any();
      bool fits = true;
      for (int k = 1; k <= std::min(x.rank(), y.rank()); ++k) {
        const std::int64_t a = x.size(-k), b = y.size(-k);
        fits = fits && (a == b || a == 1 || b == 1);
      }
      if (fits) return y;
    }
    return x;
  }

  Tensor<B> elementwise() {
    const Tensor<B> x = any(), y = partner(x);
    const int small = static_cast<int>(choose_() % 5) - 2;
    switch (choose_() % 12) {
      case 0:
        return x + y;
      case 1:
        return x - y;
      case 2:
        return minimum(maximum(x * y, -64), 64);
      case 3:
        return x * 0.5 + small;
      case 4:
        return maximum(x, y);
      case 5:
        return where(x > y, x, small);
      case 6:
        return abs(x) - relu(y);
      case 7:
        return logical_or(x > small, y != x);
      case 8:
        return full(backend_, x.shape(), small, x.dtype()) - x;
      case 9:
        return eval(op::UnaryBackward{op::UnaryFn::relu}, cast(x, DType::f32), cast(x * small, DType::f32));
      case 10:
        return small - floor(x * 1.5);
      default:
        return -x;
    }
  }
  Tensor<B> view(const Tensor<B>& x) {
    if (x.rank() == 0) return x;
    switch (choose_() % 4) {
      case 0:
        return x.rank() > 1 ? transpose(x, 0, 1) : x;
      case 1:
        return flip(x);
      case 2:
        return reshape(x, {x.numel()});
      default:
        return slice(x, 0, 0, std::max<std::int64_t>(1, x.size(0) / 2));
    }
  }
  /// Small whole numbers, of which sums are exact in any order; + 0 because zeros of both signs are equally
  /// large.
  Tensor<B> reduced(const Tensor<B>& x) {
    if (x.rank() == 0) return x + 1;
    const Shape axes{static_cast<std::int64_t>(choose_()) % x.rank()};
    const Tensor<B> whole = maximum(minimum(floor(cast(x, DType::f32)), 100), -100) + 0;
    return choose_() % 2 == 0 ? sum(whole, axes, KeepDim::yes) : max(whole * 2, axes, KeepDim::yes);
  }
  void write_in_place() {
    Tensor<B>& x = any();
    if (x.layout().may_overlap()) return;
    Array target = x.primitive();
    const Array* in[] = {&target};
    const bool add = choose_() % 2 == 0;
    detail::run_kernel(backend_, op::Binary{op::BinaryFn::mul, op::ScalarSide::right, add ? 1 : -1},
                       Ins(in, 1), Outs(&target, 1), add ? Accumulate::first : Accumulate::none);
  }

  B& backend_;
  std::mt19937_64 choose_;
  Rng rng_;
  std::vector<Tensor<B>> pool_;
};

/// Returns the ops that ran in fused kernels.
template <class B>
std::int64_t expect_same_programs(std::uint64_t first_seed, int count, int steps) {
  std::int64_t fused = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + static_cast<std::uint64_t>(count); ++seed) {
    B plain;
    Lazy<B> lazy(LazyConfig{}.with_max_ops(seed % 3 == 0 ? 7 : 64));
    const auto expected = Program<B>(plain, seed).run(steps);
    const auto got = Program<Lazy<B>>(lazy, seed).run(steps);
    EXPECT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(got[i], expected[i]) << "seed " << seed << ", tensor " << i;
    fused += lazy.fusion_report().fused;
    if (::testing::Test::HasFailure()) break;
  }
  return fused;
}

}  // namespace ferrite::lazy_tests
