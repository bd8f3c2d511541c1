// Initialisations. An Initializer is a small value that a layer's config carries: it turns a shape and a
// generator into a tensor.
#pragma once

#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/random.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite::nn {

/// Inputs and outputs per unit of a weight [out, in, ...]: both times the product of the trailing extents.
struct Fans {
  double in = 1;
  double out = 1;
};
/// Throws ShapeError below two axes. An empty axis counts as one element.
FERRITE_API Fans fans_of(const Shape& weight);

/// Kaiming initialisation keeps the variance of activations (in) or of gradients (out).
enum class Fan : std::uint8_t { in, out };

/// How the first values of a parameter are drawn. A value: configs hold one for each parameter.
class FERRITE_API Initializer {
 public:
  static Initializer zeros() { return constant(0); }
  static Initializer ones() { return constant(1); }
  static Initializer constant(double value) { return {Kind::constant, value, 0}; }
  static Initializer uniform(double low, double high) { return {Kind::uniform, low, high}; }
  static Initializer normal(double mean = 0, double stddev = 1) { return {Kind::normal, mean, stddev}; }
  /// A normal that is drawn again while it lies outside [low, high]. Throws ValueError if fewer than one draw
  /// in a hundred lies inside.
  static Initializer trunc_normal(double mean = 0, double stddev = 1, double low = -2, double high = 2);
  /// For layers before a (leaky) relu of this negative slope; sqrt(5) is PyTorch's default for Linear and
  /// Conv2d, which gives U(-1/sqrt(fan), 1/sqrt(fan)).
  static Initializer kaiming_uniform(double slope = 0, Fan fan = Fan::in) {
    return {fan == Fan::in ? Kind::kaiming_uniform_in : Kind::kaiming_uniform_out, slope, 0};
  }
  static Initializer kaiming_normal(double slope = 0, Fan fan = Fan::in) {
    return {fan == Fan::in ? Kind::kaiming_normal_in : Kind::kaiming_normal_out, slope, 0};
  }
  static Initializer xavier_uniform(double gain = 1) { return {Kind::xavier_uniform, gain, 0}; }
  static Initializer xavier_normal(double gain = 1) { return {Kind::xavier_normal, gain, 0}; }

  /// # Shapes: -> `shape`; the Kaiming and Xavier kinds need [out, in, ...].
  template <class B>
  Tensor<B> create(B& backend, const Shape& shape, Rng& rng, DType dtype = DType::f32) const {
    const Initializer drawn = resolve(shape);
    switch (drawn.kind_) {
      case Kind::constant:
        return full(backend, shape, drawn.a_, dtype);
      case Kind::uniform:
        return rand(backend, shape, rng, drawn.a_, drawn.b_, dtype);
      case Kind::trunc_normal:
        return cast(from_vector(backend, drawn.truncated(shape.numel(), rng.next()), shape), dtype);
      default:
        return randn(backend, shape, rng, drawn.a_, drawn.b_, dtype);
    }
  }

 private:
  enum class Kind : std::uint8_t {
    constant,
    uniform,
    normal,
    trunc_normal,
    kaiming_uniform_in,
    kaiming_uniform_out,
    kaiming_normal_in,
    kaiming_normal_out,
    xavier_uniform,
    xavier_normal
  };
  Initializer(Kind kind, double a, double b) : kind_(kind), a_(a), b_(b) {}

  /// The constant, uniform, normal or truncated normal that this stands for at a given shape.
  Initializer resolve(const Shape& shape) const;
  std::vector<double> truncated(std::int64_t count, RandomKey key) const;

  Kind kind_;
  double a_, b_;               // value | bounds | mean and deviation | slope or gain
  double low_ = 0, high_ = 0;  // where a truncated normal is cut
};

/// A separate generator for a layer that draws while it runs, seeded by one draw from `rng`.
FERRITE_API Rng fork(Rng& rng);

}  // namespace ferrite::nn
