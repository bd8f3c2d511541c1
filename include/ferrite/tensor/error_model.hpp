// ErrorModel: how far rounding may move the result of an op. It is a backend that runs an op through its
// composition. Every primitive computes in the given dtype (float64 for comparisons) and bounds the error
// that the same step has in a narrower dtype.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ferrite/backend/evaluate.hpp"
#include "ferrite/backend/reference.hpp"
#include "ferrite/ops/host_matrices.hpp"

namespace ferrite {

/// The error of one rounding step with result y: at most relative |y| + absolute.
struct Rounding {
  double relative = 0;
  double absolute = 0;
};

namespace detail {

/// How the elements of an output that holds several matrices one after the other are divided (op.part_sizes),
/// once for each of a batch. Nothing for other outputs.
template <class Op>
std::vector<std::int64_t> part_sizes(const Op& op, MetaSpan in) {
  if constexpr (requires { op.part_sizes(in); })
    return op.part_sizes(in);
  else
    return {};
}

/// For each part, over all matrices of a batch: the mean of the elements that are finite.
FERRITE_API std::vector<double> part_means(std::span<const double> values,
                                           std::span<const std::int64_t> part_sizes);
/// The part of each element of one matrix; of an output without parts {0}.
FERRITE_API std::vector<std::size_t> part_of_elements(std::span<const std::int64_t> part_sizes);

}  // namespace detail

/// Every array carries a bound on its error, element by element; an array that came from the host is exact. A
/// step adds the effect of its operands' errors, found by moving one operand at a time by its error both
/// ways, and its own rounding. A sum of n terms rounds by sqrt(n) times the root of the sum of their squares,
/// because rounding errors have random signs. The bound itself is not random.
class FERRITE_API ErrorModel {
 public:
  using Primitive = Array;

  /// Without a rounding it carries no errors and acts like Reference.
  explicit ErrorModel(Rounding rounding = {}) : rounding_(rounding) {}

  /// Row-major, one per element; infinite where a step may divide by zero.
  std::vector<double> errors(const Array& array);

  Array allocate(const Meta& meta) { return reference_.allocate(meta); }
  void copy_from_host(const Array& target, const void* source) { reference_.copy_from_host(target, source); }
  void copy_to_host(const Array& source, void* target) { reference_.copy_to_host(source, target); }
  void synchronize() {}
  Device device() const { return reference_.device(); }
  MemoryStats memory_stats() const { return reference_.memory_stats(); }
  std::string describe() const { return "error model"; }

  friend FERRITE_API void run(ErrorModel&, const op::Fill& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Iota& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Random& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Copy& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Unary& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Binary& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Where& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Reduce& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::ArgReduce& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Scan& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Matmul& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Gather& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::Scatter& op, Ins in, Outs out);
  friend FERRITE_API void run(ErrorModel&, const op::ScatterAdd& op, Ins in, Outs out);
  // Without a composition of primitives.
  friend FERRITE_API void run(ErrorModel&, const op::Launch& op, Ins in, Outs out);
  /// A good factorisation is that of a matrix near the given one, so its elements are moved by the rounding
  /// of the largest.
  template <detail::DefinedOnHost Op>
  friend void run(ErrorModel& model, const Op& op, Ins in, Outs out) {
    Metas metas;
    for (std::size_t i = 0; i < in.size(); ++i) metas.push_back(in[i].meta());
    model.run_moved(
        Scale::matrix, in, out, [&](Ins moved) { return evaluate(model.reference_, op, moved); },
        detail::part_sizes(op, metas));
  }

 private:
  /// What an input is moved by: the rounding of each element, or of the largest one of its matrix.
  enum class Scale { element, matrix };
  /// The error is found by moving all inputs together, several times with random signs. An element that moved
  /// little by chance is judged by the others of its part.
  void run_moved(Scale scale, Ins in, Outs out, const std::function<Primitives<Reference>(Ins)>& evaluate,
                 const std::vector<std::int64_t>& part_sizes = {});

  Reference reference_;
  Rounding rounding_;
};

}  // namespace ferrite
