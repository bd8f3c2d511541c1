// The error of every primitive: the effect of the operands' errors on the result, and its own rounding.
#include "ferrite/tensor/error_model.hpp"

#include <algorithm>
#include <cmath>

#include "ferrite/ops/launch.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {

namespace {

using T = Tensor<Reference>;

/// The errors of an array are in the shadow of its buffer, as f64 of the same layout, so views have them at
/// no cost. Without a shadow the array is exact.
class Errors {
 public:
  Errors(Reference& reference, const Rounding& rounding) : reference_(reference), rounding_(rounding) {}

  T values(const Array& x) const { return cast(T(reference_, x), DType::f64); }
  /// Undefined for an exact array.
  T of(const Array& x) const {
    const auto& shadow = x.buffer()->shadow;
    return shadow ? T(reference_, Array(shadow, x.layout(), DType::f64)) : T();
  }
  T or_zeros(const Array& x) const {
    const T error = of(x);
    return error.defined() ? error : zeros(reference_, x.shape(), DType::f64);
  }

  /// An undefined error means zeros.
  void set(const Array& out, const T& error) const {
    auto& shadow = out.buffer()->shadow;
    if (!shadow && !error.defined()) return;
    if (!shadow) {
      const auto elements = static_cast<std::int64_t>(out.buffer()->bytes() / size_of(out.dtype()));
      shadow = zeros(reference_, {elements}, DType::f64).primitive().buffer();
    }
    const T y = values(out), zero = zeros(reference_, out.shape(), DType::f64);
    // An infinite or undefined result has no error; 0 times an unbounded error is 0 too.
    const T clean =
        error.defined() ? where(logical_and(isfinite(y), logical_not(isnan(error))), error, zero) : zero;
    Array target(shadow, out.layout(), DType::f64);
    const Array* source[] = {&clean.primitive()};
    run(reference_, op::Copy{DType::f64}, Ins(source, 1), Outs(&target, 1));
  }

  /// One rounding of each element.
  T rounding(const Array& out) const { return abs(values(out)) * rounding_.relative + rounding_.absolute; }
  /// A sum of up to `terms` numbers, given the sum of their squares.
  T rounding_of_sum(const T& squares, double terms) const {
    return sqrt(squares) * (rounding_.relative * std::sqrt(terms)) + rounding_.absolute * terms;
  }

  /// How far the result moves with the operands from `first` on, one at a time: the larger of both
  /// directions.
  template <class Op>
  T carried(const Op& op, Ins in, const Array& out, std::size_t first = 0) const {
    T total;
    const T y = values(out);
    for (std::size_t i = first; i < in.size(); ++i) {
      const T error = of(in[i]);
      if (!error.defined()) continue;
      const T x = values(in[i]);
      const T up = change(op, in, i, x + error, y), down = change(op, in, i, x - error, y);
      total = plus(total, maximum(up, down));
    }
    return total;
  }

  /// |op(in with x as operand i) - y|, 0 if that is not a number: sqrt of a slightly negative number.
  template <class Op>
  T change(const Op& op, Ins in, std::size_t i, const T& x, const T& y) const {
    SmallVector<const Array*, 4> operands;
    for (std::size_t j = 0; j < in.size(); ++j) operands.push_back(j == i ? &x.primitive() : &in[j]);
    const T moved = abs(values(evaluate(reference_, op, Ins(operands.data(), operands.size()))[0]) - y);
    return where(isnan(moved), 0, moved);
  }

  /// How far the result moves if the operands are rounded once: functions compute with intermediate numbers
  /// as large as their arguments, such as the exponent inside gelu.
  template <class Op>
  T conditioned(const Op& op, Ins in, const Array& out) const {
    T total;
    const T y = values(out);
    for (std::size_t i = 0; i < in.size(); ++i) {
      const T x = values(in[i]);
      const T up = change(op, in, i, x * (1 + rounding_.relative), y),
              down = change(op, in, i, x * (1 - rounding_.relative), y);
      total = plus(total, maximum(up, down));
    }
    return total;
  }

  static T plus(const T& a, const T& b) { return !a.defined() ? b : !b.defined() ? a : a + b; }

 private:
  Reference& reference_;
  const Rounding& rounding_;
};

bool rounds(op::UnaryFn fn) {
  using F = op::UnaryFn;
  switch (fn) {
    case F::neg:
    case F::abs:
    case F::sign:
    case F::relu:
    case F::floor:
    case F::ceil:
    case F::round:
      return false;
    default:
      return true;
  }
}

template <class Op>
double terms(const Op& op, Ins in) {
  return op.reduction_length(detail::metas_of(in));
}

/// Runs an op and gives its result the error `error(errors, y)`; undefined means none. An output may be an
/// input (parts of a sum are added in place), so the error is computed before the result is written.
template <class Op, class Error>
void run_step(Reference& reference, const Rounding& rounding, const Op& op, Ins in, Outs out, Error&& error) {
  if (rounding.relative == 0) return run(reference, op, in, out);
  const Errors errors(reference, rounding);
  Array y = reference.allocate(out[0].meta());
  run(reference, op, in, Outs(&y, 1));
  const T found = error(errors, y);
  const Array* source[] = {&y};
  run(reference, op::Copy{y.dtype()}, Ins(source, 1), out);
  errors.set(out[0], found);
}

constexpr auto exact = [](const Errors&, const Array&) { return T(); };

}  // namespace

std::vector<double> ErrorModel::errors(const Array& array) {
  return Errors(reference_, rounding_).or_zeros(array).to_vector<double>();
}

void run(ErrorModel& model, const op::Fill& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, exact);
}
void run(ErrorModel& model, const op::Iota& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, exact);
}
void run(ErrorModel& model, const op::ArgReduce& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, exact);
}
void run(ErrorModel& model, const op::Random& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array& y) {
    if (op.fn != op::RandomFn::normal) return T();
    const T spread = abs(errors.values(y) - op.low);  // mean + spread may cancel
    return (spread + std::abs(op.low)) * model.rounding_.relative + model.rounding_.absolute;
  });
}
void run(ErrorModel& model, const op::Copy& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array& y) {
    const T error = errors.of(in[0]);
    const bool keeps = is_floating(y.dtype()) || y.dtype() == DType::bool_;
    return error.defined() && keeps ? error + 0 : T();  // not the shadow itself: it may be written
  });
}

void run(ErrorModel& model, const op::Unary& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array& y) {
    const T carried = errors.carried(op, in, y);
    if (!is_floating(y.dtype()) || !rounds(op.fn)) return carried;
    // A part of the function may underflow before it is multiplied by the argument.
    const T x = errors.values(in[0]), underflow = where(isfinite(x), abs(x), 0) * model.rounding_.absolute;
    return Errors::plus(carried, errors.conditioned(op, in, y) + errors.rounding(y) + underflow);
  });
}

void run(ErrorModel& model, const op::Binary& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array& y) {
    const T carried = errors.carried(op, in, y);
    const bool chooses = op.fn == op::BinaryFn::maximum || op.fn == op::BinaryFn::minimum;
    if (!is_floating(y.dtype()) || chooses) return carried;
    const T own = errors.rounding(y);
    return Errors::plus(carried, op.fn == op::BinaryFn::pow ? own + errors.conditioned(op, in, y) : own);
  });
}

void run(ErrorModel& model, const op::Where& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array& y) {
    const T error = errors.carried(op, in, y, 1), doubt = errors.of(in[0]);
    if (!doubt.defined()) return error;
    // A comparison that could have the other result.
    const T other = logical_not(T(model.reference_, in[0]));
    return Errors::plus(error, where(doubt > 0, errors.change(op, in, 0, other, errors.values(y)), 0));
  });
}

void run(ErrorModel& model, const op::Reduce& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array& y) {
    const T error = errors.carried(op, in, y);
    const double n = terms(op, in);
    if (!is_floating(y.dtype()) || n <= 1) return error;
    if (op.fn == op::ReduceFn::sum)
      return Errors::plus(error, errors.rounding_of_sum(eval(op, square(errors.values(in[0]))), n));
    if (op.fn != op::ReduceFn::prod) return error;
    // Factors of both signs: all must grow at once.
    const T x = errors.values(in[0]), grown = x + sign(x) * errors.or_zeros(in[0]);
    return Errors::plus(error, errors.change(op, in, 0, grown, errors.values(y)) + errors.rounding(y) * n);
  });
}

void run(ErrorModel& model, const op::Scan& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array& y) {
    const T error = errors.carried(op, in, y);
    if (!is_floating(y.dtype())) return error;
    return Errors::plus(error, errors.rounding_of_sum(eval(op, square(errors.values(in[0]))), terms(op, in)));
  });
}

void run(ErrorModel& model, const op::Matmul& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array& y) {
    if (!is_floating(y.dtype())) return T();
    const T a = abs(errors.values(in[0])), b = abs(errors.values(in[1]));
    const T of_a = errors.of(in[0]), of_b = errors.of(in[1]);
    T error = errors.rounding_of_sum(eval(op, square(a), square(b)), terms(op, in));
    if (of_a.defined()) error = error + eval(op, of_a, of_b.defined() ? b + of_b : b);
    if (of_b.defined()) error = error + eval(op, a, of_b);
    return error;
  });
}

void run(ErrorModel& model, const op::Gather& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array&) {
    const T error = errors.of(in[0]);
    return error.defined() ? eval(op, error, T(model.reference_, in[1])) : T();
  });
}

void run(ErrorModel& model, const op::Scatter& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array&) {
    return eval(op, errors.or_zeros(in[0]), T(model.reference_, in[1]), errors.or_zeros(in[2]));
  });
}

void run(ErrorModel& model, const op::ScatterAdd& op, Ins in, Outs out) {
  run_step(model.reference_, model.rounding_, op, in, out, [&](const Errors& errors, const Array& y) {
    if (!is_floating(y.dtype())) return T();
    const T index(model.reference_, in[1]);
    const T squares = eval(op, square(errors.values(in[0])), index, square(errors.values(in[2])));
    return eval(op, errors.or_zeros(in[0]), index, errors.or_zeros(in[2])) +
           errors.rounding_of_sum(squares, terms(op, in));
  });
}

void run(ErrorModel& model, const op::Launch& op, Ins in, Outs out) {
  model.run_moved(ErrorModel::Scale::element, in, out,
                  [&](Ins moved) { return evaluate(model.reference_, op, moved); });
}

std::vector<std::size_t> detail::part_of_elements(std::span<const std::int64_t> part_sizes) {
  std::vector<std::size_t> parts;
  for (std::size_t part = 0; part < part_sizes.size(); ++part)
    parts.insert(parts.end(), static_cast<std::size_t>(part_sizes[part]), part);
  if (parts.empty()) parts.push_back(0);
  return parts;
}

std::vector<double> detail::part_means(std::span<const double> values,
                                       std::span<const std::int64_t> part_sizes) {
  const std::vector<std::size_t> part = part_of_elements(part_sizes);
  std::vector<double> sums(std::max<std::size_t>(part_sizes.size(), 1)), counts(sums.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    sums[part[i % part.size()]] += values[i];
    ++counts[part[i % part.size()]];
  }
  for (std::size_t k = 0; k < sums.size(); ++k) sums[k] /= std::max(counts[k], 1.0);
  return sums;
}

void ErrorModel::run_moved(Scale scale, Ins in, Outs out,
                           const std::function<Primitives<Reference>(Ins)>& evaluate,
                           const std::vector<std::int64_t>& part_sizes) {
  const auto results = evaluate(in);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Array* source[] = {&results[k]};
    run(reference_, op::Copy{out[k].dtype()}, Ins(source, 1), out.subspan(k, 1));
  }
  if (rounding_.relative == 0) return;
  constexpr std::uint64_t rounds = 8;
  const Errors errors(reference_, rounding_);
  const auto rounding = [&](const Array& x) {
    const T each = errors.rounding(x);
    const int rank = x.shape().rank();
    if (scale == Scale::element || rank < 2 || x.shape().numel() == 0) return each;
    return max(each, {-2, -1}, KeepDim::yes) * std::sqrt(static_cast<double>(x.shape()[rank - 2]));
  };
  std::vector<T> squares(out.size());
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Rng rng(round);
    std::vector<T> moved;
    std::vector<const Array*> refs;
    moved.reserve(in.size());
    for (std::size_t i = 0; i < in.size(); ++i) {
      moved.push_back(T(reference_, in[i]));
      if (is_floating(in[i].dtype())) {
        const T sides = bernoulli(reference_, in[i].shape(), rng, 0.5);
        const T step = errors.or_zeros(in[i]) + rounding(in[i]);
        moved.back() = cast(errors.values(in[i]) + where(sides, step, -step), in[i].dtype());
      }
      refs.push_back(&moved.back().primitive());
    }
    Primitives<Reference> there;
    try {
      there = evaluate(Ins(refs.data(), refs.size()));
    } catch (const ValueError&) {  // next to a matrix without a result: any result may be far off
      for (std::size_t k = 0; k < out.size(); ++k)
        squares[k] = full(reference_, out[k].shape(), HUGE_VAL, DType::f64);
      break;
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
      const T change = errors.values(there[k]) - errors.values(out[k]);
      squares[k] = Errors::plus(squares[k], where(isfinite(change), square(change), 0));
    }
  }
  // Three times the root mean square of the element and of its part.
  const std::vector<std::size_t> part = detail::part_of_elements(part_sizes);
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (!is_floating(out[k].dtype()) || out[k].shape().numel() == 0) continue;
    const T mean_square = squares[k] / static_cast<double>(rounds);
    std::vector<double> of_part = mean_square.to_vector<double>();
    const std::vector<double> means = detail::part_means(of_part, part_sizes);
    for (std::size_t i = 0; i < of_part.size(); ++i)
      of_part[i] = std::isfinite(of_part[i]) ? means[part[i % part.size()]] : of_part[i];
    errors.set(out[k], (sqrt(mean_square) + sqrt(from_vector(reference_, of_part, out[k].shape()))) * 3 +
                           errors.rounding(out[k]));
  }
}

}  // namespace ferrite
