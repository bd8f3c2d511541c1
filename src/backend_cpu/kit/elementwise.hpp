// The driver of all elementwise ops. A kernel is a function over dense blocks of its own dtypes; the driver
// converts operands of any layout and dtype to that form, and the results back.
#pragma once

#include <span>

#include "ferrite/core/scalar.hpp"
#include "ferrite/cpu/blocks.hpp"

namespace ferrite::cpu {

/// out[i] = f(in[0][i], in[1][i], ...) for i in [0, n). `out` may be one of the inputs.
using BlockKernel = void (*)(const void* const* in, void* out, std::int64_t n, double parameter);

/// An operand: an array that broadcasts to the output's shape, or one value for all elements.
struct Source {
  const Array* array = nullptr;
  const void* value = nullptr;  // an element of `dtype`, used if there is no array
  DType dtype;                  // what the kernel reads
};

struct Elementwise {
  BlockKernel kernel;    // nullptr passes the one operand through
  DType dtype;           // what the kernel writes; a compute dtype if the results are accumulated
  double parameter = 0;  // handed to the kernel
};

/// One element of dtype `wanted`: the scalar after conversion to `dtype`.
struct ScalarValue {
  alignas(8) std::byte bytes[8];

  ScalarValue(Scalar scalar, DType dtype, DType wanted) {
    alignas(8) std::byte converted[8];
    visit_any_dtype(dtype, [&]<class T>() { *reinterpret_cast<T*>(converted) = scalar.to<T>(); });
    convert_block(dtype, converted, wanted, bytes, 1);
  }
};

/// Runs over all elements of `out`, at most three sources. `accumulate` adds to what `out` holds.
void run_elementwise(const Elementwise& op, std::span<const Source> sources, const Array& out,
                     bool accumulate = false);

}  // namespace ferrite::cpu
