// Attention by ferrite's own kernels (kernels/attention.cuh, kernels/attention_backward.cuh): what the ops
// call.
#pragma once

#include "backend_cuda/kit/attention_problem.cuh"
#include "backend_cuda/kit/shared_memory.hpp"

namespace ferrite::cuda::attention {

/// T is the device type of all arrays but lse.
template <class T>
void attend(const Call& call, const Problem& p, const Array& q, const Array& k, const Array& v,
            const Array& o, const Array& lse);

/// lse and delta, the sums of grad * o, are dense; a short problem needs no delta. dq, dk and dv are added to
/// where `mask` says so.
template <class T>
void attend_backward(const Call& call, const Problem& p, const Array& grad, const Array& q, const Array& k,
                     const Array& v, const Array& o, const float* lse, const float* delta, const Array& dq,
                     const Array& dk, const Array& dv, Accumulate mask);

/// Positions that one warp takes of heads with so many columns.
constexpr std::int64_t longest_short(int columns) { return columns <= 32 ? 64 : 32; }

/// Whether each head goes to one warp (kernels/attention_short.cuh).
inline bool is_short(DType dtype, std::int64_t batch, const Problem& p) {
  const int columns = std::max(p.depth, p.width);
  const std::int64_t longest = longest_short(columns);
  return dtype != DType::f32 && columns <= 64 && p.queries <= longest && p.keys > 0 && p.keys <= longest &&
         p.group == 1 && p.mask.kind == MaskKind::none && !p.causal && p.window == 0 &&
         batch * p.heads < std::int64_t{1} << 31;
}

enum class Direction : std::uint8_t { forward, backward };

/// Shared memory that a block needs for heads of this many columns, at most 256 of 16 bits or 128 of f32. The
/// widest forward pass takes all that a block can have on smaller GPUs. `shortest`: of queries and keys. The
/// kernels check that they fit into it (fits_into_shared).
constexpr std::size_t shared_bytes(DType dtype, std::int64_t columns, std::int64_t shortest,
                                   Direction direction) {
  const bool forward = direction == Direction::forward;
  if (dtype == DType::f32 && columns > 32 && columns <= 64 && shortest <= 32)
    return forward ? 88'000 : 106'000;  // a block has several groups, with tiles of their own
  if (columns <= (dtype == DType::f32 ? 64 : 128)) return 90'000;
  return forward ? 101'376 : 101'632;
}

/// Whether a kernel for elements of T may take so many bytes.
template <class T>
constexpr bool fits_into_shared(int bytes, int columns, std::int64_t shortest, Direction direction) {
  const DType dtype = sizeof(T) == 4 ? DType::f32 : DType::f16;
  return static_cast<std::size_t>(bytes) <= shared_bytes(dtype, columns, shortest, direction);
}

/// f16 and bf16 with heads of up to 256 columns, f32 with up to 128; masks of bool or any of these.
inline bool takes(const Cuda& cuda, const Meta& q, const Meta& k, const Meta& v, const Meta* mask,
                  Direction direction) {
  const std::int64_t columns = std::max(q.shape[3], v.shape[3]), most = q.dtype == DType::f32 ? 128 : 256;
  const auto narrow = [](DType d) { return is_floating(d) && d != DType::f64; };
  if (!narrow(q.dtype) || columns > most || (mask && mask->dtype != DType::bool_ && !narrow(mask->dtype)))
    return false;
  constexpr std::int64_t longest = std::int64_t{1} << 30;
  if (q.shape[1] == 0 || q.shape[2] > longest || k.shape[2] > longest) return false;
  const std::int64_t shortest = std::min(q.shape[2], k.shape[2]);
  return shared_bytes(q.dtype, columns, shortest, direction) <= most_shared_memory(cuda);
}

inline Problem problem_of(const Array& q, const Array& k, const Array& v, const Array* mask, bool causal,
                          std::int64_t window, double scale) {
  const Shape& shape = q.shape();
  Problem p{shape[1],
            shape[1] / std::max<std::int64_t>(k.shape()[1], 1),
            shape[2],
            k.shape()[2],
            static_cast<int>(shape[3]),
            static_cast<int>(v.shape()[3]),
            causal,
            std::min(window, shape[2] + k.shape()[2]),  // as good as any larger, and no sum overflows
            static_cast<float>(scale),
            {}};
  if (!mask) return p;
  const Layout full = mask->layout().expand({shape[0], shape[1], shape[2], p.keys});
  const auto kind = [](DType dtype) {
    switch (dtype) {
      case DType::bool_:
        return MaskKind::keeps;
      case DType::f16:
        return MaskKind::f16;
      case DType::bf16:
        return MaskKind::bf16;
      default:
        return MaskKind::f32;
    }
  };
  p.mask = {mask->data<void>(), kind(mask->dtype()), full.strides[0],
            full.strides[1],    full.strides[2],     full.strides[3]};
  return p;
}

/// f.template operator()<T>() with the type on the GPU: float, __half or __nv_bfloat16.
template <class F>
void visit_type(DType dtype, F&& f) {
  if (dtype == DType::f32) return f.template operator()<float>();
  if (dtype == DType::f16) return f.template operator()<__half>();
  f.template operator()<__nv_bfloat16>();
}

/// Whether rows can be loaded in packs of 16 bytes: dense, and at multiples of as much.
inline bool lies_in_packs(const Array& x) {
  const Shape& strides = x.layout().strides;
  const auto pack = static_cast<std::int64_t>(16 / size_of(x.dtype()));
  return strides[3] == 1 && strides[0] % pack == 0 && strides[1] % pack == 0 && strides[2] % pack == 0 &&
         reinterpret_cast<std::uintptr_t>(x.data()) % 16 == 0;
}

/// A kernel whose blocks have `groups` parts, with this much shared memory for each, for `total` parts.
template <class Kernel, class... Arguments>
void launch_groups(const Call& call, Kernel kernel, std::int64_t total, int groups, int threads,
                   int bytes_per_group, const Arguments&... arguments) {
  if (total == 0) return;
  const int bytes = groups * bytes_per_group;
  if (bytes > 48 << 10) allow_all_shared_memory(call, reinterpret_cast<const void*>(kernel));
  kernel<<<static_cast<unsigned>(divide_up(total, groups)), threads, static_cast<std::size_t>(bytes),
           call.stream()>>>(arguments..., total);
}

}  // namespace ferrite::cuda::attention
