// How the tests of the fused memory-bound kernels work: one check runs an op in every way it can be run
// (layouts of inputs and outputs, thread counts, accumulating) and compares with naive loops in double that
// the test brings.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "ferrite/backend/concept.hpp"
#include "messages.hpp"
#include "ops/contraction_support.hpp"

namespace ferrite::testing {

inline constexpr DType float_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Inputs or outputs of an op as numbers.
using Lists = std::vector<Values>;

/// Uniform in [low, high), rounded to the dtype.
inline Array uniform(const Shape& shape, DType dtype, std::uint64_t seed, double low = -3, double high = 3) {
  Values values;
  for (std::int64_t i = 0; i < shape.numel(); ++i)
    values.push_back(low + (high - low) * uniform_at<double>({seed, 99}, static_cast<std::uint64_t>(i)));
  if (!is_floating(dtype))
    for (double& v : values) v = std::floor(v);
  const Array x = allocate(shape, dtype);
  assign(x, values);
  return x;
}

inline Array array_of(const Shape& shape, DType dtype, const Values& values) {
  const Array x = allocate(shape, dtype);
  assign(x, values);
  return x;
}

/// The same numbers in another storage; arrays that have no two axes to play with stay as they are.
inline Array relaid(const Array& x, Storage storage) {
  if (x.shape().rank() < 2) storage = x.shape().rank() == 1 ? Storage::spaced : Storage::contiguous;
  if (x.shape().rank() == 0) return x;
  const Array result = allocate(x.shape(), x.dtype(), storage);
  assign(result, values_of(x));
  return result;
}

template <class Op>
std::vector<Array> allocate_outputs(const Op& op, const std::vector<Array>& in, Storage storage,
                                    double fill) {
  Metas metas;
  for (const Array& x : in) metas.push_back(x.meta());
  std::vector<Array> out;
  for (const Meta& meta : op.infer(metas)) {
    const Array plain = allocate(meta.shape, meta.dtype);
    assign(plain, Values(static_cast<std::size_t>(meta.shape.numel()), fill));
    out.push_back(storage == Storage::contiguous ? plain : relaid(plain, storage));
  }
  return out;
}

template <class Op>
void run_into(const Op& op, const std::vector<Array>& in, std::vector<Array>& out, std::uint32_t mask = 0) {
  Cpu cpu;
  std::vector<const Array*> refs;
  for (const Array& x : in) refs.push_back(&x);
  const Ins ins(refs.data(), refs.size());
  if constexpr (RunsAccumulating<Cpu, Op>)
    run(cpu, op, ins, Outs(out), static_cast<Accumulate>(mask));
  else
    run(cpu, op, ins, Outs(out));
}

/// Into fresh arrays full of NaN, so that an element nobody wrote shows.
template <class Op>
std::vector<Array> run_list(const Op& op, const std::vector<Array>& in,
                            Storage storage = Storage::contiguous) {
  auto out = allocate_outputs(op, in, storage, std::numeric_limits<double>::quiet_NaN());
  run_into(op, in, out);
  return out;
}

inline Lists lists_of(const std::vector<Array>& arrays) {
  Lists lists;
  for (const Array& x : arrays) lists.push_back(values_of(x));
  return lists;
}

inline void expect_same_bits(const Lists& got, const Lists& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    ASSERT_EQ(got[k].size(), want[k].size());
    for (std::size_t i = 0; i < got[k].size(); ++i) {
      if (std::isnan(got[k][i]) && std::isnan(want[k][i])) continue;
      ASSERT_EQ(std::bit_cast<std::uint64_t>(got[k][i]), std::bit_cast<std::uint64_t>(want[k][i]))
          << what << ": output " << k << ", element " << i << ": " << got[k][i] << " and " << want[k][i];
    }
  }
}

/// How close results must be: |got - want| <= ulps * epsilon(dtype) * max(|want|, floor), where the floor is
/// at least the smallest normal number of the dtype.
struct Closeness {
  double ulps = 4;
  double floor = 1;
};

inline void expect_near(const std::vector<Array>& got, const Lists& want, Closeness close,
                        const std::string& what) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t k = 0; k < got.size(); ++k) {
    const Values values = values_of(got[k]);
    ASSERT_EQ(values.size(), want[k].size());
    const double unit = close.ulps * epsilon(got[k].dtype());
    const double floor = std::max(close.floor, got[k].dtype() == DType::f16 ? 0x1p-14 : 0x1p-126);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double v = values[i], w = want[k][i];
      if (v == w || (std::isnan(v) && std::isnan(w))) continue;
      ASSERT_LE(std::abs(v - w), unit * std::max(std::abs(w), floor))
          << what << ": output " << k << " " << to_string(got[k].meta()) << ", element " << i << ": got " << v
          << ", want " << w;
    }
  }
}

/// Checks `op` on contiguous inputs against oracle(inputs); then that every storage of inputs and outputs and
/// every thread count gives the same bits, and that accumulating adds.
template <class Op, class Oracle>
void check(const Op& op, const std::vector<Array>& in, Oracle&& oracle, Closeness close = {}) {
  const Lists want = oracle(lists_of(in));
  const std::vector<Array> plain = run_list(op, in);
  expect_near(plain, want, close, "plain");
  const Lists bits = lists_of(plain);

  for (const Storage storage : all_storages) {
    std::vector<Array> other;
    for (const Array& x : in) other.push_back(relaid(x, storage));
    const std::string name = std::to_string(static_cast<int>(storage));
    expect_same_bits(lists_of(run_list(op, other)), bits, "input storage " + name);
    expect_same_bits(lists_of(run_list(op, in, storage)), bits, "output storage " + name);
  }

  const int threads = num_threads();
  for (const int n : {1, 2, 7}) {
    set_num_threads(n);
    expect_same_bits(lists_of(run_list(op, in)), bits, std::to_string(n) + " threads");
  }
  set_num_threads(threads);

  if constexpr (RunsAccumulating<Cpu, Op>) {
    const std::uint32_t all = (1u << want.size()) - 1;
    for (const Storage storage : {Storage::contiguous, Storage::transposed}) {
      auto sum = allocate_outputs(op, in, storage, 0.5);
      run_into(op, in, sum, all);
      Lists added = want;
      for (Values& list : added)
        for (double& v : list) v += 0.5;
      expect_near(sum, added, {close.ulps + 1, std::max(close.floor, 1.0)}, "accumulated");
    }
  }
}

}  // namespace ferrite::testing
