// What layer_norm and rms_norm share in both directions: their parameters (and in the backward their sums),
// which lie in shared memory for as long as a block lives. Read anew for every row, the parameters of long
// f32 rows alone would ask more of the L2 than it gives.
#pragma once

#include "backend_cuda/rows.cuh"

namespace ferrite::cuda {

/// Packs of V in shared memory, one per slot; in pieces of 16 bytes, so that a warp's accesses meet no bank
/// twice.
template <class V, int lanes>
class SharedPacks {
 public:
  __device__ __forceinline__ SharedPacks(void* memory, int slots)
      : pieces_(static_cast<Piece*>(memory)), slots_(slots) {}
  /// Whole pieces of 16 bytes, so that something else can follow.
  static constexpr std::int64_t bytes(std::int64_t slots) {
    return divide_up(slots * lanes * static_cast<std::int64_t>(sizeof(V)), 16) * 16;
  }

  __device__ __forceinline__ Wide<V, lanes> get(int slot) const {
    Wide<V, lanes> x;
#pragma unroll
    for (int p = 0; p < count; ++p) {
      const Piece piece = pieces_[p * slots_ + slot];
#pragma unroll
      for (int j = 0; j < width; ++j) x.of[p * width + j] = piece.lane[j];
    }
    return x;
  }
  __device__ __forceinline__ void set(int slot, const Wide<V, lanes>& x) {
#pragma unroll
    for (int p = 0; p < count; ++p) {
      Piece piece;
#pragma unroll
      for (int j = 0; j < width; ++j) piece.lane[j] = x.of[p * width + j];
      pieces_[p * slots_ + slot] = piece;
    }
  }

 private:
  static constexpr int width = lanes * sizeof(V) > 16 ? 16 / sizeof(V) : lanes, count = lanes / width;
  using Piece = Pack<V, width>;
  Piece* pieces_;
  int slots_;
};

/// Which pack of the row a slot of this block is for.
__device__ __forceinline__ std::int64_t pack_of_slot(const RowsShape& shape, const RowTeam& team, int slot) {
  const int item = slot >> shape.threads_shift;
  return static_cast<std::int64_t>(item * shape.parts + team.part()) * team.threads() +
         (slot & (team.threads() - 1));
}

/// A parameter [length] of type W, by packs of the row: in shared memory beside resident rows.
template <class W, int lanes, bool resident>
class Parameter {
 public:
  /// A barrier must follow.
  __device__ __forceinline__ Parameter(const void* data, void* memory, int slots, const RowsShape& shape,
                                       const RowTeam& team)
      : data_(static_cast<const W*>(data)), shared_(memory, slots) {
    if constexpr (resident) {
      for (int slot = threadIdx.x; data && slot < slots; slot += blockDim.x) {
        const std::int64_t pack = pack_of_slot(shape, team, slot);
        if (pack < shape.packs) shared_.set(slot, read(pack));
      }
    }
  }
  __device__ __forceinline__ Wide<Compute<W>, lanes> get(int slot, std::int64_t pack) const {
    const Wide<W, lanes> x = resident ? shared_.get(slot) : read(pack);
    Wide<Compute<W>, lanes> wide;
#pragma unroll
    for (int j = 0; j < lanes; ++j) wide.of[j] = convert_to<Compute<W>>(x.of[j]);
    return wide;
  }

 private:
  __device__ __forceinline__ Wide<W, lanes> read(std::int64_t pack) const {
    Wide<W, lanes> x;
#pragma unroll
    for (int j = 0; j < lanes; ++j) x.of[j] = data_[pack * lanes + j];
    return x;
  }

  const W* data_;
  SharedPacks<W, lanes> shared_;
};

/// How the rows of a norm are taken: resident rows in packs where they are aligned, with parameters of their
/// own dtype or the compute dtype; longer ones element by element, with parameters of the compute dtype.
struct NormPlan : RowPlan {
  DType dtype, parameters;
  NormPlan(const Call& call, DType rows_dtype, DType parameters_dtype, std::int64_t rows, std::int64_t length,
           int lanes)
      : RowPlan(call, rows_dtype, rows, length, lanes), dtype(rows_dtype), parameters(parameters_dtype) {
    if (!is_resident() && lanes > 1) *static_cast<RowPlan*>(this) = RowPlan(call, dtype, rows, length, 1);
    const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
    if (!is_resident() || parameters != dtype) parameters = wide;
  }
  /// Calls f.template operator()<T, W, lanes, resident>() with W the type of the parameters.
  template <class F>
  void visit(F&& f) const {
    visit_floating(dtype, [&]<class T>() {
      if (!is_resident()) return f.template operator()<T, Compute<T>, 1, false>();
      visit_parameters<T>([&]<class W>() {
        if (lanes() > 1)
          f.template operator()<T, W, pack_lanes<T>, true>();
        else
          f.template operator()<T, W, 1, true>();
      });
    });
  }

 private:
  template <class T, class F>
  void visit_parameters(F&& f) const {
    if constexpr (is_16_bit<T>) {
      if (parameters == DType::f32) return f.template operator()<float>();
    }
    f.template operator()<T>();
  }
};

}  // namespace ferrite::cuda
