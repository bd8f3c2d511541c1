#include "backend_cuda/gemm/plan_text.hpp"

#include <fmt/format.h>

#include <bit>

namespace ferrite::cuda {

namespace {

/// Extents and strides from here on may differ within a class.
constexpr std::int64_t is_long = 2048;

/// Up to the next of eight steps to the next power of two.
std::int64_t rounded(std::int64_t extent) {
  if (extent < is_long) return extent;
  const auto step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(extent))) / 8;
  return (extent + step - 1) / step * step;
}

}  // namespace

std::string name_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string name;
  for (const auto attribute :
       {CUBLASLT_ALGO_CONFIG_ID, CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
        CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING,
        CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, CUBLASLT_ALGO_CONFIG_STAGES_ID}) {
    std::int32_t value = -1;
    std::size_t written = 0;
    static_cast<void>(
        cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written));
    name += fmt::format("{}{}", name.empty() ? "" : ".", value);
  }
  for (const auto attribute : {CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID}) {
    std::uint16_t value = 0;
    std::size_t written = 0;
    static_cast<void>(
        cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &written));
    name += fmt::format(".{}", value);
  }
  return name;
}

std::string text_of(const GemmProblem& p) {
  return fmt::format(
      "gemm {}{}{} {}x{}x{} batch {} ld {},{},{} stride {},{},{} {}{} epilogue {} align {},{},{}{}",
      to_string(p.dtype), p.tf32 ? " tf32" : "",
      p.result == p.dtype ? "" : fmt::format(" to {}", to_string(p.result)), p.m, p.n, p.k, p.batch, p.lda,
      p.ldb, p.ldd, p.stride_a, p.stride_b, p.stride_d, p.transpose_a ? 'T' : 'N', p.transpose_b ? 'T' : 'N',
      static_cast<int>(p.epilogue), p.align_a, p.align_b, p.align_d,
      p.ldc == 0 ? "" : fmt::format(" plus C ld {} align {}", p.ldc, p.align_c));
}

GemmProblem class_of(GemmProblem p) {
  for (std::int64_t* const extent :
       {&p.m, &p.n, &p.k, &p.batch, &p.lda, &p.ldb, &p.ldd, &p.ldc, &p.stride_a, &p.stride_b, &p.stride_d})
    *extent = rounded(*extent);
  return p;
}

}  // namespace ferrite::cuda
