// copy and fill: conversion between any two dtypes and layouts, and one value everywhere.
#include "backend_cuda/kit/functions.cuh"
#include "backend_cuda/kit/kernel_tables.hpp"
#include "backend_cuda/kit/transpose.hpp"
#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/fill.hpp"

namespace ferrite {

using namespace cuda;

namespace {

/// Copies from one dtype to another. What is added is converted to the type that the sum is computed in.
Elementwise copy_kernel(DType from, DType to, bool add) {
  Elementwise kernel;
  kernel.typed = visit_any_dtype(to, [&]<class T>() { return copy_kernels<T>(from); });
  visit_compute(add ? to : from, [&]<class C>() { kernel.strided = strided_kernel<Only<CopySet, 0>, C, 1>; });
  kernel.result = to;
  return kernel;
}

}  // namespace

void run(Cuda& cuda, const op::Copy& op, Ins in, Outs out, Accumulate mask) {
  const Call call(cuda, op_name(op));
  const DType from = in[0].dtype(), to = out[0].dtype();
  const bool add = accumulates(mask, 0);
  const bool reorders = !in[0].layout().is_contiguous() || !out[0].layout().is_contiguous();
  const bool done = from == to && !add && reorders && transpose(call, in[0], out[0]);
  if (!done) {
    const Source source{&in[0], from};
    run_elementwise(call, copy_kernel(from, to, add), {&source, 1}, out[0], add);
  }
  call.finish();
}

void run(Cuda& cuda, const op::Fill& op, Ins, Outs out) {
  const Call call(cuda, op_name(op));
  const DType dtype = out[0].dtype();
  Elementwise kernel = copy_kernel(dtype, dtype, false);
  set_value(kernel, op.value, dtype);
  const Source source{nullptr, dtype};
  run_elementwise(call, kernel, {&source, 1}, out[0], false);
  call.finish();
}

}  // namespace ferrite
