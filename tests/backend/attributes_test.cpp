// Attributes survive the way through JSON, and bad JSON says what is wrong with it.
#include <gtest/gtest.h>

#include <limits>

#include "ferrite/ops/all.hpp"
#include "ferrite/ops/attributes.hpp"
#include "messages.hpp"

namespace ferrite {
namespace {

using testing::message_of;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Changes every attribute away from its default, so that a field that is not written shows.
struct Scramble {
  int count = 0;
  void operator()(std::string_view, bool& v) { v = !v; }
  void operator()(std::string_view, double& v) { v = v / 3 + 0.1 * ++count; }
  void operator()(std::string_view, int& v) { v -= ++count; }
  void operator()(std::string_view, std::int64_t& v) { v += (std::int64_t{1} << 40) + ++count; }
  void operator()(std::string_view, std::uint64_t& v) {
    v = ~std::uint64_t{0} - static_cast<std::uint64_t>(++count);
  }
  void operator()(std::string_view, Shape& v) { v = {++count, -1, std::int64_t{1} << 35}; }
  void operator()(std::string_view, DType& v) { v = DType::bf16; }
  void operator()(std::string_view, std::optional<DType>& v) { v = DType::bf16; }
  void operator()(std::string_view, Scalar& v) { v = 0.1 + ++count; }
  template <class E>
  requires std::is_enum_v<E>
  void operator()(std::string_view, E& v) { v = static_cast<E>(count_of(E{}) - 1); }
};

/// Fails unless every attribute of two ops is equal.
template <class Op>
void expect_equal(const Op& a, const Op& b) {
  std::vector<std::string> texts;
  const auto collect = [&](std::string_view key, const auto& value) {
    detail::AttributeWriter one;
    one(key, value);
    texts.push_back(one.text());
  };
  Op::attributes(a, collect);
  const std::size_t n = texts.size();
  Op::attributes(b, collect);
  ASSERT_EQ(texts.size(), 2 * n);
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(texts[i], texts[n + i]) << Op::type_name;
}

template <class Op>
void check_round_trip() {
  Op op;
  Op::attributes(op, Scramble{});
  const std::string text = format_attributes(op);
  expect_equal(parse_attributes<Op>(text), op);
  EXPECT_EQ(format_attributes(parse_attributes<Op>(text)), text);
  const Op plain{};
  if (text != "{}") {
    EXPECT_NE(text, format_attributes(plain)) << Op::type_name;
  }
  expect_equal(parse_attributes<Op>(format_attributes(plain)), plain);
}

TEST(Attributes, OfEveryOpSurviveTheWayThroughText) {
  op::Core::for_each([]<class Op>() {
    if constexpr (!std::same_as<Op, op::Launch>)
      check_round_trip<Op>();  // tests/kernel has the text of kernels
  });
}

TEST(Attributes, AreWrittenAsReadableJson) {
  EXPECT_EQ(format_attributes(op::Softmax{2}), R"({"axis":2})");
  EXPECT_EQ(format_attributes(op::Matmul{}), "{}");
  EXPECT_EQ(format_attributes(op::Matmul{DType::f32}), R"({"at_least":"f32"})");
  EXPECT_EQ(format_attributes(op::Fill{{2, 3}, DType::bf16, true}),
            R"({"shape":[2,3],"dtype":"bf16","value":true})");
  EXPECT_EQ(format_attributes(op::Reduce{op::ReduceFn::sum, {}, false}),
            R"({"fn":"sum","axes":[],"keepdim":false})");
  EXPECT_EQ(format_attributes(op::Linear{Activation::gelu}), R"({"activation":"gelu"})");
}

TEST(Attributes, KeepAScalarIntegerOrReal) {
  const op::Binary integer{op::BinaryFn::mul, op::ScalarSide::right, 2},
      real{op::BinaryFn::mul, op::ScalarSide::right, 2.0};
  EXPECT_EQ(format_attributes(integer), R"({"fn":"mul","side":"right","scalar":2})");
  EXPECT_EQ(format_attributes(real), R"({"fn":"mul","side":"right","scalar":2.0})");
  EXPECT_EQ(parse_attributes<op::Binary>(format_attributes(integer)).scalar.kind(), Scalar::Kind::integer);
  EXPECT_EQ(parse_attributes<op::Binary>(format_attributes(real)).scalar.kind(), Scalar::Kind::real);
  const op::Binary exact{op::BinaryFn::add, op::ScalarSide::left, std::numeric_limits<std::int64_t>::min()};
  EXPECT_EQ(parse_attributes<op::Binary>(format_attributes(exact)).scalar, exact.scalar);
}

TEST(Attributes, WriteWhatJsonLacksAsStrings) {
  const op::Statistic norm{op::StatisticFn::norm, {0}, false, infinity};
  EXPECT_EQ(format_attributes(norm), R"({"fn":"norm","axes":[0],"keepdim":false,"parameter":"inf"})");
  EXPECT_EQ(parse_attributes<op::Statistic>(format_attributes(norm)).parameter, infinity);
  const op::Where masked{op::ScalarSide::left, -infinity};
  EXPECT_EQ(parse_attributes<op::Where>(format_attributes(masked)).scalar, masked.scalar);
  const op::Fill nan{{}, DType::f32, std::nan("")};
  EXPECT_TRUE(std::isnan(parse_attributes<op::Fill>(format_attributes(nan)).value.to_double()));
}

TEST(Attributes, GiveDoublesBackToTheLastBit) {
  for (const double eps : {0.1, 1e-5, 5e-324, 1.7976931348623157e308, -0.0, 1.0 / 3}) {
    const double back = parse_attributes<op::LayerNorm>(format_attributes(op::LayerNorm{eps})).eps;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(back), std::bit_cast<std::uint64_t>(eps)) << eps;
  }
}

TEST(Attributes, RejectUnknownAndMissingKeysAndListTheValidOnes) {
  EXPECT_EQ(message_of<ParseError>(
                [] { parse_attributes<op::Slice>(R"({"axis":0,"start":0,"count":1,"stride":1})"); }),
            "[slice] unknown attribute 'stride': the attributes are axis, start, count, step");
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<op::Slice>(R"({"axis":0})"); }),
            "[slice] attribute 'start' is missing: the attributes are axis, start, count, step");
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<op::Matmul>(R"({"alpha":1})"); }),
            "[matmul] unknown attribute 'alpha': the attributes are at_least");
}

TEST(Attributes, OfEarlierVersionsMeanTheDefaultOfWhatCameLater) {
  const auto attention = parse_attributes<op::Attention>(R"({"causal":true,"scale":0.5})");
  EXPECT_TRUE(attention.causal);
  EXPECT_EQ(attention.window, 0);
  EXPECT_EQ(parse_attributes<op::Attention>(R"({"causal":true,"scale":0.5,"window":3})").window, 3);
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<op::Attention>(R"({"causal":true})"); }),
            "[attention] attribute 'scale' is missing: the attributes are causal, scale, window");
}

TEST(Attributes, RejectValuesOfTheWrongKind) {
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<op::Softmax>(R"({"axis":"last"})"); }),
            "[softmax] attribute 'axis' is \"last\": needs an integer from -2147483648 to 2147483647");
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<op::Softmax>(R"({"axis":4294967296})"); }),
            "[softmax] attribute 'axis' is 4294967296: needs an integer from -2147483648 to 2147483647");
  EXPECT_EQ(
      message_of<ParseError>([] { parse_attributes<op::Copy>(R"({"dtype":"float"})"); }),
      "[copy] attribute 'dtype' is \"float\": needs one of f32, f64, f16, bf16, i32, i64, u8, bool, i8, "
      "u16, u32");
  EXPECT_EQ(
      message_of<ParseError>([] { parse_attributes<op::ArgReduce>(R"({"fn":7,"axis":0,"keepdim":false})"); }),
      "[argreduce] attribute 'fn' is 7: needs one of argmax, argmin");
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<op::Reshape>(R"({"shape":[1,2,3,4,5,6,7,8,9]})"); }),
            "[reshape] attribute 'shape' is [1,2,3,4,5,6,7,8,9]: needs a list of at most 8 integers");
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<op::Reshape>(R"({"shape":[1.5]})"); }),
            "[reshape] attribute 'shape' is [1.5]: needs a list of integers");
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<op::LayerNorm>(R"({"eps":null})"); }),
            R"([layer_norm] attribute 'eps' is null: needs a number, "inf", "-inf" or "nan")");
  EXPECT_EQ(
      message_of<ParseError>([] { parse_attributes<op::Dropout>(R"({"p":0.5,"seed":-1,"stream":0})"); }),
      "[dropout] attribute 'seed' is -1: needs an integer from 0 to 2^64 - 1");
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<op::Triangle>(R"({"lower":1,"diagonal":0})"); }),
            "[triangle] attribute 'lower' is 1: needs true or false");
}

TEST(Attributes, RejectWhatIsNoJsonObject) {
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<op::Softmax>("[1]"); }),
            "[softmax] attributes are array: needs a JSON object");
  EXPECT_NE(message_of<ParseError>([] {
              parse_attributes<op::Softmax>("{\"axis\":");
            }).find("[softmax] attributes are not JSON"),
            std::string::npos);
  EXPECT_NE(message_of<ParseError>([] {
              parse_attributes<op::Softmax>("\xff");
            }).find("[softmax] attributes are not JSON"),
            std::string::npos);
}

enum class Flavour : std::uint8_t { sweet, sour };
std::string_view to_string(Flavour f) { return f == Flavour::sweet ? "sweet" : "sour"; }
constexpr int count_of(Flavour) { return 2; }

struct UsersOp {
  static constexpr std::string_view type_name = "users_op";
  Flavour flavour = Flavour::sweet;
  static void attributes(auto& self, auto&& visit) { visit("flavour", self.flavour); }
};

TEST(Attributes, OfAUsersOpWorkAlike) {
  EXPECT_EQ(format_attributes(UsersOp{Flavour::sour}), R"({"flavour":"sour"})");
  EXPECT_EQ(parse_attributes<UsersOp>(R"({"flavour":"sour"})").flavour, Flavour::sour);
  EXPECT_EQ(message_of<ParseError>([] { parse_attributes<UsersOp>(R"({"flavour":"salty"})"); }),
            "[users_op] attribute 'flavour' is \"salty\": needs one of sweet, sour");
}

}  // namespace
}  // namespace ferrite
