// The properties every case must have on every backend.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "case.hpp"

namespace ferrite::conformance {

enum class Memory { contiguous, transposed, sliced, flipped, broadcast };
inline const std::vector<std::pair<Memory, const char*>> memories = {{Memory::contiguous, "contiguous"},
                                                                     {Memory::transposed, "transposed"},
                                                                     {Memory::sliced, "sliced"},
                                                                     {Memory::flipped, "flipped"},
                                                                     {Memory::broadcast, "broadcast"}};

inline DType dtype_for(const Input& input, DType dtype) {
  if (input.kind == Input::index) return DType::i64;
  return input.kind == Input::boolean ? DType::bool_ : dtype;
}

/// Host values of an input: a function of (case, position) alone.
inline std::vector<double> values_for(const Input& input, std::uint64_t stream) {
  const auto n = static_cast<std::size_t>(input.shape.numel());
  std::vector<double> values(n);
  Reference reference;
  Rng rng(stream);
  const Tensor<Reference> draw = rand(reference, {static_cast<std::int64_t>(n)}, rng, 0, 1, DType::f64);
  const std::vector<double> u = draw.to_vector<double>();
  const std::vector<std::int64_t> order = random_permutation(static_cast<std::int64_t>(n), rng.next());
  for (std::size_t i = 0; i < n; ++i) {
    switch (input.kind) {
      case Input::distinct:
        values[i] = static_cast<double>(order[i]) - static_cast<double>(n) / 4;
        break;
      case Input::index:
        values[i] = std::floor(u[i] * input.high);
        break;
      case Input::boolean:
        values[i] = u[i] < 0.6 ? 1 : 0;
        break;
      default:
        values[i] = input.low + u[i] * (input.high - input.low);
    }
  }
  return values;
}

/// A tensor of these values, with its elements laid out in memory as asked.
template <class B>
Tensor<B> make(B& b, const Shape& shape, const std::vector<double>& values, DType dtype, Memory memory) {
  const Tensor<B> x = cast(from_vector(b, values, shape), dtype);
  const int rank = shape.rank();
  switch (memory) {
    case Memory::contiguous:
      return clone(x);
    case Memory::transposed: {
      Shape reversed;
      for (int i = rank - 1; i >= 0; --i) reversed.push_back(i);
      return permute(clone(permute(x, reversed)), reversed);
    }
    case Memory::sliced: {  // every second element of a larger buffer, from an offset
      Tensor<B> wide = x;
      for (int i = 0; i < rank; ++i) {
        Shape low = Shape::filled(rank, 0), interior = low;
        low[i] = 1;
        interior[i] = 1;
        wide = eval(op::Pad{low, low, interior, 1}, wide);
      }
      for (int i = 0; i < rank; ++i)
        if (shape[i] > 0)
          wide = eval(op::Slice{i, 1, shape[i], 2}, wide);
        else
          wide = eval(op::Slice{i, 0, 0, 1}, wide);
      return wide;
    }
    case Memory::flipped:
      return rank == 0 ? clone(x) : flip(clone(flip(x)));
    default: {  // the first axis repeats its first row
      if (rank == 0 || shape[0] == 0) return clone(x);
      return expand(clone(slice(x, 0, 0, 1)), shape);
    }
  }
}

/// Largest difference from the truth, relative to the tensor's size.
inline void expect_close(const std::vector<double>& got, const std::vector<double>& truth, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(got.size(), truth.size()) << what;
  double scale = 0;
  for (double t : truth)
    if (std::isfinite(t)) scale = std::max(scale, std::abs(t));
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(truth[i]) && std::isnan(got[i])) continue;
    if (got[i] == truth[i]) continue;
    ASSERT_LE(std::abs(got[i] - truth[i]), tolerance * (std::abs(truth[i]) + scale))
        << what << ": element " << i << " is " << got[i] << ", should be " << truth[i];
  }
}

template <class B>
std::vector<Tensor<B>> inputs_for(B& b, const Spec& spec, const std::vector<Shape>& shapes, DType dtype,
                                  Memory memory, bool widen = false) {
  std::vector<Tensor<B>> in;
  for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
    Input input = spec.inputs[i];
    input.shape = shapes[i];
    Tensor<B> x = make(b, input.shape, values_for(input, i + 11), dtype_for(input, dtype), memory);
    if (widen && is_floating(x.dtype())) x = cast(x, DType::f64);
    in.push_back(widen ? clone(x) : x);
  }
  return in;
}

/// Forward values equal Reference's for every dtype and layout. Reference runs on dense inputs, in f64 for
/// floating dtypes: it is the truth, not another rounding of it.
inline void check_forward(AnyBackend& b, const Case<AnyBackend>& tested, const std::vector<Shape>& shapes) {
  AnyBackend reference("reference");
  for (DType dtype : tested.spec.dtypes) {
    for (const auto& [memory, label] : memories) {
      const std::string what = tested.spec.name + " " + std::string(to_string(dtype)) + " " + label;
      SCOPED_TRACE(what);
      const auto in = inputs_for(b, tested.spec, shapes, dtype, memory);
      std::vector<Tensor<AnyBackend>> dense;
      for (const Tensor<AnyBackend>& x : in) {
        Tensor<AnyBackend> copy = to(reference, x);
        if (!tested.spec.same_dtype && is_floating(x.dtype())) copy = cast(copy, DType::f64);
        dense.push_back(copy);
      }
      const auto got = tested.call(in);
      const auto truth = tested.call(dense);
      ASSERT_EQ(got.size(), truth.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        ASSERT_EQ(got[k].shape(), truth[k].shape());
        if (tested.spec.same_dtype) {
          ASSERT_EQ(got[k].dtype(), truth[k].dtype());
        }
        const Meta metas[] = {{{}, is_floating(dtype) ? dtype : got[k].dtype()}};
        const double tolerance =
            is_floating(got[k].dtype()) ? tolerance_from(tested.spec.length, metas, {}) : 0;
        expect_close(got[k].to_vector<double>(), truth[k].to_vector<double>(), tolerance, what);
        if (::testing::Test::HasFatalFailure()) return;
      }
      for (std::size_t i = 0; i < in.size(); ++i)  // inputs are never written
        ASSERT_EQ(in[i].template to_vector<double>(), dense[i].template to_vector<double>())
            << what << ": input " << i << " changed";
    }
  }
}

/// A tensor and a copy of it give the same bits, and twice the same call does too.
template <class B>
void check_clone_invariance(B& b, const Case<B>& tested) {
  std::vector<Shape> shapes;
  for (const Input& input : tested.spec.inputs) shapes.push_back(input.shape);
  for (DType dtype : tested.spec.dtypes) {
    const auto in = inputs_for(b, tested.spec, shapes, dtype, Memory::contiguous);
    std::vector<Tensor<B>> copies;
    for (const Tensor<B>& x : in) copies.push_back(clone(x));
    const auto first = tested.call(in), again = tested.call(in), cloned = tested.call(copies);
    for (std::size_t k = 0; k < first.size(); ++k) {
      ASSERT_EQ(to_bytes(first[k]), to_bytes(again[k])) << tested.spec.name << " " << to_string(dtype);
      ASSERT_EQ(to_bytes(first[k]), to_bytes(cloned[k])) << tested.spec.name << " " << to_string(dtype);
    }
  }
}

/// A fixed linear functional of all outputs, so that every output element matters.
template <class D>
Tensor<D> functional_of(D& b, const Case<D>& tested, const std::vector<Tensor<D>>& in) {
  Tensor<D> total;
  const auto out = tested.call(in);
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (!is_floating(out[k].dtype())) continue;
    const Input weights{out[k].shape(), Input::real, -1, 1};
    const Tensor<D> w = from_vector(b, values_for(weights, 91 + k), out[k].shape());
    const Tensor<D> term = sum(out[k] * w);
    total = total.defined() ? total + term : term;
  }
  return total;
}

/// The functional's gradient by input `i`, as central differences.
template <class D>
std::vector<double> central_differences(D& b, const Case<D>& tested, std::vector<Tensor<D>> in,
                                        std::size_t i) {
  const double h = 1e-5;
  const Shape shape = in[i].shape();
  const std::vector<double> base = in[i].template to_vector<double>();
  std::vector<double> slopes(base.size());
  for (std::size_t e = 0; e < base.size(); ++e) {
    const auto moved = [&](double delta) {
      std::vector<double> values = base;
      values[e] += delta;
      in[i] = make(b, shape, values, DType::f64, Memory::contiguous);
      return functional_of(b, tested, in).template item<double>();
    };
    slopes[e] = (moved(h) - moved(-h)) / (2 * h);
  }
  return slopes;
}

/// `missing`: whether an input without a gradient is a failure or a zero gradient.
enum class Missing { is_an_error, is_zero };

/// Gradients of `b` against central differences in f64, for every differentiable input element, in two
/// layouts. The differences are taken on `judge`: thousands of small calls, which are slow on a GPU and say
/// nothing about it that the forward tests do not.
template <class B>
void check_gradient(Autodiff<B>& b, Autodiff<B>& judge, const Case<Autodiff<B>>& tested,
                    double tolerance = 2e-7, Missing missing = Missing::is_an_error) {
  using D = Autodiff<B>;
  const Spec& spec = tested.spec;
  std::vector<Shape> shapes;
  for (const Input& input : spec.inputs) shapes.push_back(input.shape);
  const auto judged = inputs_for(judge, spec, shapes, DType::f64, Memory::contiguous);
  std::vector<std::vector<double>> expected(spec.inputs.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (spec.inputs[i].differentiable) expected[i] = central_differences(judge, tested, judged, i);

  for (Memory memory : {Memory::contiguous, Memory::transposed}) {
    std::vector<Tensor<D>> in = inputs_for(b, spec, shapes, DType::f64, memory);
    for (std::size_t i = 0; i < in.size(); ++i)
      if (spec.inputs[i].differentiable) in[i] = parameter(in[i], "input " + std::to_string(i));
    const Tensor<D> root = functional_of(b, tested, in);
    // A linear function's gradient is constant: it has no history, and its derivative is zero.
    const Gradients<B> grads = root.primitive().node ? root.backward() : Gradients<B>{};
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (!spec.inputs[i].differentiable) continue;
      const Tensor<B> gradient = missing == Missing::is_zero && !grads.find(in[i]).defined()
                                     ? full(b.inner(), in[i].shape(), 0, DType::f64)
                                     : grads.of(in[i]);
      ASSERT_EQ(gradient.shape(), in[i].shape()) << spec.name;
      expect_close(gradient.template to_vector<double>(), expected[i], tolerance,
                   spec.name + ": gradient of input " + std::to_string(i));
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace ferrite::conformance
