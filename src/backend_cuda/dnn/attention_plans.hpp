// Plans of cuDNN for attention and its gradient in 16 bits, on tensor cores. cuDNN recognises a graph of
// matmuls, a mask and a softmax as one kernel, and takes arrays of any strides whose rows are dense: parts of
// a packed tensor need no copy.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "backend_cuda/gemm/plan_key.hpp"
#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

class Libraries;

/// The arrays of one call; those of the gradient are undefined in a forward pass.
struct AttentionArrays {
  Array q, k, v, o;        // [B, H, T, D], [B, K, S, D], [B, K, S, E], [B, H, T, E]; K divides H
  Array lse;               // f32 [B, H, T], dense
  Array grad, dq, dk, dv;  // of o, q, k, v
  Array bias;              // undefined, or what is added to the scores (attention_bias.hpp)
};

/// Everything a plan depends on. Strides are those of batch, head and row; columns are dense.
struct AttentionProblem {
  std::int64_t batch, heads, key_heads, queries, keys, depth, width;
  std::int64_t strides[8][3];           // q, k, v, o, grad, dq, dk, dv
  std::int64_t bias_batch, bias_heads;  // 0: no bias
  std::uint32_t scale;                  // the bits of a float
  DType dtype;                          // f16 or bf16
  bool causal, backward;
  bool same_bits;  // the backward pass that sums dq in one order

  static AttentionProblem of(const AttentionArrays& arrays, bool causal, double scale, bool same_bits);
};

struct AttentionPlan;

class AttentionPlans {
 public:
  /// The plan of a problem; nothing if cuDNN has none, or if `own` kernels turned out to be faster. Nothing
  /// is timed within a capture: there, a problem that was never timed goes to cuDNN, until it is timed.
  std::shared_ptr<const AttentionPlan> get(Libraries& libraries, const Call& call,
                                           const AttentionArrays& arrays, const AttentionProblem& problem,
                                           const std::function<void()>& own);

 private:
  struct Entry {
    std::shared_ptr<const AttentionPlan> plan;
    bool is_final = false, wins = true;
  };
  std::mutex mutex_;
  PlanMap<AttentionProblem, Entry> plans_;
};

/// Whether cuDNN may be asked: dtype, sizes, scale, and arrays that lie as it wants them.
bool suits_dnn(const AttentionArrays& arrays, bool causal, double scale);
/// The same for a problem with a mask. Short ones are left to own kernels, which read it as it is.
bool suits_dnn_with_mask(const AttentionArrays& arrays, bool causal, double scale);

/// Queues attention, or its gradient, by cuDNN where that is possible and faster than `own`, which queues the
/// same work. False if nothing was queued.
bool attend_by_dnn(Cuda& cuda, const Call& call, const AttentionArrays& arrays, bool causal, double scale,
                   const std::function<void()>& own);

}  // namespace ferrite::cuda
