// Plans of cuDNN for convolutions. cuDNN proposes engines for a problem; the fastest is found by measurement
// once, in both memory layouts, and kept. Engines whose bits differ from run to run, or that are less
// accurate than the dtype allows, are left out.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backend_cuda/gemm/plan_key.hpp"
#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

class Libraries;

enum class ConvKind : std::uint8_t { forward, input_gradient, weight_gradient };
enum class ImageLayout : std::uint8_t { nchw, nhwc };

/// Everything a plan depends on. Arrays are dense in one of the layouts and 16-byte aligned.
struct ConvProblem {
  std::int64_t x[4], w[4], y[4];  // [N, C, H, W], [O, C / groups, kh, kw], [N, O, Ho, Wo]
  std::int64_t stride[2], padding[2], dilation[2];
  ConvKind kind;
  DType dtype;    // floating
  DType weights;  // of w: the same, or f32 for the weight gradient of 16-bit operands
  bool tf32;      // f32 operands may be rounded to tf32
  bool biased;    // forward: a bias [O] is added before the result is rounded
  std::uint8_t unused[3];
};

struct ConvPlan;

class ConvPlans {
 public:
  /// Queues the convolution by a plan, with whatever copies its layout needs; may be called many times.
  using Run = std::function<void(const ConvPlan&)>;

  /// The plan for a problem, chosen at its first use; nothing if cuDNN has none. Nothing can be timed within
  /// a capture: there, a problem that was never timed gets the first proposal that works, until it is timed.
  std::shared_ptr<const ConvPlan> get(Libraries& libraries, const Call& call, const ConvProblem& problem,
                                      const Run& run);

 private:
  struct Entry {
    std::shared_ptr<const ConvPlan> plan;
    bool is_final;
  };
  Entry choose(Libraries& libraries, const Call& call, const ConvProblem& problem, const Run& run);

  std::mutex mutex_;
  PlanMap<ConvProblem, Entry> plans_;
  std::vector<std::shared_ptr<const ConvPlan>> retired_;  // captured graphs may still run their kernels
};

ImageLayout layout_of(const ConvPlan& plan);
/// Queues the convolution alone, on arrays of the plan's layout; `bias` is dense, or undefined where the
/// problem has none.
void execute(Libraries& libraries, const Call& call, const ConvPlan& plan, const Array& x, const Array& w,
             const Array& y, const Array& bias);

}  // namespace ferrite::cuda
