// How a reduction is laid out on the GPU: axes collapsed, the direction of the threads chosen, the work cut.
// All of it depends only on layouts and alignment, so a sum has the same bits on every run.
#pragma once

#include "backend_cuda/kit/axes.cuh"
#include "ferrite/core/small_vector.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

/// Whether the place of an element in the reduction matters (argmax) or only its value (sum).
enum class ElementOrder : bool { ignored, counted };

struct AxisReduction {
  struct Axis {
    std::int64_t extent = 1, in = 0, out = 0;
  };
  SmallVector<Axis, 8> kept, reduced;  // never empty; by falling stride of the input, broadcast axes first
  Array in, out;                       // moved to where the first elements lie
  std::int64_t results = 1, length = 1;
  /// True: a result combines runs of neighbouring elements, and threads are placed along those. False:
  /// threads are placed across the results.
  bool by_rows = true;

  /// `axes` normalised. Neither array may be empty.
  AxisReduction(const Array& in, const Array& out, const Shape& axes, bool keepdim,
                ElementOrder order = ElementOrder::ignored);

  /// Whether `lanes` neighbouring elements can be read at once: along the reduction (by rows) or across it.
  bool allows_packs(int lanes) const;
  Axes<2> kept_axes() const;  // input, output
  /// With the last axis in packs of `lanes` elements (by rows).
  Axes<1> reduced_axes(int lanes) const;
};

/// The cut of a reduction by rows: 2^group_shift threads combine `per_part` packs of a result. Results whose
/// group is a block may be cut into several parts.
struct RowsCut {
  std::int64_t packs, per_part, blocks;
  int tail;  // elements behind the last pack
  int group_shift, parts;
  RowsCut(const AxisReduction& reduction, int lanes);
};

/// The cut of a reduction across: a block has 2^tile_shift packs of results side by side and combines
/// `per_part` elements of each.
struct ColumnsCut {
  std::int64_t units, tiles, per_part, blocks;  // units: packs of results
  int tile_shift, parts;
  ColumnsCut(const AxisReduction& reduction, int lanes);
};

/// How many threads (as a power of two) merge the parts of one result.
int merge_shift(int parts);

// The reductions, each for all dtypes its name allows; the output has the dtype that Reduce infers. A sum of
// 16-bit floats may have an output of f32.

/// The summand: x, |x| or x^2.
enum class Term : std::uint8_t { value, magnitude, square };
/// sum / divisor, or the root of that. With `add`, to what the output holds.
void reduce_float_sum(const Call& call, const AxisReduction& reduction, Term term, double divisor, bool root,
                      bool add);
/// The sums over the rows of a matrix by a kernel for gradients of biases: large dense matrices of 16 bits.
/// False for any other, and then nothing was queued.
bool sum_matrix_columns(const Call& call, const Array& x, const Array& out, bool add);
/// bool counts its true elements.
void reduce_integer_sum(const Call& call, const AxisReduction& reduction, bool add);
void reduce_product(const Call& call, const AxisReduction& reduction);
enum class Extreme : std::uint8_t { largest, smallest, magnitude };
/// Magnitudes only of floats. For bool the only extremes are `any` and `all`.
void reduce_extremum(const Call& call, const AxisReduction& reduction, Extreme extreme);
/// The place along the axis, of a Reduction that counts positions.
void reduce_float_place(const Call& call, const AxisReduction& reduction, Extreme extreme);
void reduce_integer_place(const Call& call, const AxisReduction& reduction, Extreme extreme);
void reduce_any(const Call& call, const AxisReduction& reduction, bool all);
void reduce_variance(const Call& call, const AxisReduction& reduction, double correction);
void reduce_logsumexp(const Call& call, const AxisReduction& reduction);

}  // namespace ferrite::cuda
