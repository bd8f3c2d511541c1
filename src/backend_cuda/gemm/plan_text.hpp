// What problems and algorithms are called, in memory and in the file of choices.
#pragma once

#include <cublasLt.h>

#include <string>

#include "backend_cuda/gemm/gemm_problem.hpp"

namespace ferrite::cuda {

/// Everything that a plan depends on.
std::string text_of(const GemmProblem& problem);
/// Every configuration value of an algorithm: the same text means the same kernel.
std::string name_of(const cublasLtMatmulAlgo_t& algorithm);
/// With long extents and strides rounded: problems of one class differ by a few per cent.
GemmProblem class_of(GemmProblem problem);

}  // namespace ferrite::cuda
