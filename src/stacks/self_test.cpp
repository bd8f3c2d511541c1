// Examples of all ops on one backend and on Reference.
#include "ferrite/stacks/self_test.hpp"

#include <fmt/format.h>

#include "ferrite/ops/all.hpp"
#include "ferrite/ops/launch.hpp"
#include "ferrite/stacks/replay_call.hpp"
#include "ferrite/tensor/comparison.hpp"

namespace ferrite {

HostTensor example_input(const Meta& meta, std::uint64_t stream, bool is_matrix) {
  using T = Tensor<Reference>;
  Reference reference;
  Rng rng(stream);
  const T uniform = rand(reference, meta.shape, rng, 0.1, 0.9, DType::f64);
  const T rising = meta.shape.rank() > 0 ? sort(uniform).first : uniform;
  T x = is_floating(meta.dtype) ? rising : round(uniform);
  if (is_matrix) {
    const T rows = unsqueeze(arange(reference, x.size(-2)), -1), columns = arange(reference, x.size(-1));
    x = where(rows == columns, x + 4, x);
  }
  return detail::download(reference, cast(x, meta.dtype).primitive());
}

namespace {

/// The outputs of a call, in host memory.
using Evaluate = std::function<Primitives<AnyBackend>(AnyBackend&, Ins)>;

std::vector<HostTensor> results_on(AnyBackend& backend, const std::vector<HostTensor>& inputs,
                                   const Evaluate& evaluate) {
  std::vector<Array> arrays;
  std::vector<const Array*> refs;
  for (const HostTensor& x : inputs) arrays.push_back(detail::upload(backend, x));
  for (const Array& x : arrays) refs.push_back(&x);
  std::vector<HostTensor> results;
  for (const Array& y : evaluate(backend, Ins(refs.data(), refs.size())))
    results.push_back(detail::download(backend, y));
  return results;
}

/// Compares one call; false if the backend does not take the dtype.
bool test_call(AnyBackend& backend, const detail::ErasedOp& op, std::vector<HostTensor> inputs,
               const std::string& label, const Evaluate& evaluate, SelfTest& report) {
  AnyBackend reference("reference");
  detail::ComparedCall call{op, Accumulate::none, std::move(inputs), {}, {}, {}};
  try {
    call.outputs = results_on(backend, call.inputs, evaluate);
  } catch (const DTypeError&) {  // of a kernel of the user in f64, which only Reference takes
    return false;
  } catch (const std::exception& e) {
    report.findings.push_back(label + ": " + e.what());
    return true;
  }
  call.expected = results_on(reference, call.inputs, evaluate);
  call.before.resize(call.outputs.size());
  if (call.outputs.size() != call.expected.size()) {
    report.findings.push_back(
        fmt::format("{}: {} outputs instead of {}", label, call.outputs.size(), call.expected.size()));
    return true;
  }
  std::size_t k = 0;
  for (const Comparison& compared : detail::compare_outputs(call)) {
    if (!compared.agrees())
      report.findings.push_back(fmt::format("{}, output {}: {} instead of {} at {}", label, k, compared.value,
                                            compared.expected, compared.index));
    ++k;
  }
  return true;
}

template <class Op>
void test_op(AnyBackend& backend, SelfTest& report) {
  int taken = 0;
  for (const DType dtype : all_dtypes) {
    Op op{};
    const Metas metas = op_example(op, dtype);
    try {
      detail::infer_results(op, metas);
    } catch (const DTypeError&) {
      continue;
    }
    std::vector<HostTensor> inputs;
    for (std::size_t i = 0; i < metas.size(); ++i)
      inputs.push_back(example_input(metas[i], i + 1, detail::DefinedOnHost<Op>));
    const auto call = [&op](AnyBackend& b, Ins in) { return evaluate(b, op, in); };
    const std::string label = fmt::format("{} {}", Op::type_name, to_string(dtype));
    taken += test_call(backend, detail::ErasedOp::of(op), std::move(inputs), label, call, report) ? 1 : 0;
  }
  if (taken == 0) report.findings.push_back(fmt::format("{} takes its example in no dtype", Op::type_name));
  ++report.ops;
  report.calls += taken;
}

}  // namespace

SelfTest self_test(AnyBackend& backend, std::string_view only_op) {
  SelfTest report;
  op::Core::for_each([&]<class Op>() {
    if (only_op.empty() || only_op == Op::type_name) test_op<Op>(backend, report);
  });
  if (report.ops == 0)
    throw ValueError(fmt::format("[self_test] '{}': `ferrite ops` lists the ops", only_op));
  return report;
}

}  // namespace ferrite
