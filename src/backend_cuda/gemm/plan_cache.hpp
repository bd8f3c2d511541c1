// Plans of products: an algorithm of cuBLASLt with its descriptors, a variant of our own kernel for small
// ones, or for D = A B + C a product without C and a launch that adds it, which is faster for some shapes.
// The heuristic takes some 50 us to make one, and measuring the candidates takes milliseconds. A training
// step asks for the same few products again and again, so a call is one lookup in a hash table, 0.1 us.
#pragma once

#include <cublasLt.h>

#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "backend_cuda/gemm/gemm_small.hpp"
#include "backend_cuda/gemm/plan_key.hpp"
#include "backend_cuda/runtime/device_context.hpp"
#include "core/spin.hpp"
#include "ferrite/cuda/call.hpp"

namespace ferrite::cuda {

class Libraries;

class PlanCache {
 public:
  /// Queues the product; false, with nothing done, if there is no algorithm for it. The first call for a
  /// problem asks cuBLASLt's heuristic for candidates, adds our own and times them all on these arguments (on
  /// a copy of D if it is added to). A large problem that differs from a known one by a few per cent in size
  /// takes the algorithm of that, if it is among its candidates: programs with tables or texts of many sizes
  /// would do nothing but measure. Nothing can be timed within a capture: there, a problem that was never
  /// timed runs by the heuristic's first proposal, which is not kept. Run a step before capturing it.
  bool run(Libraries& libraries, const Call& call, const GemmProblem& problem,
           const GemmArguments& arguments);

 private:
  struct Plan {
    cublasLtMatmulDescOpaque_t description;
    cublasLtMatrixLayoutOpaque_t a, b, c, d;  // c is d without a C
    cublasLtMatmulAlgo_t algorithm;
    std::optional<SmallGemm> own;  // instead of the above
    bool adds_apart = false;       // instead of the above: the product without C, then add_c
    bool double_scale;             // alpha and beta are double
    bool supported;
  };
  enum class Choice { final, provisional };

  static Plan describe(const GemmProblem& problem, const GemmArguments& arguments, std::string_view op);
  /// False, with nothing done, if cuBLASLt does not support it after all.
  bool launch(Libraries& libraries, const Call& call, const Plan& plan, const GemmProblem& problem,
              const GemmArguments& arguments);
  bool run_without_c(Libraries& libraries, const Call& call, const GemmProblem& problem,
                     const GemmArguments& arguments);
  /// The algorithm that a problem of the same class has, by its place among `names`.
  std::optional<std::size_t> chosen_for(const std::string& kind, std::span<const std::string> names);
  Choice select(Libraries& libraries, const Call& call, const GemmProblem& problem,
                const GemmArguments& arguments, Plan& plan);

  SpinLock lock_;
  PlanMap<GemmProblem, Plan> plans_;
  /// The names of algorithms that were chosen, by the text of class_of(problem).
  std::unordered_map<std::string, std::string> chosen_;
};

}  // namespace ferrite::cuda
