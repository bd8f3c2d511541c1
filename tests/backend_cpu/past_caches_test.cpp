// Results larger than the caches go around them (cpu::exceeds_caches). With many threads at work the limit is
// higher, and the same results, which have the same bits for any number of threads, come by common stores.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/cpu/blocks.hpp"
#include "ferrite/ferrite.hpp"

namespace ferrite {
namespace {

using T = Tensor<Cpu>;

class PastCaches : public ::testing::Test {
 protected:
  void SetUp() override {
    set_num_threads(2);
    while (!cpu::exceeds_caches(rows * columns * 4) && rows * columns < (64 << 20)) rows *= 2;
    if (!cpu::exceeds_caches(rows * columns * 4)) GTEST_SKIP() << "this processor's stores are all alike";
  }
  void TearDown() override { set_num_threads(threads_before); }

  T random(std::int64_t width) { return randn(cpu, {rows, width}, rng); }

  static void expect_bits_of_common_stores(const std::function<T()>& f) {
    set_num_threads(16);
    const T common = f();
    const auto bytes = common.numel() * static_cast<std::int64_t>(size_of(common.dtype()));
    ASSERT_FALSE(cpu::exceeds_caches(bytes));
    for (const int threads : {1, 2}) {
      set_num_threads(threads);
      ASSERT_TRUE(cpu::exceeds_caches(bytes));
      const T streamed = f();
      EXPECT_EQ(std::memcmp(common.primitive().data(), streamed.primitive().data(),
                            static_cast<std::size_t>(bytes)),
                0)
          << threads << " threads";
    }
  }

  Cpu cpu;
  Rng rng{7};
  std::int64_t rows = 256, columns = 1024;

 private:
  int threads_before = num_threads();
};

TEST_F(PastCaches, ElementwiseOps) {
  for (const std::int64_t width : {columns, columns + 5}) {  // of the second, the last block is not full
    const T a = random(width), b = random(width), wide = cast(a, DType::f64);
    expect_bits_of_common_stores([&] { return a * b; });
    expect_bits_of_common_stores([&] { return exp(a + 0.5); });
    expect_bits_of_common_stores([&] { return wide * 2; });
    expect_bits_of_common_stores([&] { return where(a < b, a, b); });
    expect_bits_of_common_stores([&] { return clone(a); });
    expect_bits_of_common_stores([&] { return full(cpu, a.shape(), 3.0); });
  }
  const T all = randn(cpu, {4 * rows, columns}, rng);
  expect_bits_of_common_stores([&] { return all > 0; });  // results of a byte
}

TEST_F(PastCaches, ResultsInPlaceAndOffTheLinesOfTheCache) {
  const T x = random(columns), one = random(columns);
  expect_bits_of_common_stores([&] {
    const T y = clone(x);
    const Array* in[] = {&y.primitive(), &one.primitive()};
    Array out[] = {y.primitive()};
    evaluate_in_place(cpu, op::Binary{op::BinaryFn::add}, Ins(in, 2), Outs(out));
    return y;
  });
  expect_bits_of_common_stores([&] {
    const T room = zeros(cpu, {x.numel() + 1});
    assign(room[{Range(1, x.numel() + 1)}], reshape(x, {x.numel()}));
    return room;
  });
}

TEST_F(PastCaches, Rows) {
  for (const std::int64_t width : {columns, columns + 5}) {  // of the second, every 16th is on a line's start
    const T x = random(width), d = random(width), weight = random(width)[0], bias = random(width)[0];
    const T wide = cast(x, DType::f64), p = softmax(x, -1), log_p = log_softmax(x, -1);
    expect_bits_of_common_stores([&] { return softmax(x, -1); });
    expect_bits_of_common_stores([&] { return softmax(wide, -1); });
    expect_bits_of_common_stores([&] { return log_softmax(x, -1); });
    expect_bits_of_common_stores([&] { return eval(op::SoftmaxBackward{}, p, d); });
    expect_bits_of_common_stores([&] { return eval(op::LogSoftmaxBackward{}, log_p, d); });
    expect_bits_of_common_stores([&] { return layer_norm(x, weight, bias); });
    expect_bits_of_common_stores([&] { return rms_norm(x, weight); });
  }
}

TEST_F(PastCaches, Gradients) {
  Autodiff<Cpu> b;
  const T x = random(columns), d = random(columns), classes = randint(cpu, {rows}, rng, 0, columns - 9);
  const T some = where(classes == 3, -100, classes);  // -100 is ignored
  const auto expect_bits = [&](const auto& loss) {
    expect_bits_of_common_stores([&] {
      const auto leaf = parameter(lift(b, x), "x");
      return loss(leaf, lift(b, some)).backward().of(leaf);
    });
  };
  const auto of_each = CrossEntropyConfig{}.with_reduction(Reduction::none);
  const auto of_all = CrossEntropyConfig{}.with_reduction(Reduction::sum).with_label_smoothing(0.1);
  expect_bits([&](const auto& l, const auto& t) { return sum(softmax_cross_entropy(l, t, of_each)); });
  expect_bits([&](const auto& l, const auto& t) { return softmax_cross_entropy(l, t, of_all); });
  expect_bits([&](const auto& l, const auto& t) {  // with padding beyond the classes
    return softmax_cross_entropy(l, t, of_all.with_classes(columns - 9));
  });
  const auto weight = randn(b, {columns}, rng), bias = randn(b, {columns}, rng), slope = lift(b, d);
  expect_bits([&](const auto& l, const auto&) { return sum(layer_norm(l, weight, bias) * slope); });
  expect_bits([&](const auto& l, const auto&) { return sum(rms_norm(l, weight) * slope); });
}

TEST_F(PastCaches, PlanesOfBatchNorm) {
  Autodiff<Cpu> b;
  for (const std::int64_t side : {32, 33}) {
    const T planes = reshape(random(side * side), {rows / 4, 4, side, side});
    const auto slope = lift(b, randn(cpu, planes.shape(), rng));
    const auto norm = [&](const auto& x) { return batch_norm(x, full(b, {4}, 2.0), full(b, {4}, 1.0)).y; };
    expect_bits_of_common_stores([&] { return T(cpu, norm(lift(b, planes)).primitive().value); });
    expect_bits_of_common_stores([&] {
      const auto leaf = parameter(lift(b, planes), "x");
      return sum(norm(leaf) * slope).backward().of(leaf);
    });
  }
}

}  // namespace
}  // namespace ferrite
