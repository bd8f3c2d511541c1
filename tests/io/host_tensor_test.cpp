// HostTensor: ownership, sizes, dtype checks.
#include "ferrite/io/host_tensor.hpp"

#include "io_test.hpp"

namespace ferrite {
namespace {

using testing::expect_error;

TEST(HostTensor, CopiesValuesAndGivesThemBack) {
  std::vector<float> values{1, 2, 3, 4, 5, 6};
  const auto tensor = HostTensor::from<float>(values, {2, 3});
  values.assign(6, 0);
  EXPECT_EQ(tensor.dtype(), DType::f32);
  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  EXPECT_EQ(tensor.bytes().size(), 24u);
  EXPECT_EQ(tensor.as<float>()[5], 6);
}

TEST(HostTensor, TakesEveryElementType) {
  const bool flags[] = {true, false};
  EXPECT_EQ(HostTensor::from<bool>(flags, {2}).dtype(), DType::bool_);
  const Half halves[] = {to_half(1.5f)};
  EXPECT_EQ(to_float(HostTensor::from<Half>(halves, {}).as<Half>()[0]), 1.5f);
  const long long wide[] = {-1};
  EXPECT_EQ(HostTensor::from<long long>(wide, {1}).as<std::int64_t>()[0], -1);
}

TEST(HostTensor, IsEmptyByDefault) {
  EXPECT_EQ(HostTensor().shape(), Shape{0});
  EXPECT_TRUE(HostTensor().bytes().empty());
  EXPECT_TRUE(HostTensor().as<float>().empty());
}

TEST(HostTensor, AViewKeepsItsOwnerAliveAndSharesItsBytes) {
  auto owner = std::make_shared<std::vector<std::int32_t>>(4, 7);
  const std::weak_ptr watch = owner;
  const auto* data = owner->data();
  {
    const auto bytes = std::as_bytes(std::span(*owner));
    const auto view = HostTensor::view(DType::i32, {2, 2}, bytes, std::move(owner));
    const HostTensor copy = view;
    EXPECT_EQ(copy.as<std::int32_t>().data(), data);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(HostTensor, NamesBothTypesWhenTheWrongOneIsAsked) {
  expect_error<DTypeError>([] { testing::sample(DType::f32, {2}).as<std::int64_t>(); },
                           {"[HostTensor::as] i64", "f32"});
}

TEST(HostTensor, NamesTheSizesWhenTheyDoNotFit) {
  const float values[] = {1, 2, 3};
  expect_error<ShapeError>([&] { HostTensor::from<float>(values, {2, 2}); }, {"12 bytes", "[2, 2]", "16"});
  expect_error<ShapeError>([&] { HostTensor::from<float>(values, {-3}); }, {"[-3]", "negative"});
  expect_error<ShapeError>([&] { HostTensor::make(DType::u8, {1L << 40, 1L << 40}, [](auto) {}); }, {"2^63"});
}

TEST(HostTensor, RefusesAMisalignedView) {
  const std::int64_t values[2] = {};
  const auto bytes = std::as_bytes(std::span(values)).subspan(1, 8);
  expect_error<ValueError>([&] { HostTensor::view(DType::i64, {}, bytes, nullptr); }, {"divisible by 8"});
}

}  // namespace
}  // namespace ferrite
