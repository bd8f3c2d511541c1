// Parity catches wrong kernels and names them, and lets right ones pass however they round.
#include "ferrite/decorators/parity.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/io/safetensors.hpp"
#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/layer_norm.hpp"
#include "ferrite/ops/optimizer_steps.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/tensor/tensor_data.hpp"
#include "messages.hpp"

namespace ferrite {
namespace {

using testing::expect_contains;
using testing::message_of;

/// Reference with kernels of its own to get wrong.
struct Suspect : Reference {
  std::string describe() const { return "suspect (under test)"; }

  /// What the op should give, copied to `out`.
  template <class Op>
  void run_right(const Op& op, Ins in, Outs out, Accumulate mask = Accumulate::none) {
    Reference& reference = *this;
    auto results = evaluate(reference, op, in);
    for (std::size_t k = 0; k < out.size(); ++k) {
      const Array* operands[] = {&results[k], &out[k]};
      if (accumulates(mask, k))
        run(reference, op::Binary{op::BinaryFn::add}, Ins(operands, 2), out.subspan(k, 1));
      else
        run(reference, op::Copy{out[k].dtype()}, Ins(operands, 1), out.subspan(k, 1));
    }
  }
};

struct WrongSoftmax : Suspect {
  friend void run(WrongSoftmax& b, const op::Softmax& op, Ins in, Outs out) {
    b.run_right(op, in, out);
    out[0].data<float>()[5] *= 1.01f;
  }
};

struct WrongSoftmaxBackward : Suspect {
  friend void run(WrongSoftmaxBackward& b, const op::SoftmaxBackward& op, Ins in, Outs out) {
    b.run_right(op, in, out);
    out[0].data<float>()[2] = -out[0].data<float>()[2];
  }
};

/// Writes where it should add.
struct ForgetsToAccumulate : Suspect {
  friend void run(ForgetsToAccumulate& b, const op::Matmul& op, Ins in, Outs out) {
    b.run_right(op, in, out);
  }
  friend void run(ForgetsToAccumulate& b, const op::Matmul& op, Ins in, Outs out, Accumulate) {
    b.run_right(op, in, out);
  }
};

struct Accumulates : Suspect {
  friend void run(Accumulates& b, const op::Matmul& op, Ins in, Outs out) { b.run_right(op, in, out); }
  friend void run(Accumulates& b, const op::Matmul& op, Ins in, Outs out, Accumulate mask) {
    b.run_right(op, in, out, mask);
  }
};

/// A folder that goes when the test ends.
struct Folder {
  std::filesystem::path path;
  Folder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path = std::filesystem::temp_directory_path() / ("ferrite-parity-" + std::string(test->name()));
    std::filesystem::remove_all(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

template <class B>
Tensor<B> sample(B& b, const Shape& shape, std::uint64_t seed = 1, DType dtype = DType::f32) {
  Rng rng(seed);
  return randn(b, shape, rng, 0, 1, dtype);
}

TEST(Parity, NamesAWrongFusedForward) {
  Folder folder;
  Parity<WrongSoftmax, Reference> b(ParityConfig{}.with_directory(folder.path));
  const auto x = sample(b, {2, 4});
  const std::string message = message_of<BackendError>([&] { softmax(x, 1); });
  expect_contains(
      message,
      "[softmax] WrongSoftmax and reference differ: f32[2, 4] -> f32[2, 4], attributes {\"axis\":1}");
  expect_contains(message, "output 0 at [1, 1]: WrongSoftmax has ");
  expect_contains(message, "1 of 8 elements differ");
  expect_contains(message, "reference is right");
  const std::string how =
      "replay: " + (folder.path / "softmax-1.safetensors").string() +
      " by a program whose Replayer has softmax on WrongSoftmax (ferrite/stacks/replay.hpp)";
  EXPECT_EQ(message.substr(message.size() - how.size()), how);
}

TEST(Parity, NamesAWrongFusedBackwardUnderAutodiff) {
  Folder folder;
  Autodiff<Parity<WrongSoftmaxBackward, Reference>> b(ParityConfig{}.with_directory(folder.path));
  const auto x = parameter(sample(b, {2, 4}), "x");
  const auto loss = sum(square(softmax(x)));
  const std::string message = message_of<BackendError>([&] { loss.backward(); });
  expect_contains(message, "[softmax_backward] WrongSoftmaxBackward and reference differ");
  expect_contains(message, "output 0 at [0, 2]");
  EXPECT_TRUE(std::filesystem::exists(folder.path / "softmax_backward-1.safetensors"));
}

TEST(Parity, NamesAKernelThatForgetsToAccumulate) {
  Folder folder;
  Autodiff<Parity<ForgetsToAccumulate, Reference>> b(ParityConfig{}.with_directory(folder.path));
  const auto x = sample(b, {3, 4}), w = parameter(sample(b, {4, 2}, 2), "w");
  const auto loss = sum(matmul(x, w) + matmul(x * 2, w));  // two contributions to the gradient of w
  const std::string message = message_of<BackendError>([&] { loss.backward(); });
  expect_contains(
      message,
      "[matmul] ForgetsToAccumulate and reference differ: f32[4, 3], f32[3, 2] -> f32[4, 2] (accumulating)");
  const SafeTensors file = read_safetensors(folder.path / "matmul-1.safetensors");
  EXPECT_EQ(file.metadata.at("accumulate"), "1");
  EXPECT_EQ(file.tensors.at("before0").shape(), Shape({4, 2}));
}

TEST(Parity, PassesAKernelThatAccumulates) {
  Autodiff<Parity<Accumulates, Reference>> b;
  const auto x = sample(b, {3, 4}), w = parameter(sample(b, {4, 2}, 2), "w");
  const auto grads = sum(matmul(x, w) + matmul(x * 2, w)).backward();
  Autodiff<Reference> plain;
  const auto y = sample(plain, {3, 4}), v = parameter(sample(plain, {4, 2}, 2), "v");
  EXPECT_EQ(grads.of(w).to_vector(), sum(matmul(y, v) + matmul(y * 2, v)).backward().of(v).to_vector());
}

TEST(Parity, HasExactlyTheKernelsOfTheInnerBackend) {
  using Checked = Parity<WrongSoftmax, Reference>;
  static_assert(Backend<Checked>);
  static_assert(Runs<Checked, op::Softmax>);
  static_assert(!Runs<Checked, op::LayerNorm>);
  static_assert(!RunsAccumulating<Checked, op::Matmul>);
  static_assert(RunsAccumulating<Parity<Accumulates, Reference>, op::Matmul>);
  static_assert(HandleBackend<Checked>);
}

TEST(Parity, WritesAllThatAReplayNeeds) {
  Folder folder;
  Parity<WrongSoftmax, Reference> b(ParityConfig{}.with_directory(folder.path));
  const auto x = sample(b, {4, 2});
  message_of<BackendError>([&] { softmax(transpose(x, 0, 1), 1); });
  const SafeTensors file = read_safetensors(folder.path / "softmax-1.safetensors");
  EXPECT_EQ(file.metadata.at("op"), "softmax");
  EXPECT_EQ(file.metadata.at("attributes"), R"({"axis":1})");
  EXPECT_EQ(file.metadata.at("backend"), "WrongSoftmax");
  EXPECT_EQ(file.metadata.at("in0.strides"), "[1,2]");
  EXPECT_FALSE(file.metadata.at("ferrite").empty());
  const auto values = [&](const char* name) {
    const auto span = file.tensors.at(name).as<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  Reference reference;
  EXPECT_EQ(values("in0"), transpose(x, 0, 1).to_vector());
  const std::vector<float> right = softmax(transpose(to(reference, x), 0, 1), 1).to_vector();
  EXPECT_EQ(values("out0"), right);
  std::vector<float> wrong = right;
  wrong[5] *= 1.01f;
  EXPECT_EQ(values("got0"), wrong);
}

TEST(Parity, ReportsTheMismatchEvenIfNoFileCanBeWritten) {
  Folder folder;
  std::filesystem::create_directories(folder.path);
  const auto blocked = folder.path / "file";
  std::ofstream(blocked) << "not a folder";
  Parity<WrongSoftmax, Reference> b(ParityConfig{}.with_directory(blocked));
  const auto x = sample(b, {2, 4});
  const std::string message = message_of<BackendError>([&] { softmax(x); });
  expect_contains(message, "[softmax] WrongSoftmax and reference differ");
  expect_contains(message, "the inputs were not written");
}

TEST(Parity, CollectsReportsUpToALimitWhereItDoesNotThrow) {
  Folder folder;
  Parity<WrongSoftmax, Reference> b(ParityConfig{}.with_directory(folder.path).with_throw(false));
  const auto x = sample(b, {2, 4});
  for (int i = 0; i < 120; ++i) softmax(x);
  ASSERT_EQ(b.reports().size(), ParityMonitor::max_reports);
  const ParityReport report = b.reports()[0];
  EXPECT_EQ(report.op, "softmax");
  EXPECT_EQ(report.place, Shape({1, 1}));
  EXPECT_LT(report.reference_error, report.backend_error);
  EXPECT_EQ(report.inputs[0], (Meta{{2, 4}, DType::f32}));
  expect_contains(b.table(), "softmax ");
  expect_contains(b.table(), " 120 ");
  b.reset();
  EXPECT_TRUE(b.reports().empty());
}

TEST(Parity, WritesNoMoreFilesThanAllowedAndSaysHowManyAreMissing) {
  const auto files = [](const std::filesystem::path& folder) {
    std::size_t count = 0;
    if (std::filesystem::exists(folder))
      for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder)) ++count;
    return count;
  };
  const auto run = [](const ParityConfig& config) {
    auto b = std::make_unique<Parity<WrongSoftmax, Reference>>(config.with_throw(false));
    const auto x = sample(*b, {2, 4});
    for (int i = 0; i < 120; ++i) softmax(x);
    return b;
  };
  Folder folder;
  const ParityConfig config = ParityConfig{}.with_directory(folder.path);
  const auto usual = run(config);
  EXPECT_EQ(files(folder.path), 20u);
  EXPECT_EQ(usual->files_left_out(), 100);
  EXPECT_TRUE(usual->reports()[19].file_error.empty());
  expect_contains(usual->reports()[20].message(), "the inputs were not written: there are enough files");
  expect_contains(usual->table(), "replay files: 20 written to " + folder.path.string() + ", 100 left out");
  std::filesystem::remove_all(folder.path);
  EXPECT_EQ(run(config.with_files(3, 1 << 20))->files_left_out(), 117);
  EXPECT_EQ(files(folder.path), 3u);
  std::filesystem::remove_all(folder.path);
  run(config.with_files(50, 100));  // three tensors of 32 bytes each: the second file fills it
  EXPECT_EQ(files(folder.path), 2u);
  std::filesystem::remove_all(folder.path);
  run(config.with_files(0, 0));
  EXPECT_EQ(files(folder.path), 0u);
  EXPECT_THROW(config.with_files(-1, 0), ValueError);
}

TEST(Parity, ComparesEveryNthCallOfEachOp) {
  Folder folder;
  Parity<WrongSoftmax, Reference> b(
      ParityConfig{}.with_directory(folder.path).with_throw(false).with_every(3));
  const auto x = sample(b, {2, 4});
  for (int i = 0; i < 7; ++i) softmax(exp(x));
  EXPECT_EQ(b.reports().size(), 3u);  // calls 1, 4 and 7
  EXPECT_THROW(ParityConfig{}.with_every(0), ValueError);
}

/// A right optimiser in place, and one that reads the parameters after it wrote them.
struct InPlace : Suspect {
  bool late = false;
  explicit InPlace(bool reads_late = false) : late(reads_late) {}
  friend void run(InPlace& b, const op::Sgd& op, Ins in, Outs out) {
    if (b.late) {
      Array copy = b.allocate(out[0].meta());
      const Array* source[] = {&in[1]};  // the gradient lands on the parameter first
      run(static_cast<Reference&>(b), op::Binary{op::BinaryFn::mul, op::ScalarSide::right, 0.5},
          Ins(source, 1), out.first(1));
    }
    b.run_right(op, in, out);
  }
};

template <class B>
void sgd_step(B& b) {
  Tensor<B> p = sample(b, {5}), g = sample(b, {5}, 2), v = zeros(b, {5}), clip = ones(b, {});
  const Array* in[] = {&p.primitive(), &g.primitive(), &v.primitive(), &clip.primitive()};
  Array out[] = {p.primitive(), v.primitive()};
  evaluate_in_place(b, op::Sgd{0.1, 0.9, false, 0.01}, Ins(in, 4), Outs(out, 2));
}

TEST(Parity, ComparesUpdatesInPlaceWithWhatWasThereBefore) {
  Folder folder;
  const ParityConfig config = ParityConfig{}.with_directory(folder.path);
  Parity<InPlace, Reference> right(config, false), wrong(config, true);
  sgd_step(right);
  expect_contains(message_of<BackendError>([&] { sgd_step(wrong); }), "[sgd] InPlace and reference differ");
}

/// Takes an operand as dense whatever its strides.
struct IgnoresStrides : Suspect {
  friend void run(IgnoresStrides& b, const op::Unary& op, Ins in, Outs out) {
    const Array dense = in[0].with_layout(Layout::contiguous(in[0].shape()));
    const Array* operands[] = {&dense};
    run(static_cast<Reference&>(b), op, Ins(operands, 1), out);
  }
};

TEST(Parity, GivesTheReferenceTheSameBytesAndStrides) {
  Folder folder;
  Parity<IgnoresStrides, Reference> b(ParityConfig{}.with_directory(folder.path));
  const auto x = sample(b, {3, 4});
  exp(x);
  expect_contains(message_of<BackendError>([&] { exp(flip(slice(transpose(x, 0, 1), 0, 1, 4, 2), {1})); }),
                  "[exp] IgnoresStrides and reference differ");
}

TEST(Parity, AcceptsEmptyScalarAndBroadcastOperands) {
  Parity<Suspect, Reference> b;
  EXPECT_EQ(exp(zeros(b, {0, 3})).numel(), 0);
  EXPECT_EQ(exp(zeros(b, {})).item(), 1);
  EXPECT_EQ(exp(expand(zeros(b, {1, 2}), {3, 2})).to_vector(), std::vector<float>(6, 1));
}

/// Leaves the last element of a row out of the sum, as a loop with a bad tail does.
struct BadTail : Suspect {
  friend void run(BadTail& b, const op::Softmax& op, Ins in, Outs out) {
    b.run_right(op, in, out);
    const std::int64_t n = out[0].shape().back();
    for (std::int64_t i = 0; i < out[0].shape().numel(); i += n) {
      float* row = out[0].data<float>() + i;
      const float rest = 1 - row[n - 1];
      for (std::int64_t j = 0; j < n; ++j) row[j] /= rest;
    }
  }
};

TEST(Parity, SeesOneElementOfAThousandLeftOut) {
  Folder folder;
  Parity<BadTail, Reference> b(ParityConfig{}.with_directory(folder.path));
  const auto x = sample(b, {2, 1000}) * 0.1;
  expect_contains(message_of<BackendError>([&] { softmax(x); }), "[softmax] BadTail and reference differ");
}

/// Sums in f32, front to back: right, but not the bits of a sum in f64.
struct PlainSum : Suspect {
  friend void run(PlainSum& b, const op::Reduce& op, Ins in, Outs out) {
    if (op.fn != op::ReduceFn::sum || in[0].shape().rank() != 1)
      return run(static_cast<Reference&>(b), op, in, out);
    float total = 0;
    for (std::int64_t i = 0; i < in[0].shape().numel(); ++i) total += in[0].data<float>()[i];
    *out[0].data<float>() = total;
  }
};

TEST(Parity, LetsASumRoundInItsOwnOrderEvenWhereItCancels) {
  Parity<PlainSum, Reference> b;
  const auto x = sample(b, {500}) * 100;
  const auto zero = cat<Parity<PlainSum, Reference>>({x, -x, from_vector(b, std::vector<float>{1e-3f})});
  sum(x);
  const float total = sum(zero).item();
  EXPECT_NE(total, 1e-3f);  // it did round
  EXPECT_NEAR(total, 1e-3f, 1e-1f);
}

/// Statistics in f32 and one rounding, as a fused 16-bit kernel does it.
struct FusedSoftmax : Suspect {
  friend void run(FusedSoftmax& b, const op::Softmax& op, Ins in, Outs out) {
    Reference& reference = b;
    const Tensor<Reference> wide = cast(Tensor<Reference>(reference, in[0]), DType::f32);
    const Tensor<Reference> y = cast(eval(op, wide), out[0].dtype());
    const Array* source[] = {&y.primitive()};
    run(reference, op::Copy{out[0].dtype()}, Ins(source, 1), out);
  }
};

TEST(Parity, WidensSixteenBitInputsOfCompositions) {
  Parity<FusedSoftmax, Reference> b;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const auto x = sample(b, {4, 300}, 3, dtype);
    softmax(x);
  }
  // The fused kernel is the widened composition rounded once, so there is no difference at all.
  expect_contains(b.table(), "softmax          2          2          0              0\n");
}

/// Multiplies with an error of a few ulp, always upwards.
struct Drifts : Suspect {
  friend void run(Drifts& b, const op::Binary& op, Ins in, Outs out) {
    run(static_cast<Reference&>(b), op, in, out);
    if (op.fn != op::BinaryFn::mul) return;
    for (std::int64_t i = 0; i < out[0].shape().numel(); ++i) out[0].data<float>()[i] *= 1 + 4e-7f;
  }
};

template <class B>
std::vector<float> chain(B& b) {
  auto x = sample(b, {16});
  for (int i = 0; i < 20; ++i) x = x * 1.5;
  return x.to_vector();
}

TEST(Parity, ResyncsBeforeEachOpUnlessToldToRunFree) {
  Folder folder;
  const ParityConfig config = ParityConfig{}.with_directory(folder.path);
  Parity<Drifts, Reference> resync(config);
  EXPECT_EQ(chain(resync), chain(resync));

  Parity<Drifts, Reference> free(config.with_mode(ParityMode::free_running));
  chain(free);  // shows drift, does not throw
  ASSERT_FALSE(free.reports().empty());
  EXPECT_GT(free.reports().back().comparison.ratio, 1.5 * free.reports().front().comparison.ratio);

  Parity<Drifts, Reference> strict(config.with_mode(ParityMode::free_running).with_throw(true));
  EXPECT_THROW(chain(strict), BackendError);
}

TEST(Parity, RunningFreeFollowsViewsUpdatesAndAccumulation) {
  Folder folder;
  Autodiff<Parity<Accumulates, Reference>> b(ParityConfig{}
                                                 .with_directory(folder.path)
                                                 .with_mode(ParityMode::free_running)
                                                 .with_every(2)
                                                 .with_throw(true));
  auto& inner = b.inner();
  Tensor<Parity<Accumulates, Reference>> w = sample(inner, {4, 2}, 2);
  const auto x = sample(b, {3, 4});
  for (int step = 0; step < 4; ++step) {
    const auto leaf = parameter(lift(b, w), "w");
    const auto loss = sum(square(matmul(x, leaf)) + matmul(flip(x, {0}), leaf));
    const auto g = loss.backward().of(leaf);
    const auto v = zeros(inner, {4, 2}), clip = ones(inner, {});
    const Array* in[] = {&w.primitive(), &g.primitive(), &v.primitive(), &clip.primitive()};
    Array out[] = {w.primitive(), v.primitive()};
    evaluate_in_place(inner, op::Sgd{0.01, 0.9, false, 0}, Ins(in, 4), Outs(out, 2));
  }
  EXPECT_TRUE(inner.reports().empty());
  expect_contains(inner.table(), "matmul");
}

struct WrongArgmax : Suspect {
  bool out_of_ties = false;
  explicit WrongArgmax(bool wrong) : out_of_ties(wrong) {}
  friend void run(WrongArgmax& b, const op::ArgReduce&, Ins, Outs out) {
    *out[0].data<std::int64_t>() = b.out_of_ties ? 0 : 2;
  }
};

TEST(Parity, ComparesPlacesByTheValueThere) {
  Folder folder;
  const ParityConfig config = ParityConfig{}.with_directory(folder.path);
  Parity<WrongArgmax, Reference> tie(config, false), wrong(config, true);
  const std::vector<float> values{1, 3, 3};
  EXPECT_EQ(argmax(from_vector(tie, values)).item<int>(), 2);
  const auto x = from_vector(wrong, values);
  expect_contains(message_of<BackendError>([&] { argmax(x); }), "[argmax] WrongArgmax and reference differ");
}

struct WrongRandom : Suspect {
  friend void run(WrongRandom& b, const op::Random& op, Ins in, Outs out) {
    run(static_cast<Reference&>(b), op, in, out);
    float& x = *out[0].data<float>();
    x = std::nextafter(x, 1e9f);
  }
};

TEST(Parity, WantsUniformsEqualToTheBitAndNormalsClose) {
  Folder folder;
  Parity<WrongRandom, Reference> b(ParityConfig{}.with_directory(folder.path));
  Rng rng(1);
  randn(b, {8}, rng);
  expect_contains(message_of<BackendError>([&] { rand(b, {8}, rng); }),
                  "[rand] WrongRandom and reference differ: nothing -> f32[8]");
}

}  // namespace
}  // namespace ferrite
