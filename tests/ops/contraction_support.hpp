// What the tests of matmul, linear, conv2d and attention share: random arrays in awkward layouts, results as
// plain numbers, and the comparison with a naive computation in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <vector>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::testing {

using Values = std::vector<double>;

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Calls f(offset from the first element of the view) in row-major order.
inline void for_each_offset(const Layout& layout, const std::function<void(std::int64_t)>& f, int axis = 0,
                            std::int64_t offset = 0) {
  if (axis == layout.shape.rank()) return f(offset);
  for (std::int64_t i = 0; i < layout.shape[axis]; ++i)
    for_each_offset(layout, f, axis + 1, offset + i * layout.strides[axis]);
}

inline Values values_of(const Array& x) {
  Values values;
  visit_any_dtype(x.dtype(), [&]<class T>() {
    for_each_offset(x.layout(), [&](std::int64_t i) { values.push_back(convert<double>(x.data<T>()[i])); });
  });
  return values;
}

inline void assign(const Array& x, const Values& values) {
  std::size_t next = 0;
  visit_any_dtype(x.dtype(), [&]<class T>() {
    for_each_offset(x.layout(), [&](std::int64_t i) { x.data<T>()[i] = convert<T>(values[next++]); });
  });
}

/// How a test array lies in its buffer.
enum class Storage { contiguous, transposed, spaced, reversed, padded_rows };
inline constexpr Storage all_storages[] = {Storage::contiguous, Storage::transposed, Storage::spaced,
                                           Storage::reversed, Storage::padded_rows};

/// An array whose last two axes are stored as `storage` says.
inline Array allocate(const Shape& shape, DType dtype, Storage storage = Storage::contiguous) {
  Cpu cpu;
  const int last = shape.rank() - 1;
  Shape stored = shape;
  if (storage == Storage::transposed) std::swap(stored[last - 1], stored[last]);
  if (storage == Storage::spaced) stored[last] = 2 * shape[last] + 1;
  if (storage == Storage::padded_rows) stored[last] = shape[last] + 3;
  const Array x = cpu.allocate({stored, dtype});
  Layout layout = x.layout();
  if (storage == Storage::transposed) {
    Shape order;
    for (int i = 0; i < shape.rank(); ++i) order.push_back(i);
    std::swap(order[last - 1], order[last]);
    layout = layout.permute(order);
  } else if (storage == Storage::spaced) {
    layout = layout.slice(last, 1, shape[last], 2);
  } else if (storage == Storage::reversed) {
    layout = layout.flip(last).flip(last - 1);
  } else if (storage == Storage::padded_rows) {
    layout = layout.slice(last, 2, shape[last], 1);
  }
  return x.with_layout(layout);
}

/// Numbers in [-1, 1) for floats, -4..4 for signed integers, 0..4 for u8; depends on the shape and seed
/// alone.
inline Array random(const Shape& shape, DType dtype, Storage storage = Storage::contiguous,
                    std::uint64_t seed = 1) {
  const Array x = allocate(shape, dtype, storage);
  Values values;
  const RandomKey key{seed, static_cast<std::uint64_t>(shape.numel())};
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    const double u = uniform_at<double>(key, static_cast<std::uint64_t>(i));
    if (is_floating(dtype))
      values.push_back(2 * u - 1);
    else if (dtype == DType::bool_)
      values.push_back(u < 0.6);
    else
      values.push_back(std::floor(dtype == DType::u8 ? 5 * u : 9 * u - 4));
  }
  assign(x, values);
  return x;
}

inline std::vector<Meta> metas_of(std::initializer_list<Array> in) {
  std::vector<Meta> metas;
  for (const Array& x : in) metas.push_back(x.meta());
  return metas;
}

/// Runs the op's kernel into arrays that exist already.
template <class Op>
void run_kernel_into(const Op& op, std::initializer_list<Array> in, std::span<Array> out,
                     std::uint32_t accumulate = 0) {
  Cpu cpu;
  std::vector<const Array*> inputs;
  for (const Array& x : in) inputs.push_back(&x);
  const Ins ins(inputs.data(), inputs.size());
  if constexpr (requires { run(cpu, op, ins, out, Accumulate{}); })
    run(cpu, op, ins, out, static_cast<Accumulate>(accumulate));
  else
    run(cpu, op, ins, out);
}

/// Runs the op's kernel into fresh arrays full of NaN (or large numbers), so that an element left out shows.
template <class Op>
std::vector<Array> run(const Op& op, std::initializer_list<Array> in) {
  Cpu cpu;
  std::vector<Array> out;
  for (const Meta& meta : op.infer(metas_of(in))) {
    out.push_back(cpu.allocate(meta));
    if (meta.bytes() > 0) std::memset(out.back().data(), 0xff, meta.bytes());
  }
  run_kernel_into(op, in, out);
  return out;
}

/// |got - want| <= tolerance (1 + |want|) everywhere; two infinities or two NaNs agree.
inline void expect_close(const Array& got, const Values& want, double tolerance) {
  const Values values = values_of(got);
  ASSERT_EQ(values.size(), want.size());
  int reported = 0;
  for (std::size_t i = 0; i < want.size() && reported < 5; ++i) {
    if (values[i] == want[i] || (std::isnan(values[i]) && std::isnan(want[i]))) continue;
    if (std::abs(values[i] - want[i]) <= tolerance * (1 + std::abs(want[i]))) continue;
    ADD_FAILURE() << "element " << i << " of " << to_string(got.meta()) << ": got " << values[i] << ", want "
                  << want[i];
    ++reported;
  }
}

/// Error bound for sums of `terms` products of numbers up to 1.
inline double sum_tolerance(DType dtype, std::int64_t terms) {
  return 8 * epsilon(dtype) * std::sqrt(static_cast<double>(terms) + 1);
}

/// Runs f under 1, 2 and 7 threads and expects the same bytes in all the arrays it returns.
inline void expect_same_bits_for_any_thread_count(const std::function<std::vector<Array>()>& f) {
  const int before = num_threads();
  std::vector<std::vector<Values>> results;
  for (const int threads : {1, 2, 7}) {
    set_num_threads(threads);
    results.emplace_back();
    for (const Array& x : f()) results.back().push_back(values_of(x));
  }
  set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace ferrite::testing
