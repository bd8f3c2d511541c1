// Shared by layer_norm and rms_norm in both directions: their parameters, and the types their kernels are
// made for. With rows in registers, the parameters come from the L1 cache. With a ring they stay in shared
// memory for the life of a block: reading them again for every long row would alone exceed the bandwidth of
// the L2.
#pragma once

#include "backend_cuda/kit/ring.cuh"

namespace ferrite::cuda {

/// A pack of parameters in pieces of at most 16 bytes.
template <class W, int lanes>
struct ParameterPieces {
  static constexpr int width = lanes * sizeof(W) > 16 ? 16 / sizeof(W) : lanes, count = lanes / width;
  using Piece = RawPack<W, width>;

  template <class Read>
  __device__ __forceinline__ static Wide<Compute<W>, lanes> gather(Read&& read) {
    Wide<Compute<W>, lanes> x;
#pragma unroll
    for (int p = 0; p < count; ++p) {
      const auto piece = read(p).wide();
#pragma unroll
      for (int j = 0; j < width; ++j) x.of[p * width + j] = piece.of[j];
    }
    return x;
  }
};

template <class W, int lanes>
class ParameterInMemory : ParameterPieces<W, lanes> {
  using Base = ParameterPieces<W, lanes>;
  using typename Base::Piece;

 public:
  __device__ __forceinline__ explicit ParameterInMemory(const void* data)
      : pieces_(static_cast<const Piece*>(data)) {}
  /// By a pack's index in the row; in shared memory by that in the block's part.
  template <class Index>
  __device__ __forceinline__ Wide<Compute<W>, lanes> get(Index pack, int) const {
    return Base::gather([&](int p) { return read_only(pieces_ + pack * Base::count + p); });
  }

 private:
  /// Declared constant, so that reads need not wait for earlier writes.
  __device__ __forceinline__ static Piece read_only(const Piece* piece) {
    if constexpr (Piece::in_words)
      return __builtin_bit_cast(Piece, __ldg(reinterpret_cast<const uint4*>(piece)));
    else
      return *piece;
  }

  const Piece* pieces_;
};

/// Piece by piece, so that a warp's accesses never hit a bank twice.
template <class W, int lanes>
class ParameterInShared : ParameterPieces<W, lanes> {
  using Base = ParameterPieces<W, lanes>;
  using typename Base::Piece;

 public:
  /// The part of a block, copied to `memory`. A barrier must follow.
  __device__ __forceinline__ ParameterInShared(const void* data, void* memory, int part_begin,
                                               int part_length)
      : pieces_(static_cast<Piece*>(memory)), packs_(part_length / lanes) {
    const Piece* const source = reinterpret_cast<const Piece*>(static_cast<const W*>(data) + part_begin);
    for (int i = threadIdx.x; i < packs_ * Base::count; i += blockDim.x)
      pieces_[(i % Base::count) * packs_ + i / Base::count] = source[i];
  }
  __device__ __forceinline__ Wide<Compute<W>, lanes> get(int, int slot) const {
    return Base::gather([&](int p) { return pieces_[p * packs_ + slot]; });
  }

 private:
  Piece* pieces_;
  int packs_;
};

/// The dtype that parameters are converted to: the rows' own or the compute dtype. Kernels for rows that are
/// not aligned always use the compute dtype.
inline DType norm_parameters(DType rows, DType given, int lanes) {
  return given == rows && lanes > 1 ? rows : rows == DType::f64 ? DType::f64 : DType::f32;
}
/// A parameter as these kernels read it: dense and aligned to whole packs.
inline Array norm_parameter(Cuda& cuda, const Array& x, DType dtype) {
  const Array y = dense(cuda, x, dtype);
  if (reinterpret_cast<std::uintptr_t>(y.data()) % 32 == 0) return y;
  const Array copy = cuda.allocate(y.meta());
  copy_into(cuda, y, copy);
  return copy;
}
/// Calls f.template operator()<W>() with the type of such parameters.
template <class T, int lanes, class F>
void visit_parameters(DType parameters, F&& f) {
  if constexpr (lanes == 1) {
    f.template operator()<Compute<T>>();
  } else {
    if constexpr (is_16_bit<T>) {
      if (parameters == DType::f32) return f.template operator()<float>();
    }
    f.template operator()<T>();
  }
}

}  // namespace ferrite::cuda
