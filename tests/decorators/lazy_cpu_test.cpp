// Lazy<Cpu>.
#include <atomic>
#include <thread>

#include "ferrite/interop/dlpack.hpp"
#include "ferrite/ops/softmax.hpp"
#include "lazy_programs.hpp"
#include "lazy_test.hpp"

namespace ferrite::lazy_tests {

INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, LazyTest, Cpu);

TEST(LazyCpu, RandomProgramsGiveTheSameBits) { EXPECT_GT(expect_same_programs<Cpu>(1, 150, 60), 2000); }

TEST(LazyCpu, RandomStreamsDoNotDependOnTheOrder) {
  Lazy<Cpu> lazy;
  Cpu plain;
  Rng a(3), b(3);
  const auto x = randn(lazy, {50}, a) * 2, y = randn(lazy, {50}, a) + 1;
  const auto p = randn(plain, {50}, b) * 2, q = randn(plain, {50}, b) + 1;
  EXPECT_EQ(y.to_vector(), q.to_vector());
  EXPECT_EQ(x.to_vector(), p.to_vector());
}

TEST(LazyCpu, ThreadsShareABackend) {
  Lazy<Cpu> lazy;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto x = full(lazy, {64 + t}, t + i);
        wrong += ((x * 2 + 1) * x).to_vector()[5] != static_cast<float>((2 * (t + i) + 1) * (t + i));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LazyCpu, AValueThatCouldNotBeComputedIsNeverRead) {
  Lazy<Cpu> b;
  const auto x = ones(b, {1 << 24}), wide = expand(unsqueeze(x, 1), {1 << 24, 1 << 24});
  const auto y = wide * 2,
             z = y + 1;  // a petabyte: more than there are addresses, however generous the system
  EXPECT_THROW(b.flush(), OutOfMemory);
  EXPECT_THROW(slice(y, 0, 0, 1).to_vector(), BackendError);
  EXPECT_THROW(slice(z, 0, 0, 1) * 2, BackendError);
  EXPECT_THROW(sum(y), BackendError);
  EXPECT_EQ((x * 2).to_vector()[7], 2);
}

TEST(LazyCpu, DlpackSeesTheValue) {
  Lazy<Cpu> lazy;
  const auto x = full(lazy, {4}, 2) * 3 + 1;
  DLManagedTensor* exported = to_dlpack(x);
  EXPECT_EQ(static_cast<const float*>(exported->dl_tensor.data)[3], 7);
  exported->deleter(exported);
}

TEST(LazyCpu, OverReference) {
  const auto report = expect_close<Reference>([](auto& b, Rng& rng) {
    const auto x = randn(b, {30}, rng);
    return exp(x * 2) + 1;
  });
  EXPECT_EQ(report.launches(), 1);
}

TEST(LazyCpu, ReportIsReadable) {
  Lazy<Cpu> lazy;
  Rng rng(1);
  const auto y = relu(randn(lazy, {4, 5}, rng) * 2 + 1);
  softmax(y, -1).to_vector();
  const std::string text = table(lazy.fusion_report());
  EXPECT_NE(text.find("3 ops recorded: 3 fused, 0 one by one, 0 never run; 2 results never written"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1  mul add relu"), std::string::npos) << text;
  EXPECT_NE(text.find("1  softmax"), std::string::npos) << text;
  EXPECT_NE(lazy.fusion_report().kernels[0].source.find("wp.where("), std::string::npos);
}

}  // namespace ferrite::lazy_tests
