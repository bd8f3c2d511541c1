// The host side of all elementwise ops. An op brings kernels; run_elementwise examines the layout of its
// operands and launches the fastest kernel that fits:
//
//   dense    all operands lie alike and without gaps (or are one value for all): packs of 16 bytes
//   rows     the last axis has stride 1 or 0 everywhere and whole packs (bias add, row and column
//            broadcast, heads of an attention): packs of 16 bytes, an index computation for each
//   strided  everything else, operands of mixed dtypes too: element by element
//
// All indices are of 32 bits; larger problems are cut into several launches.
#pragma once

#include <span>

#include "ferrite/core/scalar.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"

namespace ferrite::cuda {

inline constexpr int max_inputs = 3;

/// What every elementwise kernel gets.
struct ElementwiseArgs {
  void* out;
  const void* in[max_inputs];  // nullptr: `value`
  std::uint64_t value;      // the bits of one element: of the input's type, or of the compute type (strided)
  double parameter;         // alpha, delta
  std::uint32_t count;      // elements (dense), packs (rows), elements (strided)
  std::uint8_t fn;          // for kernels that hold several functions
  bool add;                 // to what the output holds
  bool single[max_inputs];  // dense: one element for all; rows: one element for the whole row
};

/// Quotients of n < 2^31 by multiplication (Granlund and Montgomery): a hardware division takes some 20
/// instructions.
struct Divisor {
  std::uint32_t divisor, multiplier, shift;

  Divisor() = default;
  explicit Divisor(std::uint32_t d) : divisor(d), shift(0) {
    while ((std::uint64_t{1} << shift) < d) ++shift;
    const std::uint64_t excess = (std::uint64_t{1} << shift) - d;
    multiplier = static_cast<std::uint32_t>((excess << 32) / d + 1);
  }
};

/// ... and those that compute where an item lies. Operand 0 is the output. Strides count packs, or elements
/// where `single` (rows); elements (strided).
struct GridArgs {
  ElementwiseArgs common;
  int rank;
  DType dtype[1 + max_inputs];  // of the arrays, for the strided kernels
  Divisor extent[max_rank];
  std::int32_t stride[1 + max_inputs][max_rank];
};

using DenseKernel = void (*)(ElementwiseArgs);
using GridKernel = void (*)(GridArgs);

/// For operands of exactly the dtypes the kernels were made for. A missing kernel is nullptr.
struct Kernels {
  DenseKernel dense = nullptr;
  GridKernel rows = nullptr;
};

/// Elements per pack, so that the widest operand is accessed in 16 bytes.
constexpr int pack_lanes_for(std::size_t widest) { return 16 / static_cast<int>(widest); }
/// Packs that a thread of a row kernel has in flight, so that its index computations pay. Dense kernels have
/// one: more threads with one each are faster than fewer with more (by 3 % at 256M f32 elements on an H200).
constexpr int packs_per_thread(int lanes) { return lanes <= 4 ? 2 : 1; }
inline constexpr int strided_items = 4;

/// An operand: an array that broadcasts to the output's shape, or Elementwise's value.
struct Source {
  const Array* array = nullptr;
  DType dtype = DType::f32;  // what the typed kernels read
};

struct Elementwise {
  Kernels typed;
  GridKernel strided = nullptr;
  DType result = DType::f32;  // what the typed kernels write
  std::uint8_t fn = 0;
  double parameter = 0;
  std::uint64_t typed_value = 0, compute_value = 0;  // for typed and strided kernels
};

/// At most max_inputs sources. BackendError if truth values are to be added.
void run_elementwise(const Call& call, const Elementwise& op, std::span<const Source> sources,
                     const Array& out, bool add);

/// Sets the values of `op`: the scalar after conversion to `dtype`.
void set_value(Elementwise& op, Scalar scalar, DType dtype);

}  // namespace ferrite::cuda
