// Names, promotion (NumPy's table) and element conversion.
#include "ferrite/core/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "ferrite/core/error.hpp"
#include "ferrite/core/scalar.hpp"

namespace ferrite {
namespace {

TEST(DType, NamesRoundTrip) {
  for (DType dtype : all_dtypes) EXPECT_EQ(dtype_from_string(to_string(dtype)), dtype);
  EXPECT_EQ(to_string(DType::bool_), "bool");
}

TEST(DType, UnknownNameListsTheValidOnes) {
  try {
    dtype_from_string("float32");
    FAIL() << "no error";
  } catch (const DTypeError& error) {
    EXPECT_STREQ(
        error.what(),
        "[dtype_from_string] 'float32': must be one of f32, f64, f16, bf16, i32, i64, u8, bool, i8, u16, "
        "u32");
  }
}

TEST(DType, SizesMatchTheTypesBehindThem) {
  for (DType dtype : all_dtypes) {
    visit_any_dtype(dtype, [&]<class T>() {
      EXPECT_EQ(size_of(dtype), sizeof(T));
      EXPECT_EQ(dtype_of<T>, dtype);
    });
  }
}

TEST(DType, EpsilonIsTheGapAboveOne) {
  EXPECT_EQ(epsilon(DType::f32), std::numeric_limits<float>::epsilon());
  EXPECT_EQ(epsilon(DType::f64), std::numeric_limits<double>::epsilon());
  EXPECT_EQ(epsilon(DType::f16), to_float(Half{0x3c01}) - 1.0);
  EXPECT_EQ(epsilon(DType::bf16), to_float(BFloat16{0x3f81}) - 1.0);
  EXPECT_EQ(epsilon(DType::i32), 0);
  EXPECT_EQ(epsilon(DType::bool_), 0);
}

TEST(DType, PromotionFollowsNumPy) {
  constexpr DType f32 = DType::f32, f64 = DType::f64, f16 = DType::f16, bf16 = DType::bf16;
  constexpr DType i32 = DType::i32, i64 = DType::i64, u8 = DType::u8, bool_ = DType::bool_;
  // np.promote_types, rows and columns in the order of arithmetic_dtypes; NumPy has no bf16, it ranks beside
  // f16.
  constexpr DType table[8][8] = {
      {f32, f64, f32, f32, f64, f64, f32, f32}, {f64, f64, f64, f64, f64, f64, f64, f64},
      {f32, f64, f16, f32, f64, f64, f16, f16}, {f32, f64, f32, bf16, f64, f64, bf16, bf16},
      {f64, f64, f64, f64, i32, i64, i32, i32}, {f64, f64, f64, f64, i64, i64, i64, i64},
      {f32, f64, f16, bf16, i32, i64, u8, u8},  {f32, f64, f16, bf16, i32, i64, u8, bool_},
  };
  for (int a = 0; a < 8; ++a) {
    for (int b = 0; b < 8; ++b) {
      EXPECT_EQ(promote(arithmetic_dtypes[a], arithmetic_dtypes[b]), table[a][b])
          << to_string(arithmetic_dtypes[a]) << " with " << to_string(arithmetic_dtypes[b]);
    }
  }
}

TEST(DType, StorageGoesWithItselfAlone) {
  for (DType dtype : storage_dtypes) {
    EXPECT_TRUE(is_storage(dtype) && is_integer(dtype));
    EXPECT_EQ(promote(dtype, dtype), dtype);
    for (DType other : arithmetic_dtypes) {
      EXPECT_FALSE(is_storage(other));
      EXPECT_THROW(promote(dtype, other), DTypeError);
      EXPECT_THROW(promote(other, dtype), DTypeError);
    }
    EXPECT_THROW(visit_dtype(dtype, []<class T>() {}), DTypeError);
  }
}

TEST(DType, ScalarsChangeTheKindButNotTheWidth) {
  for (DType dtype : arithmetic_dtypes) {
    EXPECT_EQ(promote(dtype, Scalar(true)), dtype);
    EXPECT_EQ(promote(dtype, Scalar(2)), dtype == DType::bool_ ? DType::i64 : dtype);
    EXPECT_EQ(promote(dtype, Scalar(2.0f)), float_result(dtype));
  }
  EXPECT_EQ(promote(DType::f16, Scalar(1e300)), DType::f16);
  EXPECT_EQ(promote(DType::i32, Scalar(1.5)), DType::f64);
  EXPECT_EQ(promote(DType::u8, Scalar(1.5)), DType::f32);
}

TEST(DType, ResultTypesOfMeansAndSums) {
  EXPECT_EQ(float_result(DType::bf16), DType::bf16);
  EXPECT_EQ(float_result(DType::i32), DType::f64);
  EXPECT_EQ(float_result(DType::i64), DType::f64);
  EXPECT_EQ(float_result(DType::u8), DType::f32);
  EXPECT_EQ(float_result(DType::bool_), DType::f32);
  EXPECT_EQ(sum_result(DType::f16), DType::f16);
  EXPECT_EQ(sum_result(DType::u8), DType::i64);
  EXPECT_EQ(sum_result(DType::bool_), DType::i64);
}

TEST(Scalar, KeepsLargeIntegersExact) {
  const std::int64_t big = (std::int64_t{1} << 62) + 1;
  EXPECT_EQ(Scalar(big).to<std::int64_t>(), big);
  EXPECT_EQ(Scalar(2.9).to<std::int32_t>(), 2);
  EXPECT_EQ(Scalar(1e10).to<std::int32_t>(), std::numeric_limits<std::int32_t>::max());
  EXPECT_TRUE(Scalar(0.5).to<bool>());
  EXPECT_EQ(Scalar(true).to<float>(), 1.0f);
  EXPECT_EQ(Scalar().kind(), Scalar::Kind::integer);
}

// Value of a binary16 pattern straight from its definition.
double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24)
                           : exponent == 31
                               ? (mantissa ? std::nan("") : std::numeric_limits<double>::infinity())
                               : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Half, EveryPatternConvertsExactlyAndBack) {
  for (int pattern = 0; pattern < 65536; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const float portable = detail::half_to_float_portable(bits);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(portable), std::bit_cast<std::uint32_t>(to_float(Half{bits})))
        << pattern;
    if (std::isnan(half_value(bits))) {
      ASSERT_TRUE(std::isnan(portable));
      ASSERT_TRUE(std::isnan(to_float(to_half(portable))));
      continue;
    }
    ASSERT_EQ(portable, half_value(bits)) << pattern;
    ASSERT_EQ(std::signbit(portable), pattern >= 32768);
    ASSERT_EQ(to_half(portable).bits, bits);
    ASSERT_EQ(detail::float_to_half_portable(portable), bits);
  }
}

// Between two neighbours, the midpoint goes to the even one and anything off the midpoint to the nearer one.
template <class Round>
void expect_nearest_even(float low, std::uint16_t low_bits, float high, Round round) {
  const float middle = static_cast<float>((double{low} + double{high}) / 2);
  const auto high_bits = static_cast<std::uint16_t>(low_bits + 1);
  ASSERT_EQ(round(middle), low_bits % 2 == 0 ? low_bits : high_bits) << low;
  ASSERT_EQ(round(std::nextafter(middle, low)), low_bits) << low;
  ASSERT_EQ(round(std::nextafter(middle, high)), high_bits) << low;
}

TEST(Half, RoundsToNearestEven) {
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = to_float(Half{bits}), high = to_float(Half{static_cast<std::uint16_t>(bits + 1)});
    expect_nearest_even(low, bits, high, [](float x) { return to_half(x).bits; });
    expect_nearest_even(low, bits, high, detail::float_to_half_portable);
  }
  expect_nearest_even(65504, 0x7bff, 65536, detail::float_to_half_portable);  // into infinity
  expect_nearest_even(65504, 0x7bff, 65536, [](float x) { return to_half(x).bits; });
}

TEST(Half, PortableAndNativeConversionAgree) {
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4093) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    ASSERT_EQ(detail::float_to_half_portable(x), to_half(x).bits) << bits;
  }
}

TEST(BFloat16, RoundsToNearestEvenAndKeepsNaN) {
  for (std::uint16_t bits = 0; bits < 0x7f7f; ++bits) {
    const float low = to_float(BFloat16{bits}),
                high = to_float(BFloat16{static_cast<std::uint16_t>(bits + 1)});
    ASSERT_EQ(to_bfloat16(low).bits, bits);
    expect_nearest_even(low, bits, high, [](float x) { return to_bfloat16(x).bits; });
  }
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(to_bfloat16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
  const auto payload_in_low_bits = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(to_float(to_bfloat16(payload_in_low_bits))));
}

template <class To, class From>
void expect_saturating_conversion() {
  constexpr From infinity = std::numeric_limits<From>::infinity();
  EXPECT_EQ(convert<To>(infinity), std::numeric_limits<To>::max());
  EXPECT_EQ(convert<To>(-infinity), std::numeric_limits<To>::min());
  EXPECT_EQ(convert<To>(From(1e25)), std::numeric_limits<To>::max());
  EXPECT_EQ(convert<To>(From(-1e25)), std::numeric_limits<To>::min());
  EXPECT_EQ(convert<To>(std::numeric_limits<From>::quiet_NaN()), To{0});
  EXPECT_EQ(convert<To>(From(2.9)), To{2});
  EXPECT_EQ(convert<To>(From(-0.9)), To{0});
}

TEST(Convert, FloatToIntegerTruncatesAndSaturates) {
  expect_saturating_conversion<std::int32_t, float>();
  expect_saturating_conversion<std::int32_t, double>();
  expect_saturating_conversion<std::int64_t, float>();
  expect_saturating_conversion<std::int64_t, double>();
  expect_saturating_conversion<std::uint8_t, float>();
  expect_saturating_conversion<std::uint8_t, double>();
  EXPECT_EQ(convert<std::uint8_t>(255.9f), 255);
  EXPECT_EQ(convert<std::uint8_t>(256.0f), 255);
  EXPECT_EQ(convert<std::uint8_t>(-3.0f), 0);
  EXPECT_EQ(convert<std::int32_t>(2147483647.5), 2147483647);
  EXPECT_EQ(convert<std::int32_t>(-2147483648.0), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(convert<std::int32_t>(to_half(-7.5f)), -7);
}

TEST(Convert, ToBoolMeansNotZero) {
  EXPECT_TRUE(convert<bool>(0.25f));
  EXPECT_TRUE(convert<bool>(std::nan("")));
  EXPECT_FALSE(convert<bool>(-0.0));
  EXPECT_TRUE(convert<bool>(std::int64_t{1} << 40));
  EXPECT_FALSE(convert<bool>(Half{0x8000}));
  EXPECT_EQ(convert<Half>(true).bits, 0x3c00);
  EXPECT_EQ(convert<BFloat16>(Half{0x3c00}).bits, 0x3f80);
}

}  // namespace
}  // namespace ferrite
