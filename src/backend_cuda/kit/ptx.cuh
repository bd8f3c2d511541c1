// Instructions that CUDA C++ has no name for: asynchronous copies into shared memory, tensor cores, clusters
// of thread blocks. Each is named here once.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace ferrite::cuda::ptx {

/// The dynamic shared memory of the block.
__device__ __forceinline__ std::byte* shared_memory() {
  extern __shared__ __align__(16) std::byte memory[];
  return memory;
}
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Copies `bytes` (0 to 16) to 16 bytes of shared memory and fills the rest with zeros; both addresses are
/// multiples of 16. Past L1, which would keep it twice.
__device__ __forceinline__ void copy_async(void* to, const void* from, int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
               "r"(bytes)
               : "memory");
}
/// The copies of this thread since the last call become a group.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until all groups of this thread but the latest `pending` have arrived.
template <int pending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Four 8 x 8 matrices of 16-bit elements, by the whole warp: lanes 8 i ... 8 i + 7 give the addresses of the
/// rows of matrix i (16 bytes, aligned); lane l gets elements 2 (l % 4) and the next of row l / 4 of each. A
/// row may as well be four 32-bit elements.
__device__ __forceinline__ void load_matrices(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}
/// The same with each matrix transposed.
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&to)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}

/// An 8 x 8 matrix of 16-bit elements that the warp holds as load_matrices leaves it, transposed.
__device__ __forceinline__ std::uint32_t transposed(std::uint32_t rows) {
  std::uint32_t columns;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(columns) : "r"(rows));
  return columns;
}

/// sum[16, 8] += a[16, 32 bytes] b[32 bytes, 8] by the whole warp, in f32. With g = lane / 4, t = lane % 4:
/// sum holds (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
template <class T>
__device__ __forceinline__ void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                             std::uint32_t b1);
template <>
__device__ __forceinline__ void multiply_add<__nv_bfloat16>(float (&sum)[4], const std::uint32_t (&a)[4],
                                                            std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void multiply_add<__half>(float (&sum)[4], const std::uint32_t (&a)[4],
                                                     std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// The operands are tf32 in 32 bits.
template <>
__device__ __forceinline__ void multiply_add<float>(float (&sum)[4], const std::uint32_t (&a)[4],
                                                    std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
/// To nearest, halves away from zero; NaN stays NaN.
__device__ __forceinline__ std::uint32_t round_to_tf32(std::uint32_t bits) {
  std::uint32_t rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(__uint_as_float(bits)));
  return rounded;
}

// From here on: instructions of Hopper. Code for older GPUs compiles too; there, runs_hopper_code() keeps the
// host from launching what needs them, so that only the trivial cluster of one block is ever asked for.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define FERRITE_HOPPER_CODE 1
#define FERRITE_HOPPER_ONLY(...) __VA_ARGS__
#define FERRITE_HOPPER_ASM(...) asm volatile(__VA_ARGS__)
#else
#define FERRITE_HOPPER_CODE 0
#define FERRITE_HOPPER_ONLY(...) static_cast<void>(0)
#define FERRITE_HOPPER_ASM(...) __trap()
#endif

/// A barrier in shared memory that counts arrivals, and bytes. Phases alternate in parity, the first is 0.
class Barrier {
 public:
  __device__ __forceinline__ void init(int arrivals) {
    FERRITE_HOPPER_ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
  }
  __device__ __forceinline__ void arrive() {
    FERRITE_HOPPER_ASM("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
  }
  /// Arrives; the phase ends when this many bytes have come, too.
  __device__ __forceinline__ void expect(std::uint32_t bytes) {
    FERRITE_HOPPER_ASM("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes)
                       : "memory");
  }
  /// The data that arrived, from memory or from other blocks of the cluster, is in this block's own shared
  /// memory, so an acquire of cluster scope, which empties the L1 cache, is not needed.
  __device__ __forceinline__ void wait(std::uint32_t parity) {
    FERRITE_HOPPER_ASM(
        "{\n"
        ".reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again;\n"
        "}" ::"r"(address()),
        "r"(parity)
        : "memory");
  }
  /// Both pointers and the number of bytes are multiples of 16.
  __device__ __forceinline__ void copy_to_shared(void* target, const void* source, std::uint32_t bytes) {
    FERRITE_HOPPER_ASM(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(target)),
        "l"(source), "r"(bytes), "r"(address())
        : "memory");
  }
  __device__ __forceinline__ std::uint32_t address() const { return shared_address(&bits_); }

 private:
  std::uint64_t bits_;
};

// A cluster is a group of neighbouring blocks on the grid's x axis that run at once and can read and
// write each other's shared memory. A launch without clusters has clusters of one block.
__device__ __forceinline__ int cluster_blocks() {
  int blocks = 1;
  FERRITE_HOPPER_ONLY(asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks)));
  return blocks;
}
__device__ __forceinline__ int block_in_cluster() {
  int rank = 0;
  FERRITE_HOPPER_ONLY(asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(rank)));
  return rank;
}
__device__ __forceinline__ int cluster_in_grid() {
  int index = static_cast<int>(blockIdx.x);
  FERRITE_HOPPER_ONLY(asm("mov.u32 %0, %%clusterid.x;" : "=r"(index)));
  return index;
}
__device__ __forceinline__ void make_barriers_visible() {
  FERRITE_HOPPER_ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// For all threads of the cluster; makes earlier writes visible.
__device__ __forceinline__ void synchronize_cluster() {
  FERRITE_HOPPER_ASM("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
// The same in two steps, with other work between them. A block may end without waiting if no other uses its
// shared memory any more.
__device__ __forceinline__ void arrive_at_cluster() {
  FERRITE_HOPPER_ASM("barrier.cluster.arrive.release;" ::: "memory");
}
/// Of a block that has written nothing yet that others will read.
__device__ __forceinline__ void arrive_at_cluster_empty_handed() {
  FERRITE_HOPPER_ASM("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ __forceinline__ void wait_for_cluster() {
  FERRITE_HOPPER_ASM("barrier.cluster.wait.acquire;" ::: "memory");
}
/// The address, in another block of the cluster, of the same place in this block's shared memory.
__device__ __forceinline__ std::uint32_t address_in_block(std::uint32_t own, int block) {
  std::uint32_t there = own;
  FERRITE_HOPPER_ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(block));
  return there;
}
/// Into the shared memory of another block, whose Barrier counts its 8 bytes. Both are addresses there.
__device__ __forceinline__ void store_async(std::uint32_t to, std::uint64_t value, std::uint32_t barrier) {
  FERRITE_HOPPER_ASM("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(to),
                     "l"(value), "r"(barrier)
                     : "memory");
}
/// To this place of the shared memory of a block of the cluster, perhaps of this one. Another must have
/// begun, and must not end before it has waited for this block's next arrival.
template <class T>
__device__ __forceinline__ void store_in_block(T* own, int block, T value) {
  static_assert(sizeof(T) == 4);
#if FERRITE_HOPPER_CODE
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(address_in_block(shared_address(own), block)),
               "r"(bits)
               : "memory");
#else
  *own = value;  // of the only block
#endif
}
/// Adds to a number there, which this returns as it was before. Other blocks may do the same meanwhile.
__device__ __forceinline__ int add_in_block(int* own, int block, int value) {
#if FERRITE_HOPPER_CODE
  int before;
  asm volatile("atom.relaxed.cluster.shared::cluster.add.s32 %0, [%1], %2;"
               : "=r"(before)
               : "r"(address_in_block(shared_address(own), block)), "r"(value)
               : "memory");
  return before;
#else
  return atomicAdd(own, value);
#endif
}
/// What lies at this place of the shared memory of another block of the cluster.
__device__ __forceinline__ float4 load_from_block(const float* own, int block) {
  float4 value{};
  FERRITE_HOPPER_ASM("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                     : "r"(address_in_block(shared_address(own), block))
                     : "memory");
  return value;
}

#undef FERRITE_HOPPER_ASM
#undef FERRITE_HOPPER_ONLY
#undef FERRITE_HOPPER_CODE

}  // namespace ferrite::cuda::ptx
