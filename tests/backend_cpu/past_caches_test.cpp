// Results larger than the caches go around them (cpu::exceeds_caches). They have the bits of small results.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/cpu/blocks.hpp"
#include "ferrite/ferrite.hpp"

namespace ferrite {
namespace {

using T = Tensor<Cpu>;

/// One thread, for which the limit is lowest.
class PastCaches : public ::testing::Test {
 protected:
  void SetUp() override {
    set_num_threads(1);
    while (!cpu::exceeds_caches(rows * columns * 4) && rows * columns < (64 << 20)) rows *= 2;
    if (!cpu::exceeds_caches(rows * columns * 4)) GTEST_SKIP() << "this processor's stores are all alike";
  }
  void TearDown() override { set_num_threads(threads_before); }

  T random(std::int64_t width) { return randn(cpu, {rows, width}, rng); }

  /// Where `f` is computed row by row, a result of a few rows is that part of the large result.
  void expect_bits_of_parts(const std::function<T(const std::vector<T>&)>& f, const std::vector<T>& in) {
    const T whole = f(in);
    ASSERT_TRUE(cpu::exceeds_caches(whole.numel() * 4));
    for (const std::int64_t begin : {std::int64_t{0}, rows / 2 - 3, rows - 37}) {
      const Range part(begin, begin + 37);
      std::vector<T> few;
      for (const T& t : in) few.push_back(t.shape()[0] == rows ? contiguous(t[{part}]) : t);
      ASSERT_EQ(whole[{part}].to_vector<double>(), f(few).to_vector<double>()) << "rows from " << begin;
    }
  }

  Cpu cpu;
  Rng rng{7};
  std::int64_t rows = 256, columns = 1024;

 private:
  int threads_before = num_threads();
};

TEST_F(PastCaches, ElementwiseOps) {
  for (const std::int64_t width : {columns, columns + 5}) {  // with odd rows the ends of blocks fall anywhere
    const T a = random(width), b = random(width);
    expect_bits_of_parts([](const auto& in) { return in[0] * in[1]; }, {a, b});
    expect_bits_of_parts([](const auto& in) { return exp(in[0] + 0.5); }, {a});
    expect_bits_of_parts([](const auto& in) { return clone(in[0]); }, {a});
    expect_bits_of_parts([](const auto& in) { return where(in[0] < in[1], in[0], in[1]); }, {a, b});
  }
}

TEST_F(PastCaches, FillsAndWorksInPlace) {
  const T ones = full(cpu, {rows * columns}, 1.0);
  EXPECT_EQ(sum(ones).item(), static_cast<double>(rows * columns));
  T x = clone(ones);
  assign(x, x + ones);
  EXPECT_EQ(sum(x).item(), 2.0 * static_cast<double>(rows * columns));
}

TEST_F(PastCaches, Rows) {
  for (const std::int64_t width :
       {columns, columns + 5}) {  // odd rows are not aligned and take common stores
    const T x = random(width), d = random(width), weight = random(width)[0], bias = random(width)[0];
    expect_bits_of_parts([](const auto& in) { return softmax(in[0], -1); }, {x});
    expect_bits_of_parts([](const auto& in) { return log_softmax(in[0], -1); }, {x});
    expect_bits_of_parts([](const auto& in) { return layer_norm(in[0], in[1], in[2]); }, {x, weight, bias});
    expect_bits_of_parts([](const auto& in) { return rms_norm(in[0], in[1]); }, {x, weight});
    expect_bits_of_parts([](const auto& in) { return eval_list(op::SoftmaxBackward{}, std::span(in))[0]; },
                         {softmax(x, -1), d});
    expect_bits_of_parts([](const auto& in) { return eval_list(op::LogSoftmaxBackward{}, std::span(in))[0]; },
                         {log_softmax(x, -1), d});
  }
}

TEST_F(PastCaches, Gradients) {
  Autodiff<Cpu> b;
  const T x = random(columns), classes = randint(cpu, {rows}, rng, 0, columns);
  const Range part(3, 40);
  const auto expect_bits_of_part = [&](const auto& loss) {
    const auto gradient = [&](const T& logits, const T& targets) {
      const auto leaf = parameter(lift(b, logits), "x");
      return loss(leaf, lift(b, targets)).backward().of(leaf);
    };
    EXPECT_EQ(gradient(x, classes)[{part}].template to_vector<double>(),
              gradient(contiguous(x[{part}]), contiguous(classes[{part}])).template to_vector<double>());
  };
  const auto of_each = CrossEntropyConfig{}.with_reduction(Reduction::none);
  const auto of_all = CrossEntropyConfig{}.with_reduction(Reduction::sum).with_label_smoothing(0.1);
  expect_bits_of_part(
      [&](const auto& l, const auto& t) { return sum(softmax_cross_entropy(l, t, of_each)); });
  expect_bits_of_part([&](const auto& l, const auto& t) { return softmax_cross_entropy(l, t, of_all); });
  const auto weight = randn(b, {columns}, rng), bias = randn(b, {columns}, rng);
  expect_bits_of_part([&](const auto& l, const auto&) { return sum(layer_norm(l, weight, bias) * l); });
}

TEST_F(PastCaches, PlanesOfBatchNorm) {
  Autodiff<Cpu> b;
  const auto means = [](const auto& t) {
    return mean(t, {0, 2, 3}).template to_vector<double>();
  };  // of each channel
  for (const std::int64_t side : {32, 31}) {
    const auto x = parameter(lift(b, reshape(random(side * side), {rows / 4, 4, side, side})), "x");
    const auto y = batch_norm(x, full(b, {4}, 2.0), full(b, {4}, 1.0)).y;
    for (const double m : means(y)) EXPECT_NEAR(m, 1, 1e-5);
    // A shift of all of x leaves y as it is.
    for (const double m : means(sum(y * y * y).backward().of(x))) EXPECT_NEAR(m, 0, 1e-5);
  }
}

}  // namespace
}  // namespace ferrite
