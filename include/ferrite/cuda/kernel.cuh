// Everything for writing a CUDA kernel, in the library or outside (examples/custom_op, CONTRIBUTING.md):
//
//   void run(Cuda& cuda, const Mish& op, Ins in, Outs out) {
//     const Call call(cuda, op_name(op));           // makes its GPU current; errors and reports name the op
//     const Array x = dense(cuda, in[0]);           // row-major: the input itself or a copy
//     Destination y(cuda, out[0], false);           // row-major too: the output itself or a temporary
//     visit_floating(x.dtype(), [&]<class T>() {    // f32, f64, f16, bf16
//       launch(call, mish_kernel<T>, divide_up(n, block_threads), MishArgs<T>{...});
//     });
//     y.commit();                                   // puts a temporary in its place
//     call.finish();                                // throws if a launch was refused
//   }
//
// A kernel takes its arguments as one struct by value. It never waits and never reads back, so that it can be
// captured into a graph.
#pragma once

#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/device.cuh"
#include "ferrite/cuda/launch.hpp"
