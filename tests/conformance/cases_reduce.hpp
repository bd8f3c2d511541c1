// Reductions, scans, sorting, products and indexing.
#pragma once

#include <cmath>
#include <utility>

#include "case.hpp"

namespace ferrite::conformance {

template <class B>
void add_reduce_cases(Cases<B>& cases) {
  const Shape shape{3, 4, 5};
  // Reductions that need elements get empty rows beside; the others also rows of nothing.
  const std::vector<std::vector<Shape>> without_rows = {{{0, 4, 5}}, {{1, 1, 1}}};
  std::vector<std::vector<Shape>> more;
  const auto add = [&](const std::string& name, Input input, std::vector<DType> dtypes, double length,
                       auto f) {
    Spec spec{name, {input}, std::move(dtypes), length};
    spec.same_dtype = true;
    spec.more = std::exchange(more, {});
    cases.add(spec, f);
  };
  more = {{{}}, {{0, 4}}, {{1}}};
  add("sum", real(shape), every, 60, [](const auto& in) { return sum(in[0]); });
  more = {{{0, 4, 5}}, {{3, 0, 5}}, {{0, 0}}, {{1, 1}}};
  add("sum/axes", real(shape), every, 15, [](const auto& in) { return sum(in[0], {0, -1}); });
  add("sum/keepdim", real(shape), every, 4, [](const auto& in) { return sum(in[0], {1}, KeepDim::yes); });
  more = {{{3, 0}}, {{0, 4}}, {{1, 1}}};
  add("prod", positive({3, 4}), numbers, 4, [](const auto& in) { return prod(in[0], {1}); });
  more = {{{0, 4, 5}}, {{3, 4, 0}}, {{1, 1, 1}}};
  add("max", distinct(shape), every, 1, [](const auto& in) { return max(in[0], {1}); });
  add("max/all", distinct(shape), every, 1, [](const auto& in) { return max(in[0]); });
  add("min", distinct(shape), every, 1, [](const auto& in) { return min(in[0], {0, 2}, KeepDim::yes); });
  const std::vector<DType> all = every;
  cases.add(Spec{"any", {real({3, 4})}, all, 1, false, false, true}.also({{{3, 0}}, {{0, 4}}, {{1, 1}}}),
            [](const auto& in) { return any(in[0], {1}); });
  cases.add({"all", {real({3, 4})}, all, 1, false, false, true},
            [](const auto& in) { return ferrite::all(in[0], {0}); });
  cases.add(
      Spec{"argmax", {distinct({3, 4, 5})}, numbers, 1, false, false, true}.also({{{0, 4, 5}}, {{1, 1}}}),
      [](const auto& in) { return argmax(in[0], 1); });
  cases.add({"argmin", {distinct({3, 4, 5})}, numbers, 1, false, false, true},
            [](const auto& in) { return argmin(in[0], -1, KeepDim::yes); });
  more = {{{0, 4, 5}}, {{3, 0, 5}}, {{1, 1}}};
  add("cumsum", real(shape), every, 4, [](const auto& in) { return cumsum(in[0], 1); });
  add("cumsum/reverse", real(shape), floats, 5, [](const auto& in) {
    return eval(op::Scan{-1, true}, in[0]);
  });
  more = {{{3, 4, 0}}, {{1, 1, 1}}};
  add("mean", real(shape), numbers, 12, [](const auto& in) { return mean(in[0], {0, 1}); });
  add("var", real(shape), floats, 20, [](const auto& in) { return var(in[0], {1, 2}); });
  more = without_rows;
  add("var/population", real(shape), floats, 5,
      [](const auto& in) { return var(in[0], {-1}, KeepDim::yes, 0); });
  more = without_rows;
  add("logsumexp", real(shape), floats, 5, [](const auto& in) { return logsumexp(in[0], {-1}); });
  more = {{{3, 4, 0}}, {{0, 4, 5}}, {{1, 1, 1}}};
  add("norm/1", positive(shape), floats, 5, [](const auto& in) { return norm(in[0], 1, {2}); });
  more = {{{0}}, {{}}, {{1}}};
  add("norm/2", real(shape), floats, 60, [](const auto& in) { return norm(in[0]); });
  add("norm/inf", distinct({3, 4}), floats, 1, [](const auto& in) { return norm(in[0], INFINITY, {1}); });
  cases.add(Spec{"global_norm", {real({3, 4}), real({5})}, floats, 17}.also({{{0, 4}, {5}}, {{}, {1}}}),
            [](const auto& in) {
              return global_norm(std::vector{in[0], in[1]});
            });
  more = {{{0, 4}}, {{3, 0}}, {{1}}};
  add("sort", distinct({3, 4}), numbers, 1, [](const auto& in) { return sort(in[0], 0).first; });
  more = {{{0, 6}}, {{3, 0}}, {{1}}};
  add("sort/descending", distinct({3, 6}), numbers, 1,
      [](const auto& in) { return sort(in[0], -1, Order::descending).first; });
  cases.add({"sort/indices", {distinct({3, 6})}, numbers, 1, false, false, true},
            [](const auto& in) { return sort(in[0], -1).second; });
  add("topk", distinct({3, 6}), floats, 1, [](const auto& in) { return topk(in[0], 2).first; });
}

template <class B>
void add_matmul_cases(Cases<B>& cases) {
  const auto add = [&](const char* name, const Shape& a, const Shape& b, double length) {
    cases.add({std::string("matmul/") + name, {real(a), real(b)}, numbers, length, false, true, true},
              [](const auto& in) { return matmul(in[0], in[1]); });
  };
  add("2d", {3, 4}, {4, 5}, 4);
  add("dot", {6}, {6}, 6);
  add("vector_matrix", {4}, {4, 3}, 4);
  add("matrix_vector", {3, 4}, {4}, 4);
  add("batched", {2, 3, 4}, {2, 4, 5}, 4);
  add("broadcast_batch", {2, 1, 3, 4}, {3, 4, 2}, 4);
  add("stack_times_matrix", {2, 3, 4}, {4, 5}, 4);
  add("one_by_one", {1, 1}, {1, 1}, 1);
  add("empty_inner", {3, 0}, {0, 2}, 1);
  add("empty_rows", {0, 4}, {4, 2}, 4);
  // Results that are wider than their operands. The tolerance is that of the operands' dtype; how little the
  // sum itself loses is tested in ops/at_least_test.cpp.
  const auto wider = [&](const char* name, const Shape& a, const Shape& b, double length) {
    cases.add({std::string("matmul/") + name, {real(a), real(b)}, floats, length},
              [](const auto& in) { return eval(op::Matmul{DType::f32}, in[0], in[1]); });
  };
  wider("f32_result", {3, 4}, {4, 5}, 4);
  wider("f32_result_batched", {2, 1, 3, 4}, {3, 4, 2}, 4);
  wider("f32_result_empty_inner", {3, 0}, {0, 2}, 1);
  cases.add(Spec{"sum/f32_result", {real({6, 5})}, floats, 6}.also({{{0, 5}}, {{6, 0}}, {{1, 1}}}),
            [](const auto& in) {
              return eval(op::Reduce{op::ReduceFn::sum, {0}, false, DType::f32}, in[0]);
            });
}

template <class B>
void add_index_cases(Cases<B>& cases) {
  const auto same = [](Spec spec) {
    spec.same_dtype = true;
    return spec;
  };
  cases.add(same({"gather", {real({4, 3}), index({2, 3}, 4)}, every})
                .also({{{4, 3}, {0, 3}}, {{4, 0}, {2, 0}}, {{4, 3}, {1, 1}}}),
            [](const auto& in) { return gather(in[0], 0, in[1]); });
  cases.add(same({"gather/last_axis", {real({3, 4}), index({2, 6}, 4)}, every}),
            [](const auto& in) { return gather(in[0], 1, in[1]); });
  cases.add(same({"scatter_add", {real({4, 3}), index({5, 3}, 4), real({5, 3})}, numbers, 5})
                .also({{{4, 3}, {0, 3}, {0, 3}}, {{4, 0}, {5, 0}, {5, 0}}, {{4, 3}, {1, 1}, {2, 3}}}),
            [](const auto& in) { return scatter_add(in[0], 0, in[1], in[2]); });
  // Distinct targets: with duplicates the gradient of an overwritten source element is not defined.
  cases.add(same({"scatter", {real({3, 4}), real({3, 1})}, every}), [](const auto& in) {
    auto where_to = arange(in[0].backend(), 3);
    return scatter(in[0], 1, reshape(where_to, {3, 1}), in[1]);
  });
  cases.add(same({"index_select", {real({4, 3}), index({6}, 4)}, every})
                .also({{{4, 3}, {0}}, {{4, 0}, {6}}, {{4}, {1}}}),
            [](const auto& in) { return index_select(in[0], 0, in[1]); });
  cases.add(same({"embedding", {real({5, 3}), index({2, 4}, 5)}, floats, 8})
                .also({{{5, 3}, {0}}, {{5, 0}, {2}}, {{5, 3}, {}}}),
            [](const auto& in) { return embedding(in[0], in[1]); });
  cases.add(
      Spec{"embedding_backward/f32_result", {real({8, 3}), index({8}, 5)}, floats, 8, false, false}.also(
          {{{0, 3}, {0}}, {{2, 0}, {2}}, {{1, 16}, {1}}}),
      [](const auto& in) {
        return eval(op::EmbeddingBackward{5, DType::f32}, in[0], in[1]);
      });
  for (const QuantileMethod method :
       {QuantileMethod::linear, QuantileMethod::inverted_cdf, QuantileMethod::averaged_inverted_cdf})
    cases.add(
        {"order_statistics/" + std::string(to_string(method)), {distinct({9, 3})}, floats, 1, false, false},
        [method](const auto& in) {
          const auto levels = linspace(in[0].backend(), 0, 1, 7, DType::f64);
          const auto found = order_statistics(in[0], levels, method);
          return std::vector{found.lower, found.upper, found.count};
        });
  for (const Closed closed : {Closed::left, Closed::right})
    cases.add(
        same({"bucketize/" + std::string(to_string(closed)), {real({6, 3})}, floats, 1, false, false}),
        [closed](const auto& in) {
          auto& b = in[0].backend();
          const auto edges = from_vector(b, std::vector<double>{-1, 0, 0.5, -1.5, 1.5, 1.75, 0.1, 0.2, NAN});
          return bucketize(in[0], reshape(edges, {3, 3}), closed, 7, DType::u8);
        });
  cases.add(Spec{"one_hot", {index({2, 3}, 4)}, {DType::f32}, 1, false, false}.also({{{0, 3}}, {{}}, {{1}}}),
            [](const auto& in) { return one_hot(in[0], 4); });
}

}  // namespace ferrite::conformance
