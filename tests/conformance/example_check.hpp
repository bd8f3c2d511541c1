// Every op of the list has an example (op_example), and on every backend it gives what Reference gives. So no
// op is listed without a case.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "ferrite/ferrite.hpp"
#include "ferrite/stacks/replay.hpp"
#include "ferrite/tensor/comparison.hpp"

namespace ferrite::conformance {

/// Values that every op takes: positive numbers below 1 in rising order (edges of bins), and 0 or 1 for
/// integers.
inline HostTensor example_input(const Meta& meta, std::uint64_t stream) {
  Reference reference;
  Rng rng(stream);
  const Tensor<Reference> uniform = rand(reference, meta.shape, rng, 0.1, 0.9, DType::f64);
  const Tensor<Reference> rising = meta.shape.rank() > 0 ? sort(uniform).first : uniform;
  const Tensor<Reference> x = is_floating(meta.dtype) ? rising : round(uniform);
  return detail::download(reference, cast(x, meta.dtype).primitive());
}

template <class Op>
void check_example(AnyBackend& b) {
  AnyBackend reference("reference");
  int taken = 0;
  for (const DType dtype : all_dtypes) {
    Op op{};
    const Metas metas = op_example(op, dtype);
    try {
      detail::infer_results(op, metas);
    } catch (const DTypeError&) {
      continue;
    }
    detail::ComparedCall call{detail::ErasedOp::of(op), Accumulate::none, {}, {}, {}, {}};
    for (std::size_t i = 0; i < metas.size(); ++i) call.inputs.push_back(example_input(metas[i], i + 1));
    const auto results_on = [&](AnyBackend& backend) {
      std::vector<Array> arrays;
      std::vector<const Array*> refs;
      for (const HostTensor& x : call.inputs) arrays.push_back(detail::upload(backend, x));
      for (const Array& x : arrays) refs.push_back(&x);
      std::vector<HostTensor> results;
      for (const Array& y : evaluate(backend, op, Ins(refs.data(), refs.size())))
        results.push_back(detail::download(backend, y));
      return results;
    };
    try {
      call.outputs = results_on(b);
    } catch (const DTypeError&) {  // of a kernel of the user in f64, which only Reference takes
      continue;
    }
    call.expected = results_on(reference);
    call.before.resize(call.outputs.size());
    ++taken;
    ASSERT_EQ(call.outputs.size(), call.expected.size());
    const std::vector<Comparison> compared = detail::compare_outputs(call);
    for (std::size_t k = 0; k < compared.size(); ++k)
      EXPECT_TRUE(compared[k].agrees())
          << Op::type_name << " " << to_string(dtype) << ", output " << k << ": " << compared[k].value
          << " instead of " << compared[k].expected << " at " << compared[k].index;
  }
  EXPECT_GT(taken, 0) << Op::type_name << " takes its example for no dtype";
}

}  // namespace ferrite::conformance
