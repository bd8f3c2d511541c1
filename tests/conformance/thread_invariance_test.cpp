// The same bits for 1, 2 and 7 threads, forward and backward, at sizes where threads really share the work.
#include <gtest/gtest.h>

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/ops/attention.hpp"
#include "ferrite/ops/batch_norm.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/dropout.hpp"
#include "ferrite/ops/embedding.hpp"
#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/linear.hpp"
#include "ferrite/ops/linear_cross_entropy.hpp"
#include "ferrite/ops/matmul.hpp"
#include "ferrite/ops/pool2d.hpp"
#include "ferrite/ops/random.hpp"
#include "ferrite/ops/rms_norm.hpp"
#include "ferrite/ops/scan.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "ferrite/ops/statistic.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {
namespace {

using D = Autodiff<Cpu>;
using List = std::vector<Tensor<D>>;

struct Work {
  const char* name;
  std::vector<Shape> inputs;
  std::function<Tensor<D>(const List&)> call;
};

class ThreadInvariance : public ::testing::TestWithParam<Work> {};

TEST_P(ThreadInvariance, SameBitsForAnyNumberOfThreads) {
  const int before = num_threads();
  std::vector<std::vector<std::byte>> expected;
  for (int threads : {1, 2, 7}) {
    set_num_threads(threads);
    D b;
    Rng rng(3);
    List in;
    for (const Shape& shape : GetParam().inputs) in.push_back(parameter(randn(b, shape, rng), "x"));
    const Tensor<D> out = GetParam().call(in);
    const auto grads = sum(square(out)).backward();
    std::vector<std::vector<std::byte>> results{to_bytes(out)};
    for (const Tensor<D>& x : in) results.push_back(to_bytes(grads.of(x)));
    if (expected.empty()) expected = results;
    EXPECT_TRUE(results == expected) << threads << " threads give other bits than 1";
  }
  set_num_threads(before);
}

const Shape wide{300, 1000};
INSTANTIATE_TEST_SUITE_P(
    Ops, ThreadInvariance,
    ::testing::Values(
        Work{"add", {wide, wide}, [](const List& in) { return in[0] + in[1]; }},
        Work{"broadcast_mul", {wide, {1000}}, [](const List& in) { return in[0] * in[1]; }},
        Work{"gelu", {wide}, [](const List& in) { return gelu(in[0]); }},
        Work{"transposed_exp", {wide}, [](const List& in) { return exp(transpose(in[0], 0, 1)); }},
        Work{"sum_all", {wide}, [](const List& in) { return sum(in[0]); }},
        Work{"sum_rows", {wide}, [](const List& in) { return sum(in[0], {1}); }},
        Work{"sum_columns", {wide}, [](const List& in) { return sum(in[0], {0}); }},
        Work{"var", {wide}, [](const List& in) { return var(in[0], {0}); }},
        Work{"cumsum", {wide}, [](const List& in) { return cumsum(in[0], 0); }},
        Work{"matmul", {{200, 300}, {300, 250}}, [](const List& in) { return matmul(in[0], in[1]); }},
        Work{"batched_matmul", {{8, 60, 70}, {8, 70, 50}}, [](const List& in) { return matmul(in[0], in[1]); }},
        Work{"softmax", {wide}, [](const List& in) { return softmax(in[0]); }},
        Work{"log_softmax", {wide}, [](const List& in) { return log_softmax(in[0], 0); }},
        Work{"layer_norm", {wide, {1000}, {1000}}, [](const List& in) { return layer_norm(in[0], in[1], in[2]); }},
        Work{"rms_norm", {wide, {1000}}, [](const List& in) { return rms_norm(in[0], in[1]); }},
        Work{"batch_norm", {{16, 12, 20, 20}, {12}, {12}}, [](const List& in) { return batch_norm(in[0], in[1], in[2]).y; }},
        Work{"linear", {{500, 64}, {96, 64}, {96}}, [](const List& in) { return linear(in[0], in[1], in[2], Activation::gelu); }},
        Work{"attention", {{2, 4, 130, 16}, {2, 4, 130, 16}, {2, 4, 130, 16}},
             [](const List& in) { return attention(in[0], in[1], in[2], AttentionConfig{}.with_causal(true)); }},
        Work{"conv2d", {{9, 8, 20, 20}, {16, 8, 3, 3}, {16}}, [](const List& in) { return conv2d(in[0], in[1], in[2], Conv2dConfig{}.with_padding(1)); }},
        Work{"max_pool2d", {{9, 8, 32, 32}}, [](const List& in) { return max_pool2d(in[0], PoolConfig(2)); }},
        Work{"cross_entropy", {wide},
             [](const List& in) {
               Rng rng(5);
               return softmax_cross_entropy(in[0], randint(in[0].backend(), {300}, rng, 0, 1000));
             }},
        Work{"linear_cross_entropy", {{300, 64}, {1000, 64}},
             [](const List& in) {
               Rng rng(5);
               return eval(op::LinearCrossEntropy{.chunk_rows = 130}, in[0], in[1],
                           randint(in[0].backend(), {300}, rng, 0, 1000));
             }},
        Work{"embedding", {{50, 64}},
             [](const List& in) {
               Rng rng(5);
               return embedding(in[0], randint(in[0].backend(), {4000}, rng, 0, 50));
             }},
        Work{"dropout", {wide},
             [](const List& in) {
               Rng rng(5);
               return dropout(in[0], 0.3, rng);
             }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace ferrite
