// Arrays from literals, and back, for the tests that call Reference's kernels directly.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "ferrite/backend/evaluate.hpp"
#include "ferrite/backend/reference.hpp"
#include "messages.hpp"

namespace ferrite::testing {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

inline Reference& backend() {
  static Reference instance;
  return instance;
}

/// A dense array of the given values converted to `dtype`.
template <class Number = double>
Array make(DType dtype, const Shape& shape, const std::vector<Number>& values) {
  EXPECT_EQ(shape.numel(), static_cast<std::int64_t>(values.size()));
  const Array array = backend().allocate({shape, dtype});
  visit_any_dtype(dtype, [&]<class T>() {
    for (std::size_t i = 0; i < values.size(); ++i) array.data<T>()[i] = convert<T>(values[i]);
  });
  return array;
}

template <class Op>
void run_into(const Op& op, std::initializer_list<Array> inputs, Array out) {
  std::vector<const Array*> in;
  for (const Array& x : inputs) in.push_back(&x);
  run(backend(), op, Ins(in.data(), in.size()), Outs(&out, 1));
}

/// The op's result in an array allocated by its shape rule.
template <class Op>
Array run(const Op& op, std::initializer_list<Array> inputs) {
  Metas metas;
  for (const Array& x : inputs) metas.push_back(x.meta());
  const Array out = backend().allocate(op.infer(metas)[0]);
  run_into(op, inputs, out);
  return out;
}

/// The elements in row-major order, read by an index calculation of the test's own.
template <class Number = double>
std::vector<Number> values_of(const Array& x) {
  std::vector<Number> values;
  visit_any_dtype(x.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < x.shape().numel(); ++i) {
      std::int64_t rest = i, offset = 0;
      for (int axis = x.shape().rank() - 1; axis >= 0; --axis) {
        offset += rest % x.shape()[axis] * x.layout().strides[axis];
        rest /= x.shape()[axis];
      }
      values.push_back(convert<Number>(x.data<T>()[offset]));
    }
  });
  return values;
}

/// NaN equals NaN; the tolerance is relative above 1 and absolute below.
inline void expect_values(const Array& actual, const std::vector<double>& expected, double tolerance = 0) {
  const std::vector<double> values = values_of(actual);
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double a = values[i], e = expected[i];
    if (std::isnan(e))
      EXPECT_TRUE(std::isnan(a)) << "element " << i << " is " << a << ", expected NaN";
    else if (tolerance == 0 || std::isinf(e))
      EXPECT_EQ(a, e) << "element " << i;
    else
      EXPECT_NEAR(a, e, tolerance * std::max(1.0, std::abs(e))) << "element " << i;
  }
}

/// The same with shape and dtype.
inline void expect_array(const Array& actual, const Meta& meta, const std::vector<double>& expected,
                         double tolerance = 0) {
  EXPECT_EQ(to_string(actual.meta()), to_string(meta));
  expect_values(actual, expected, tolerance);
}

}  // namespace ferrite::testing
