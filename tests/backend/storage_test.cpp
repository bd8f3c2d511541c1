// Dtypes for storage (i8, u16, u32): what every backend does with them, and what none does.
#include <gtest/gtest.h>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/ops/cat.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using Tokens = std::vector<std::uint16_t>;

class Storage : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam().find("cuda") != std::string::npos && cuda_device_count() == 0) GTEST_SKIP() << "no GPU";
    b.emplace(GetParam());
  }
  std::optional<AnyBackend> b;
};

TEST_P(Storage, TensorsAreMadeMovedAndRead) {
  const auto x = from_vector(*b, Tokens{1, 65535, 300, 7, 0, 9}, {2, 3});
  EXPECT_EQ(x.dtype(), DType::u16);
  EXPECT_EQ(transpose(x, 0, 1).to_vector<std::uint16_t>(), (Tokens{1, 7, 65535, 0, 300, 9}));
  EXPECT_EQ(clone(slice(x, 1, 1)).to_vector<int>(), (std::vector<int>{65535, 300, 0, 9}));
  EXPECT_EQ(cat(std::vector{x, flip(x)}, 0).to_vector<std::uint16_t>(),
            (Tokens{1, 65535, 300, 7, 0, 9, 9, 0, 7, 300, 65535, 1}));
  EXPECT_EQ(full(*b, {2}, -3, DType::i8).to_vector<std::int8_t>(), (std::vector<std::int8_t>{-3, -3}));
  EXPECT_EQ(full(*b, {1}, 4294967295.0, DType::u32).item<std::int64_t>(), 4294967295);
  EXPECT_EQ(select(reshape(x, {6}), 0, 1).item<std::uint16_t>(), 65535);
}

TEST_P(Storage, CastsFollowTheRulesOfIntegers) {
  const auto x = from_vector(*b, std::vector<float>{-1.5f, 127.9f, 300, 70000, NAN});
  EXPECT_EQ(cast(x, DType::i8).to_vector<int>(), (std::vector<int>{-1, 127, 127, 127, 0}));
  EXPECT_EQ(cast(x, DType::u16).to_vector<int>(), (std::vector<int>{0, 127, 300, 65535, 0}));
  const auto wrapped = cast(from_vector(*b, std::vector<int>{-1, 65537}), DType::u16);
  EXPECT_EQ(cast(wrapped, DType::i64).to_vector<std::int64_t>(), (std::vector<std::int64_t>{65535, 1}));
  EXPECT_EQ(cast(wrapped, DType::bf16).to_vector<float>(), (std::vector<float>{65536, 1}));
}

TEST_P(Storage, TokensAreIndicesWithGradients) {
  Autodiff<AnyBackend> ad{*b};
  const auto table = parameter(from_vector(ad, std::vector<float>{0, 1, 2, 3, 4, 5}, {3, 2}), "table");
  const auto ids = from_vector(ad, Tokens{2, 0, 2});
  const auto rows = embedding(table, ids);
  EXPECT_EQ(rows.to_vector<float>(), (std::vector<float>{4, 5, 0, 1, 4, 5}));
  EXPECT_EQ(sum(rows).backward().of(table).to_vector<float>(), (std::vector<float>{1, 1, 0, 0, 2, 2}));
  const auto picked =
      gather(from_vector(*b, std::vector<std::int8_t>{1, -2, 3}), 0, from_vector(*b, Tokens{2, 1}));
  EXPECT_EQ(picked.to_vector<int>(), (std::vector<int>{3, -2}));
}

TEST_P(Storage, ArithmeticSaysToCastFirst) {
  const auto x = from_vector(*b, Tokens{1, 2});
  const auto refused = [](auto&& call) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const DTypeError& e) {
      EXPECT_NE(std::string(e.what()).find("u16"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("cast(x, DType::i32)"), std::string::npos) << e.what();
    }
  };
  refused([&] { x + x; });
  refused([&] { x * 2; });
  refused([&] { exp(x); });
  refused([&] { sum(x); });
  refused([&] { sort(x); });
  refused([&] { x == x; });
  refused([&] { where(x != x, x, x); });
  refused([&] { arange(*b, 0, 4, 1, DType::u16); });
  refused([&] { cat(std::vector{x, cast(x, DType::i32)}); });
  EXPECT_EQ(sum(cast(x, DType::i32)).item<std::int64_t>(), 3);
}

INSTANTIATE_TEST_SUITE_P(Backends, Storage,
                         ::testing::Values("cpu", "reference", "lazy-cpu", "parity", "lazy-parity",
                                           "profiled-cpu", "cuda", "lazy-cuda", "cuda-parity"),
                         [](const auto& backend) {
                           std::string name = backend.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace ferrite
