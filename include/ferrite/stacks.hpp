// The backend stacks that the library instantiates, each in a .cpp of its own: a user's program only refers
// to them and compiles in seconds. Other stacks work too; their ops are then compiled where they are used.
#pragma once

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/cuda.hpp"
#include "ferrite/backend/lazy.hpp"
#include "ferrite/backend/parity.hpp"
#include "ferrite/backend/profiled.hpp"
#include "ferrite/backend/reference.hpp"
#include "ferrite/ops/list.hpp"
#include "ferrite/tensor_data.hpp"

namespace ferrite {

using CpuParity = Parity<Cpu, Reference>;
/// The GPU against the CPU, op by op.
using CudaParity = Parity<Cuda, Cpu>;
/// Fused ops against the ops themselves.
using LazyParity = Parity<Lazy<Cpu>, Cpu>;
using CudaLazyParity = Parity<Lazy<Cuda>, Cuda>;

// `linkage` is extern here, and empty in the one file under src/stacks/ that compiles the stack.
#define FERRITE_EVALUATE(linkage, Stack, Op) \
  linkage template FERRITE_API Primitives<Stack> evaluate(Stack&, const op::Op&, Refs<Stack::Primitive>);

#define FERRITE_EXTERN_REFERENCE(Op) FERRITE_EVALUATE(extern, Reference, Op)
#define FERRITE_EXTERN_ERROR_MODEL(Op) FERRITE_EVALUATE(extern, ErrorModel, Op)
#define FERRITE_EXTERN_CPU(Op) FERRITE_EVALUATE(extern, Cpu, Op)
#define FERRITE_EXTERN_PARITY(Op) FERRITE_EVALUATE(extern, CpuParity, Op)
#define FERRITE_EXTERN_PROFILED(Op) FERRITE_EVALUATE(extern, Profiled<Cpu>, Op)
#define FERRITE_EXTERN_LAZY(Op) FERRITE_EVALUATE(extern, Lazy<Cpu>, Op)
#define FERRITE_EXTERN_LAZY_PARITY(Op) FERRITE_EVALUATE(extern, LazyParity, Op)
#define FERRITE_EXTERN_AD_REFERENCE(Op) FERRITE_EVALUATE(extern, Autodiff<Reference>, Op)
#define FERRITE_EXTERN_AD_CPU(Op) FERRITE_EVALUATE(extern, Autodiff<Cpu>, Op)
#define FERRITE_EXTERN_AD_PARITY(Op) FERRITE_EVALUATE(extern, Autodiff<CpuParity>, Op)
#define FERRITE_EXTERN_AD_PROFILED(Op) FERRITE_EVALUATE(extern, Autodiff<Profiled<Cpu>>, Op)
#define FERRITE_EXTERN_AD_LAZY(Op) FERRITE_EVALUATE(extern, Autodiff<Lazy<Cpu>>, Op)
#define FERRITE_EXTERN_AD_LAZY_PARITY(Op) FERRITE_EVALUATE(extern, Autodiff<LazyParity>, Op)
FERRITE_ALL_OPS(FERRITE_EXTERN_REFERENCE)
FERRITE_ALL_OPS(FERRITE_EXTERN_ERROR_MODEL)
FERRITE_ALL_OPS(FERRITE_EXTERN_CPU)
FERRITE_ALL_OPS(FERRITE_EXTERN_PARITY)
FERRITE_ALL_OPS(FERRITE_EXTERN_PROFILED)
FERRITE_ALL_OPS(FERRITE_EXTERN_LAZY)
FERRITE_ALL_OPS(FERRITE_EXTERN_LAZY_PARITY)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_REFERENCE)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_CPU)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_PARITY)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_PROFILED)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_LAZY)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_LAZY_PARITY)
#if FERRITE_HAS_CUDA
#define FERRITE_EXTERN_CUDA(Op) FERRITE_EVALUATE(extern, Cuda, Op)
#define FERRITE_EXTERN_CUDA_PARITY(Op) FERRITE_EVALUATE(extern, CudaParity, Op)
#define FERRITE_EXTERN_CUDA_PROFILED(Op) FERRITE_EVALUATE(extern, Profiled<Cuda>, Op)
#define FERRITE_EXTERN_CUDA_LAZY(Op) FERRITE_EVALUATE(extern, Lazy<Cuda>, Op)
#define FERRITE_EXTERN_CUDA_LAZY_PARITY(Op) FERRITE_EVALUATE(extern, CudaLazyParity, Op)
#define FERRITE_EXTERN_AD_CUDA(Op) FERRITE_EVALUATE(extern, Autodiff<Cuda>, Op)
#define FERRITE_EXTERN_AD_CUDA_PARITY(Op) FERRITE_EVALUATE(extern, Autodiff<CudaParity>, Op)
#define FERRITE_EXTERN_AD_CUDA_PROFILED(Op) FERRITE_EVALUATE(extern, Autodiff<Profiled<Cuda>>, Op)
#define FERRITE_EXTERN_AD_CUDA_LAZY(Op) FERRITE_EVALUATE(extern, Autodiff<Lazy<Cuda>>, Op)
#define FERRITE_EXTERN_AD_CUDA_LAZY_PARITY(Op) FERRITE_EVALUATE(extern, Autodiff<CudaLazyParity>, Op)
FERRITE_ALL_OPS(FERRITE_EXTERN_CUDA)
FERRITE_ALL_OPS(FERRITE_EXTERN_CUDA_PARITY)
FERRITE_ALL_OPS(FERRITE_EXTERN_CUDA_PROFILED)
FERRITE_ALL_OPS(FERRITE_EXTERN_CUDA_LAZY)
FERRITE_ALL_OPS(FERRITE_EXTERN_CUDA_LAZY_PARITY)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_CUDA)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_CUDA_PARITY)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_CUDA_PROFILED)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_CUDA_LAZY)
FERRITE_ALL_OPS(FERRITE_EXTERN_AD_CUDA_LAZY_PARITY)
#undef FERRITE_EXTERN_CUDA
#undef FERRITE_EXTERN_CUDA_PARITY
#undef FERRITE_EXTERN_CUDA_PROFILED
#undef FERRITE_EXTERN_CUDA_LAZY
#undef FERRITE_EXTERN_CUDA_LAZY_PARITY
#undef FERRITE_EXTERN_AD_CUDA
#undef FERRITE_EXTERN_AD_CUDA_PARITY
#undef FERRITE_EXTERN_AD_CUDA_PROFILED
#undef FERRITE_EXTERN_AD_CUDA_LAZY
#undef FERRITE_EXTERN_AD_CUDA_LAZY_PARITY
#endif
#undef FERRITE_EXTERN_REFERENCE
#undef FERRITE_EXTERN_ERROR_MODEL
#undef FERRITE_EXTERN_CPU
#undef FERRITE_EXTERN_PARITY
#undef FERRITE_EXTERN_PROFILED
#undef FERRITE_EXTERN_LAZY
#undef FERRITE_EXTERN_LAZY_PARITY
#undef FERRITE_EXTERN_AD_REFERENCE
#undef FERRITE_EXTERN_AD_CPU
#undef FERRITE_EXTERN_AD_PARITY
#undef FERRITE_EXTERN_AD_PROFILED
#undef FERRITE_EXTERN_AD_LAZY
#undef FERRITE_EXTERN_AD_LAZY_PARITY

}  // namespace ferrite
