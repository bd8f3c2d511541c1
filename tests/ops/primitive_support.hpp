// What the tests of Cpu's primitives share: arrays of one content in many layouts, and results as plain
// numbers.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/ops/primitives.hpp"

namespace ferrite::cpu_test {

using Values = std::vector<double>;
inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

inline Cpu& cpu() {
  static Cpu instance;
  return instance;
}

/// Where element i (counted in row-major order) lies, by arithmetic of the test's own.
inline std::int64_t offset_of(const Layout& layout, std::int64_t i) {
  std::int64_t offset = 0;
  for (int axis = layout.shape.rank() - 1; axis >= 0; --axis) {
    offset += i % layout.shape[axis] * layout.strides[axis];
    i /= layout.shape[axis];
  }
  return offset;
}

template <class Number = double>
std::vector<Number> values_of(const Array& x) {
  std::vector<Number> values(size(x.shape().numel()));
  visit_any_dtype(x.dtype(), [&]<class T>() {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = convert<Number>(x.data<T>()[offset_of(x.layout(), static_cast<std::int64_t>(i))]);
  });
  return values;
}

template <class Number>
void assign(const Array& x, const std::vector<Number>& values) {
  visit_any_dtype(x.dtype(), [&]<class T>() {
    for (std::size_t i = 0; i < values.size(); ++i)
      x.data<T>()[offset_of(x.layout(), static_cast<std::int64_t>(i))] = convert<T>(values[i]);
  });
}

/// How an array lies in its buffer.
enum class Form { contiguous, transposed, stepped, flipped, shifted };
inline constexpr Form all_forms[] = {Form::contiguous, Form::transposed, Form::stepped, Form::flipped,
                                     Form::shifted};

inline Array allocate(DType dtype, const Shape& shape, Form form = Form::contiguous) {
  const int rank = shape.rank();
  if (rank == 0 || form == Form::contiguous) return cpu().allocate({shape, dtype});
  Shape stored = shape;
  if (form == Form::transposed) {
    Shape order;
    for (int i = 0; i < rank; ++i) {
      stored[i] = shape[rank - 1 - i];
      order.push_back(rank - 1 - i);
    }
    const Array x = cpu().allocate({stored, dtype});
    return x.with_layout(x.layout().permute(order));
  }
  if (form == Form::flipped) {
    const Array x = cpu().allocate({shape, dtype});
    return x.with_layout(x.layout().flip(rank - 1).flip(0));
  }
  // Every second element of the last axis, or the inside of a frame.
  for (int i = 0; i < rank; ++i) stored[i] = form == Form::shifted ? shape[i] + 3 : shape[i];
  if (form == Form::stepped) stored[rank - 1] = 2 * shape[rank - 1] + 1;
  const Array x = cpu().allocate({stored, dtype});
  Layout layout = x.layout();
  for (int i = 0; i < rank; ++i) {
    const bool steps = form == Form::stepped && i == rank - 1;
    layout = layout.slice(i, form == Form::shifted || steps ? 1 : 0, shape[i], steps ? 2 : 1);
  }
  return x.with_layout(layout);
}

template <class Number = double>
Array make(DType dtype, const Shape& shape, const std::vector<Number>& values, Form form = Form::contiguous) {
  const Array x = allocate(dtype, shape, form);
  assign(x, values);
  return x;
}

/// Uniform in [low, high), rounded to what `dtype` can hold.
inline Array random(DType dtype, const Shape& shape, std::uint64_t seed, double low = -4, double high = 4,
                    Form form = Form::contiguous) {
  Values values(size(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = low + (high - low) * uniform_at<double>({seed, 0}, i);
  return make(dtype, shape, values, form);
}

template <class Op, class... Mask>
void run_into(const Op& op, std::initializer_list<Array> inputs, Array out, Mask... mask) {
  std::vector<const Array*> in;
  for (const Array& x : inputs) in.push_back(&x);
  run(cpu(), op, Ins(in.data(), in.size()), Outs(&out, 1), mask...);
}

/// The op's result, in an array of the shape and dtype it infers.
template <class Op>
Array run(const Op& op, std::initializer_list<Array> inputs, Form form = Form::contiguous) {
  Metas metas;
  for (const Array& x : inputs) metas.push_back(x.meta());
  const Meta meta = op.infer(metas)[0];
  const Array out = allocate(meta.dtype, meta.shape, form);
  run_into(op, inputs, out);
  return out;
}

inline constexpr auto add_to_output = static_cast<Accumulate>(1u);

/// NaN equals NaN; `tolerance` is relative, and absolute for values below `floor`.
inline void expect_close(const Values& actual, const Values& expected, double tolerance,
                         double floor = 1e-2) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], e = expected[i];
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    ASSERT_LE(std::abs(a - e), tolerance * std::max(std::abs(e), floor))
        << "element " << i << ": " << a << ", not " << e;
  }
}

inline void expect_same_bits(const Array& a, const Array& b) {
  ASSERT_EQ(a.meta(), b.meta());
  ASSERT_EQ(std::memcmp(a.data(), b.data(), a.meta().bytes()), 0);
}

/// Runs f with 1, 2 and 7 threads and expects the same bits.
inline void expect_thread_invariance(const std::function<Array()>& f) {
  const int before = num_threads();
  set_num_threads(1);
  const Array expected = f();
  for (int threads : {2, 7}) {
    set_num_threads(threads);
    expect_same_bits(f(), expected);
  }
  set_num_threads(before);
}

inline constexpr DType floating_dtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
inline constexpr DType integer_dtypes[] = {DType::i32, DType::i64, DType::u8};

/// x's values repeated over `shape`.
inline Values broadcast_values(const Array& x, const Shape& shape) {
  return values_of(x.with_layout(x.layout().expand(shape)));
}

/// For every output the elements that go into it, in row-major order.
inline std::vector<Values> groups_of(const Array& x, const Shape& axes) {
  const Shape all = normalize_axes("test", axes, x.shape().rank());
  const Shape kept = op::reduced_shape(x.shape(), all, true);
  std::vector<Values> groups(size(kept.numel()));
  const Values values = values_of(x);
  const Layout result = Layout::contiguous(kept).expand(x.shape());
  for (std::size_t i = 0; i < values.size(); ++i) {
    Layout places = result;
    for (int a = 0; a < kept.rank(); ++a)
      if (kept[a] == 1) places.strides[a] = 0;
    groups[size(offset_of(places, static_cast<std::int64_t>(i)))].push_back(values[i]);
  }
  return groups;
}

}  // namespace ferrite::cpu_test
