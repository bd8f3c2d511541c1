// A tensor of more elements than 32 bits count. Element i is i % 251: a place that is off by any power of two
// shows.
#include <cstring>

#include "backend_cuda/faults_support.hpp"

namespace ferrite::testing {
namespace {

constexpr std::int64_t period = 251, rows = 12'900'000, n = rows * period;  // 3.2 G
constexpr std::int64_t border = std::int64_t{1} << 31;
static_assert(n > 3 * (border / 2));

struct CudaLarge : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
    if (cuda_devices()[0].free_bytes < std::size_t{24} << 30) GTEST_SKIP() << "needs 24 GiB of GPU memory";
    gpu = std::make_unique<Cuda>(0);
    table = clone(expand(arange(*gpu, period, DType::u8), {rows, period}));
    x = reshape(table, {n});
  }
  void TearDown() override {
    if (!gpu) return;
    table = x = {};
    gpu->release_cache();
    EXPECT_TRUE(is_usable(*gpu));
  }
  static int at(const Tensor<Cuda>& t, std::int64_t i) { return select(t, 0, i).item<int>(); }

  static constexpr std::int64_t places[] = {0, border - 1, border, border + 77, 3 * (border / 2) + 1, n - 1};
  std::unique_ptr<Cuda> gpu;
  Tensor<Cuda> table, x;
};

TEST_F(CudaLarge, Elementwise) {
  const auto y = x + 3;
  for (const std::int64_t i : places) EXPECT_EQ(at(y, i), i % period + 3) << i;
  EXPECT_EQ(sum(x == 250).item<std::int64_t>(), rows);
  EXPECT_EQ(sum(y == x).item<std::int64_t>(), 0);
}

TEST_F(CudaLarge, Reductions) {
  EXPECT_EQ(sum(x).item<std::int64_t>(), rows * (period * (period - 1) / 2));
  std::vector<std::int64_t> columns;
  for (std::int64_t i = 0; i < period; ++i) columns.push_back(rows * i);
  EXPECT_EQ(sum(table, {0}).to_vector<std::int64_t>(), columns);
  const auto of_rows = sum(table, {1});
  EXPECT_EQ(min(of_rows).item<std::int64_t>(), period * (period - 1) / 2);
  EXPECT_EQ(max(of_rows).item<std::int64_t>(), period * (period - 1) / 2);
  const std::uint8_t most = 255;
  const std::int64_t place = border + 12345;
  gpu->copy_from_host(slice(x, 0, place, place + 1).primitive(), &most);
  EXPECT_EQ(max(x).item<int>(), 255);
  EXPECT_EQ(argmax(x).item<std::int64_t>(), place);
}

TEST_F(CudaLarge, Copies) {
  const auto backwards = clone(flip(x));
  for (const std::int64_t i : places) EXPECT_EQ(at(backwards, i), (n - 1 - i) % period) << i;
  const auto turned = clone(transpose(table, 0, 1));  // a row holds one number
  std::vector<int> numbers;
  for (int i = 0; i < period; ++i) numbers.push_back(i);
  EXPECT_EQ(min(turned, {1}).to_vector<int>(), numbers);
  EXPECT_EQ(max(turned, {1}).to_vector<int>(), numbers);
}

TEST_F(CudaLarge, SlicesBeyondTheBorderToTheHost) {
  const auto expect_slice = [&](std::int64_t start, std::int64_t stop, std::int64_t step) {
    std::vector<int> want;
    for (std::int64_t i = start; i < stop; i += step) want.push_back(static_cast<int>(i % period));
    EXPECT_EQ(slice(x, 0, start, stop, step).to_vector<int>(), want) << start;
  };
  expect_slice(border - 500, border + 500, 1);
  expect_slice(border + 7, border + 70'007, 3);
  expect_slice(n - 1000, n, 1);
  expect_slice(5, n, (std::int64_t{1} << 20) + 3);
  const auto index = from_vector(*gpu, std::vector<std::int64_t>{border + 9, n - 1, -1, 3});
  EXPECT_EQ(index_select(x, 0, index).to_vector<int>(),
            (std::vector<int>{(border + 9) % period, (n - 1) % period, (n - 1) % period, 3}));
}

TEST_F(CudaLarge, AllOfItToTheHostAndBack) {
  std::vector<std::uint8_t> pattern(period);
  for (std::size_t i = 0; i < pattern.size(); ++i) pattern[i] = static_cast<std::uint8_t>(i);
  std::vector<std::byte> host = to_bytes(x);
  ASSERT_EQ(host.size(), static_cast<std::size_t>(n));
  std::int64_t wrong = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    wrong += std::memcmp(host.data() + row * period, pattern.data(), pattern.size()) != 0;
  EXPECT_EQ(wrong, 0);
  const auto back = from_bytes(*gpu, x.meta(), host.data());
  EXPECT_EQ(sum(back != x).item<std::int64_t>(), 0);
}

}  // namespace
}  // namespace ferrite::testing
