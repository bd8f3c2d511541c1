// linear_cross_entropy on the GPU: chunks, padding, gradients, wrong targets, capture.
#include "ferrite/ops/linear_cross_entropy.hpp"
#include "backend_cuda/contraction_support.hpp"
#include "ferrite/backend/cuda_graph.hpp"

namespace ferrite::testing {
namespace {

struct CudaLinearCrossEntropy : CudaContraction {
  Gpu targets(std::int64_t rows, std::int64_t classes) {
    return to(*cuda, randint(host, {rows}, rng, 0, classes));
  }
};

TEST_F(CudaLinearCrossEntropy, MatchesItsComposition) {
  for (const DType dtype : floats) {
    for (const std::int64_t chunk : {0, 1, 5, 16}) {
      for (const bool with_gradient : {false, true}) {
        SCOPED_TRACE(std::string(to_string(dtype)) + ", chunks of " + std::to_string(chunk));
        const op::LinearCrossEntropy op{3, 0.1, chunk != 5, 1013, chunk, with_gradient};
        const Gpu x = random({16, 40}, dtype), weight = random({1024, 40}, dtype), y = targets(16, 1013);
        const auto got = eval_all(op, x, weight, y);
        const auto want = eval_all(op, truth(x), truth(weight), truth(y));
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i) {
          SCOPED_TRACE("output " + std::to_string(i));
          expect_near(got[i], want[i], tolerance_of(dtype, 1024));
        }
      }
    }
  }
}

TEST_F(CudaLinearCrossEntropy, PaddingOfAVocabulary) {
  const std::int64_t classes = 50257, columns = 50304;
  const Gpu x = random({6, 64}, DType::bf16), weight = random({columns, 64}, DType::bf16);
  const Gpu y = targets(6, classes);
  const op::LinearCrossEntropy op{.classes = classes, .chunk_rows = 4, .with_gradient = true};
  const auto got = eval_all(op, x, weight, y);
  const auto want = eval_all(op, truth(x), truth(weight), truth(y));
  for (std::size_t i = 0; i < got.size(); ++i)
    expect_near(got[i], want[i], tolerance_of(DType::bf16, classes));
  const auto rest = slice(got[2], 0, classes, columns).to_vector<float>();
  EXPECT_EQ(rest, std::vector<float>(rest.size(), 0.0f));
}

TEST_F(CudaLinearCrossEntropy, AWrongTargetHasItsNameAndItsPositionInAllRows) {
  const Gpu x = random({5, 8}), weight = random({10, 8});
  const Gpu y = to(*cuda, from_vector(host, std::vector<std::int64_t>{1, -100, 2, 3, 9}));
  try {
    eval(op::LinearCrossEntropy{.classes = 9, .chunk_rows = 2}, x, weight, y).item();
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_EQ(std::string_view(error.what()),
              "[linear_cross_entropy] target 9 at position 4 is out of range for 9 classes");
  }
}

TEST_F(CudaLinearCrossEntropy, CapturedStepsGiveTheSameBits) {
  Autodiff<Autocast<Cuda>> b;
  const auto leaf = [&](const Shape& shape, const char* name) {
    return parameter(to(b, rand(host, shape, rng, -1, 1)), name);
  };
  const auto x = leaf({32, 16}, "x"), weight = leaf({72, 16}, "weight");
  const auto y = to(b, randint(host, {32}, rng, 0, 70));
  const auto config = CrossEntropyConfig{}.with_classes(70);
  Gradients<Autocast<Cuda>> gradients;
  const auto step = [&] { gradients = linear_cross_entropy(x, weight, y, config).backward(); };
  step();
  EXPECT_EQ(gradients.of(weight).dtype(), DType::f32);
  const auto eager = gradients.of(weight).to_vector<float>();
  auto graph = CudaGraph::capture(b.inner().inner(), step);
  graph.replay();
  EXPECT_EQ(gradients.of(weight).to_vector<float>(), eager);
}

}  // namespace
}  // namespace ferrite::testing
