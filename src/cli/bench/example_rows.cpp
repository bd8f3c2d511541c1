// Every op of the library on its example.
#include "cli/bench/rows.hpp"
#include "ferrite/ops/all.hpp"
#include "ferrite/stacks/self_test.hpp"

namespace ferrite::cli::bench {

void add_example_rows(std::vector<Row>& rows, DType dtype) {
  op::Core::for_each([&]<class Op>() {
    Op op{};
    const Metas in = op_example(op, dtype);
    if (in.empty()) return;  // a row is called by its inputs, which say where
    Metas out;
    try {
      out = detail::infer_results(op, in);
    } catch (const DTypeError&) {
      return;
    }
    Row row;
    row.op = Op::type_name;
    row.dtype = to_string(dtype);
    row.size = example_size;
    row.cost = op_cost(op, in, out);
    for (std::size_t i = 0; i < in.size(); ++i)
      row.inputs.push_back({in[i], Draw::normal, 0, example_input(in[i], i + 1, detail::DefinedOnHost<Op>)});
    row.call = [op](TensorSpan<AnyBackend> tensors) { return eval_list(op, tensors); };
    rows.push_back(std::move(row));
  });
}

}  // namespace ferrite::cli::bench
