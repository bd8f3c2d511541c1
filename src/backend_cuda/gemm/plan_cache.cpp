// Making, choosing and running the plans of products.
#include "backend_cuda/gemm/plan_cache.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <mutex>
#include <optional>

#include "backend_cuda/gemm/plan_text.hpp"
#include "backend_cuda/runtime/compile_times.hpp"
#include "backend_cuda/runtime/libraries.hpp"
#include "backend_cuda/runtime/stopwatch.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cuda {
namespace {

constexpr int most_candidates = 8;
/// Products with fewer multiplications take as long as their launch, whatever the algorithm.
constexpr double gemm_worth_comparing = 1 << 15;
/// Then our own kernel has the shortest launch, unless a block has to go further along k than this, or this
/// many blocks queue up.
constexpr std::int64_t few = 512;
/// Beyond this the host is ahead of the GPU in any case, and the library's kernels are better.
constexpr double most_own_work = 1 << 30;
/// The host's cost of a launch (H200 machine: one of ours 4.3 us, cublasLtMatmul 8 to 12 us). A product runs
/// eagerly, where the host may be the bottleneck, or captured, where only the GPU's time counts. It must give
/// the same bits in both, so there is one choice, by the GPU's time plus half of the host's.
constexpr double own_host_seconds = 4e-6, library_host_seconds = 9e-6, share_of_host = 0.5;

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type(const GemmProblem& p) {
  if (p.dtype == DType::f64) return CUBLAS_COMPUTE_64F;
  return p.dtype == DType::f32 && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::gelu_bias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    default:
      return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

template <class T>
void set(cublasLtMatmulDescOpaque_t& description, cublasLtMatmulDescAttributes_t attribute, T value,
         std::string_view op) {
  check(cublasLtMatmulDescSetAttribute(&description, attribute, &value, sizeof value), op);
}

void set_pointers(cublasLtMatmulDescOpaque_t& description, const GemmArguments& arguments,
                  std::string_view op) {
  if (arguments.bias) set(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, arguments.bias, op);
  if (arguments.pre_activation)
    set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, arguments.pre_activation, op);
}

void init_layout(cublasLtMatrixLayoutOpaque_t& layout, DType dtype, const GemmProblem& p, std::int64_t rows,
                 std::int64_t columns, std::int64_t ld, std::int64_t stride, std::string_view op) {
  check(cublasLtMatrixLayoutInit(&layout, data_type(dtype), static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), ld),
        op);
  if (p.batch == 1) return;
  const auto batch = static_cast<std::int32_t>(p.batch);
  check(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
        op);
  check(cublasLtMatrixLayoutSetAttribute(&layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                         sizeof stride),
        op);
}

/// The heuristic's proposals, best first; none where the product is not supported.
std::size_t propose(cublasLtHandle_t blas, const GemmProblem& p, cublasLtMatmulDescOpaque_t& description,
                    cublasLtMatrixLayoutOpaque_t& a, cublasLtMatrixLayoutOpaque_t& b,
                    cublasLtMatrixLayoutOpaque_t& c, cublasLtMatrixLayoutOpaque_t& d,
                    std::span<cublasLtMatmulHeuristicResult_t> results, std::string_view op) {
  cublasLtMatmulPreferenceOpaque_t preference;
  check(cublasLtMatmulPreferenceInit(&preference), op);
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof value), op);
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{Libraries::workspace_bytes});
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 1u << p.align_a);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 1u << p.align_b);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 1u << (p.ldc == 0 ? p.align_d : p.align_c));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 1u << p.align_d);
  // Partial sums of a split inner dimension are never kept in 16 bits.
  const bool wide_output = size_of(p.dtype) >= 4;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                                    (wide_output ? CUBLASLT_REDUCTION_SCHEME_INPLACE : 0)));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(blas, &description, &a, &b, &c, &d, &preference,
                                     static_cast<int>(results.size()), results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return 0;
  check(status, op);
  const auto usable = std::remove_if(results.begin(), results.begin() + found,
                                     [](const auto& r) { return r.state != CUBLAS_STATUS_SUCCESS; });
  return static_cast<std::size_t>(usable - results.begin());
}

}  // namespace

PlanCache::Plan PlanCache::describe(const GemmProblem& p, const GemmArguments& arguments,
                                    std::string_view op) {
  Plan plan{};
  plan.double_scale = p.dtype == DType::f64;
  auto& description = plan.description;
  check(cublasLtMatmulDescInit(&description, compute_type(p), plan.double_scale ? CUDA_R_64F : CUDA_R_32F),
        op);
  set(description, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, op);
  set(description, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, op);
  set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(p.epilogue), op);
  if (arguments.pre_activation) set(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.ldd, op);
  set_pointers(description, arguments, op);  // the heuristic looks at their alignment
  init_layout(plan.a, p.dtype, p, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.lda, p.stride_a,
              op);
  init_layout(plan.b, p.dtype, p, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.ldb, p.stride_b,
              op);
  init_layout(plan.d, p.result, p, p.m, p.n, p.ldd, p.stride_d, op);
  plan.c = plan.d;
  if (p.ldc != 0) init_layout(plan.c, p.result, p, p.m, p.n, p.ldc, 0, op);
  return plan;
}

bool PlanCache::launch(Libraries& libraries, const Call& call, const Plan& plan, const GemmProblem& problem,
                       const GemmArguments& arguments) {
  if (plan.adds_apart) {
    if (!run_without_c(libraries, call, problem, arguments)) return false;
    (*arguments.add_c)();
    return true;
  }
  if (plan.own) {
    check(launch_small_gemm(*plan.own, problem, arguments, call.stream()), call.op());
    return true;
  }
  // A copy, because several threads may use the plan, each with its own pointers in the description.
  cublasLtMatmulDescOpaque_t description = plan.description;
  set_pointers(description, arguments, call.op());
  cublasLtMatrixLayoutOpaque_t a = plan.a, b = plan.b, c = plan.c, d = plan.d;
  const float one = 1, beta = arguments.add || arguments.c ? 1 : 0;
  const double double_one = 1, double_beta = beta;
  const void* const scale = plan.double_scale ? static_cast<const void*>(&double_one) : &one;
  const void* const keep = plan.double_scale ? static_cast<const void*>(&double_beta) : &beta;
  const cublasStatus_t status =
      cublasLtMatmul(libraries.blas(), &description, scale, arguments.a, &a, arguments.b, &b, keep,
                     arguments.c ? arguments.c : arguments.d, &c, arguments.d, &d, &plan.algorithm,
                     libraries.workspace(), Libraries::workspace_bytes, call.stream());
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return false;
  check(status, call.op());
  return true;
}

bool PlanCache::run_without_c(Libraries& libraries, const Call& call, const GemmProblem& problem,
                              const GemmArguments& arguments) {
  GemmProblem product = problem;
  product.ldc = product.align_c = 0;
  GemmArguments operands = arguments;
  operands.c = nullptr;
  operands.add_c = nullptr;
  return run(libraries, call, product, operands);
}

PlanCache::Choice PlanCache::select(Libraries& libraries, const Call& call, const GemmProblem& p,
                                    const GemmArguments& arguments, Plan& plan) {
  const double work = static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) *
                      static_cast<double>(p.batch);
  std::vector<SmallGemm> own;
  if (work <= most_own_work && accepts_small_gemm(p)) own = small_gemm_candidates(p);
  const bool is_tiny = work < gemm_worth_comparing;
  const bool compares = libraries.tuner().compares() && !is_tiny;
  std::array<cublasLtMatmulHeuristicResult_t, most_candidates> proposals{};
  std::size_t count = 0;
  if (!is_tiny || own.empty() || p.k > few || p.batch > few)
    count = propose(libraries.blas(), p, plan.description, plan.a, plan.b, plan.c, plan.d,
                    std::span(proposals).first(compares ? most_candidates : 1), call.op());
  plan.supported = count + own.size() > 0;
  if (!plan.supported) return Choice::final;

  // The library's proposals, then our own, then the sum apart. Its product has its plan chosen now: within a
  // measurement that would count too.
  const bool is_capturing = call.context().is_capturing();
  const bool may_add_apart =
      arguments.add_c && compares && (is_capturing || run_without_c(libraries, call, p, arguments));
  const std::size_t candidates = count + own.size() + (may_add_apart ? 1 : 0);
  const Plan described = plan;
  const auto candidate = [&](std::size_t i) {
    Plan result = described;
    if (i < count) {
      result.algorithm = proposals[i].algo;
    } else if (i == count + own.size()) {
      result.adds_apart = true;
    } else {
      result.own = own[i - count];
      check(prepare_small_gemm(*result.own, p), call.op());
    }
    return result;
  };
  plan = candidate(0);
  if (!compares || candidates == 1) return Choice::final;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(name_of(proposals[i].algo));
  for (const SmallGemm variant : own) names.push_back(name_of(variant, p));
  if (may_add_apart) names.push_back("sum apart");
  const auto seconds = [&](std::size_t i) {
    GemmArguments trial = arguments;
    std::optional<Scratch<std::byte>> sums;  // D itself may be written but not added to
    if (arguments.add) {
      const std::int64_t extent = (p.batch - 1) * p.stride_d + (p.n - 1) * p.ldd + p.m;
      trial.d = sums.emplace(call, extent * static_cast<std::int64_t>(size_of(p.result))).data();
      trial.add = false;
    }
    const Plan tried = candidate(i);
    bool runs = true;
    const double device_seconds =
        median_seconds(call.context(), [&] { runs &= launch(libraries, call, tried, p, trial); });
    const double host_seconds = tried.adds_apart ? library_host_seconds + own_host_seconds
                                : tried.own      ? own_host_seconds
                                                 : library_host_seconds;
    return runs ? device_seconds + share_of_host * host_seconds : std::numeric_limits<double>::infinity();
  };
  const auto measure = [&](std::size_t i) {
    try {
      return seconds(i);
    } catch (const Error&) {  // refused at launch, or no memory to try it
      static_cast<void>(cudaGetLastError());
      return std::numeric_limits<double>::infinity();
    }
  };
  Autotuner& tuner = libraries.tuner();
  const std::string text = text_of(p), kind = text_of(class_of(p));
  auto choice = tuner.recall(text, names);
  if (!choice && !is_capturing) {
    const auto near = chosen_for(kind, names);
    if (near && std::isfinite(measure(*near))) {  // the library may refuse what it proposes
      choice = near;
      tuner.keep(text, names, *near);
    } else {
      choice = tuner.choose(text, names, measure);
    }
  }
  if (!choice) return Choice::provisional;
  plan = candidate(*choice);
  const std::lock_guard guard(lock_);
  chosen_.try_emplace(kind, names[*choice]);
  return Choice::final;
}

std::optional<std::size_t> PlanCache::chosen_for(const std::string& kind,
                                                 std::span<const std::string> names) {
  const std::lock_guard guard(lock_);
  const auto known = chosen_.find(kind);
  if (known == chosen_.end()) return std::nullopt;
  const auto name = std::ranges::find(names, known->second);
  if (name == names.end()) return std::nullopt;
  return static_cast<std::size_t>(name - names.begin());
}

bool PlanCache::run(Libraries& libraries, const Call& call, const GemmProblem& problem,
                    const GemmArguments& arguments) {
  const Plan* plan = nullptr;
  {
    const std::lock_guard guard(lock_);
    const auto found = plans_.find(problem);
    if (found != plans_.end()) plan = &found->second;
  }
  Plan fresh;
  if (!plan) {
    const CompileScope compiling("plan " + text_of(problem));
    fresh = describe(problem, arguments, call.op());
    plan = &fresh;
    if (select(libraries, call, problem, arguments, fresh) == Choice::final) {
      const std::lock_guard guard(lock_);
      plan = &plans_.try_emplace(problem, fresh).first->second;
    }
  }
  if (!plan->supported) return false;
  return launch(libraries, call, *plan, problem, arguments);
}

}  // namespace ferrite::cuda
