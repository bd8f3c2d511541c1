// A conformance case: an op call written once as a generic function, with a description of its inputs. The
// same list is run against Reference for every backend, dtype and layout, and differentiated numerically.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ferrite/ferrite.hpp"

namespace ferrite::conformance {

/// What fills an input. Its dtype is the dtype under test unless the kind implies another.
struct Input {
  enum Kind { real, positive, distinct, index, boolean };
  Shape shape;
  Kind kind = real;
  double low = -2;
  double high = 2;  // for index: exclusive
  bool differentiable = true;
};

inline Input real(const Shape& shape, double low = -2, double high = 2) {
  return {shape, Input::real, low, high};
}
inline Input positive(const Shape& shape) { return {shape, Input::positive, 0.3, 2.5}; }
/// All elements differ by at least 0.05: for max, sort and pools, whose gradient jumps at ties.
inline Input distinct(const Shape& shape) { return {shape, Input::distinct, 0, 0}; }
inline Input index(const Shape& shape, std::int64_t limit) {
  return {shape, Input::index, 0, static_cast<double>(limit), false};
}
inline Input boolean(const Shape& shape) { return {shape, Input::boolean, 0, 0, false}; }
inline Input constant(Input input) {
  input.differentiable = false;
  return input;
}

inline const std::vector<DType> floats = {DType::f32, DType::f64, DType::f16, DType::bf16};
inline const std::vector<DType> numbers = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                           DType::i32, DType::i64, DType::u8};
inline const std::vector<DType> every = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                         DType::i32, DType::i64, DType::u8,  DType::bool_};

struct Spec {
  std::string name;
  std::vector<Input> inputs;
  std::vector<DType> dtypes = floats;
  /// Terms that go into one output element; the tolerance grows with its square root.
  double length = 1;
  /// Elementwise: also run on 0-d, empty and size-1 shapes, all inputs alike.
  bool any_shape = false;
  bool differentiable = true;
  /// The result depends on the dtype itself (casts, integer wrap), so Reference gets the same dtype.
  bool same_dtype = false;
  /// Other shapes of the inputs that the same call takes: empty axes, axes of extent 1, scalars.
  std::vector<std::vector<Shape>> more = {};

  Spec also(std::vector<std::vector<Shape>> shapes) const {
    Spec copy = *this;
    copy.more = std::move(shapes);
    return copy;
  }
};

template <class B>
using Function = std::function<std::vector<Tensor<B>>(const std::vector<Tensor<B>>&)>;

template <class B>
struct Case {
  Spec spec;
  Function<B> call;
};

/// Collects the cases for one backend type. `f` is a generic lambda over a vector of tensors that returns a
/// tensor or a list of tensors.
template <class B>
class Cases {
 public:
  template <class F>
  void add(Spec spec, F f) {
    cases_.push_back({std::move(spec), [f](const std::vector<Tensor<B>>& in) {
                        using Result = decltype(f(in));
                        if constexpr (std::same_as<Result, Tensor<B>>)
                          return std::vector<Tensor<B>>{f(in)};
                        else
                          return f(in);
                      }});
  }
  std::vector<Case<B>> take() { return std::move(cases_); }

 private:
  std::vector<Case<B>> cases_;
};

}  // namespace ferrite::conformance
