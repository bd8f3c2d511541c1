// infer is the gate: what it lets through, kernels may rely on. Calls that once read out of bounds or gave
// garbage.
#include <gtest/gtest.h>

#include <functional>

#include "ferrite/ops/attention.hpp"
#include "ferrite/ops/batch_norm.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/cross_attention.hpp"
#include "ferrite/ops/optimizer_steps.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/ops/rms_norm.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

constexpr DType f32 = DType::f32, i32 = DType::i32, i64 = DType::i64;

/// The op refuses these inputs, on every road, under its own name.
template <class Op>
void expect_refused(const Op& op, const std::vector<Meta>& metas, std::string name = "") {
  if (name.empty()) name = Op::type_name;
  const auto refused = [&](auto&& call) {
    try {
      call();
      ADD_FAILURE() << name << " took " << metas.size() << " inputs, the first "
                    << (metas.empty() ? "none" : to_string(metas[0]));
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()).rfind("[" + name + "]", 0), 0u) << e.what();
    }
  };
  const auto run = [&](auto b) {
    std::vector<Array> arrays;
    std::vector<const Array*> refs;
    for (const Meta& meta : metas) arrays.push_back(b.allocate(meta));
    for (const Array& array : arrays) refs.push_back(&array);
    refused([&] { evaluate(b, op, Ins(refs.data(), refs.size())); });
  };
  run(Reference());
  run(Cpu());
}

TEST(Gate, NormsCheckParametersAndStatistics) {
  const Meta x{{64, 300}, f32}, row{{64}, f32}, channels{{300}, f32};
  expect_refused(op::LayerNormBackward{}, {x, x, {{3}, f32}, row, row});
  expect_refused(op::LayerNormBackward{}, {x, x, channels, {{1}, f32}, row});
  expect_refused(op::LayerNormBackward{}, {x, x, channels, row, {{64}, i32}});
  expect_refused(op::RmsNormBackward{}, {x, x, channels, {{1}, f32}});
  expect_refused(op::BatchNormBackward{}, {x, x, channels, {{1}, f32}, {{1}, f32}});
  expect_refused(op::LayerNorm{}, {{{2, 0}, f32}, {{0}, f32}, {{0}, f32}});
  expect_refused(op::LayerNorm{-1}, {x, channels, channels});
}

TEST(Gate, CrossEntropyChecksRowsOfEveryInput) {
  const Meta logits{{14000, 3}, f32}, row{{14000}, f32}, targets{{14000}, i64};
  expect_refused(op::SoftmaxCrossEntropyBackward{}, {row, logits, {{2}, i64}, row});
  expect_refused(op::SoftmaxCrossEntropyBackward{}, {row, logits, row, row});
  expect_refused(op::SoftmaxCrossEntropyBackward{}, {row, logits, targets, {{1}, f32}});
}

TEST(Gate, AttentionBackwardChecksWhatTheForwardWould) {
  const Meta q{{1, 1, 3, 4}, f32}, lse{{1, 1, 3}, f32}, whole{{1, 1, 3, 4}, i32};
  expect_refused(op::AttentionBackward{}, {q, {{1, 1, 30, 4}, f32}, q, q, q, lse});
  expect_refused(op::AttentionBackward{}, {q, q, q, q, q, {{1, 1, 1}, f32}});
  expect_refused(op::AttentionBackward{}, {whole, whole, whole, whole, whole, lse});
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const ShapeError& e) {
    return e.what();
  }
  return "no ShapeError";
}

TEST(Gate, CrossAttentionChecksRanksRowsAndHeads) {
  const Meta q{{2, 5, 4, 3}, f32}, k{{2, 6, 4, 3}, f32}, lse{{2, 4, 5}, f32}, flat{{2, 5, 12}, f32};
  const Meta three_heads{{2, 6, 3, 3}, f32}, other_rows{{2, 7, 4, 3}, f32};
  const std::pair<std::vector<Meta>, const char*> refused[] = {
      {{three_heads, three_heads}, "q [2, 5, 4, 3] and k [2, 6, 3, 3]: the 3 heads"},
      {{k, other_rows}, "need [N, T, H, D], [N, S, K, D] and [N, S, K, E]"},
      {{flat, k}, "k [2, 5, 12]"}};
  for (const auto& [kv, said] : refused) {
    const std::vector<Meta> forward{q, kv[0], kv[1]}, backward{q, q, kv[0], kv[1], q, lse};
    expect_refused(op::CrossAttention{}, forward);
    expect_refused(op::CrossAttentionBackward{}, backward);
    // Shapes are told as they were given, not as attention takes them.
    for (const std::string& message : {message_of([&] { op::CrossAttention{}.infer(forward); }),
                                       message_of([&] { op::CrossAttentionBackward{}.infer(backward); })})
      EXPECT_NE(message.find(said), std::string::npos) << message;
  }
  expect_refused(op::CrossAttention{}, {q, k, k, {{5, 4}, f32}});
  expect_refused(op::CrossAttentionBackward{}, {flat, q, k, k, q, lse});
  expect_refused(op::CrossAttentionBackward{}, {q, q, k, k, flat, lse});
  expect_refused(op::CrossAttentionBackward{}, {q, q, k, k, q, {{2, 5, 4}, f32}});
}

TEST(Gate, OtherGradientsCheckTheirInputs) {
  const Meta x{{3}, f32};
  expect_refused(op::UnaryBackward{op::UnaryFn::isnan}, {x, x});
  expect_refused(op::UnaryBackward{op::UnaryFn::floor}, {x, x});
  expect_refused(op::PointwiseLossBackward{op::LossFn::huber, -1}, {x, x, x});
  expect_refused(op::SoftmaxBackward{}, {{{2, 3}, i32}, {{2, 3}, i32}});
  expect_refused(op::MaxPool2dBackward{{1, 1, 4, 4}}, {{{1, 1, 2, 2}, f32}, {{1, 1, 2, 2}, f32}});
  expect_refused(op::MaxPool2dBackward{{1, 1, 4, 4}}, {{{64, 8, 2, 2}, f32}, {{64, 8, 2, 2}, i64}});
  expect_refused(op::EmbeddingBackward{5}, {{{2, 3}, f32}, {{2}, f32}});
  expect_refused(op::GlobalNorm{}, {});
  expect_refused(op::Sgd{}, {x, {{3}, i32}, x, {{}, f32}});
}

TEST(Gate, SizesDoNotWrapAround) {
  constexpr std::int64_t huge = std::int64_t{1} << 62;
  expect_refused(op::Windows{0, 5, 1, huge}, {{{30}, f32}});
  expect_refused(op::Fold{0, 9, huge, 1}, {{{5, 2}, f32}});
  expect_refused(op::Conv2d{op::ConvGeometry{{1, 1}, {0, 0}, {huge, 1}, 1}},
                 {{{1, 2, 4, 4}, f32}, {{3, 2, 5, 3}, f32}});
  expect_refused(op::Slice{0, 1, 5, huge}, {{{3}, f32}});
  expect_refused(op::Slice{0, INT64_MIN, 2, 1}, {{{3}, f32}});
  expect_refused(op::Slice{0, 1, INT64_MAX, INT64_MIN}, {{{3}, f32}});
  expect_refused(op::Permute{{(std::int64_t{1} << 32) + 1, 0}}, {{{2, 3}, f32}});
  expect_refused(op::Expand{{std::int64_t{1} << 40, std::int64_t{1} << 40}}, {{{1, 1}, f32}});
  expect_refused(op::OneHot{huge}, {{{2}, i64}});
  expect_refused(op::Pad{{huge}, {huge}, {0}}, {{{3}, f32}});
  expect_refused(op::Reshape{{std::int64_t{1} << 32, std::int64_t{1} << 32}}, {{{0, 3}, f32}});
}

TEST(Gate, AStepBeyondTheAxisTakesOneElement) {
  EXPECT_EQ(op::resolve_slice(0, 10, 2, {}, INT64_MAX).count, 1);
  EXPECT_EQ(op::resolve_slice(0, 10, 2, {}, INT64_MIN).count, 1);
  EXPECT_EQ(op::resolve_slice(0, 10, 2, {}, 3).count, 3);
  EXPECT_EQ(op::resolve_slice(0, 10, {}, {}, -3).count, 4);
}

TEST(Gate, AttributesAndArityAreChecked) {
  expect_refused(op::Random{op::RandomFn::integer, {3}, DType::u8, 0, 0, -5, 1000}, {}, "randint");
  expect_refused(op::Random{op::RandomFn::integer, {3}, i64, 0, 0, -1e30, 1e30}, {}, "randint");
  expect_refused(op::Reshape{{3}}, {});
  expect_refused(op::Slice{0, 0, 1, 1}, {{{3}, f32}, {{3}, f32}});
}

/// What only a part finds is reported by the op that was called.
TEST(Gate, ErrorsOfPartsNameTheWhole) {
  Reference b;
  const auto weight = zeros(b, {5, 3});
  try {
    embedding(weight, from_vector(b, std::vector<std::int64_t>{7}));
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_EQ(std::string(e.what()).rfind("[embedding] index 7", 0), 0u) << e.what();
  }
}

/// An op whose composition forgets what its shape rule says.
struct Careless {
  static constexpr std::string_view type_name = "careless";
  bool other_shape = false;
  Metas infer(MetaSpan in) const { return {Meta{in[0].shape, DType::f16}}; }
  static void attributes(auto& self, auto&& visit) { visit("other_shape", self.other_shape); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {other_shape ? sum(in[0]) : in[0] * 0.5};
  }
};

TEST(Gate, CompositionsKeepTheirShapeRule) {
  Cpu b;
  EXPECT_EQ(eval(Careless{}, ones(b, {2}, DType::f64)).dtype(), DType::f16);
  EXPECT_THROW(eval(Careless{true}, ones(b, {2})), BackendError);
}

}  // namespace
}  // namespace ferrite
