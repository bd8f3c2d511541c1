// Priors on the GPU: every family, task and option gives the Cpu's very bits, in any batch, and the memory
// goes to other libraries as it lies.
#include <gtest/gtest.h>

#include <cstring>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/interop/dlpack.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "ferrite/models/priors/stream.hpp"
#include "ferrite/stacks.hpp"
#include "models/priors/sets.hpp"

namespace ferrite::priors {
namespace {

struct CudaPriors : ::testing::Test {
  void SetUp() override {
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

constexpr const char* names[] = {"x", "y", "row_mask", "feature_mask", "levels", "info"};

template <class B>
std::vector<std::vector<std::byte>> bytes_of(const Batch<B>& batch) {
  std::vector<std::vector<std::byte>> bytes;
  for (const Tensor<B>* t :
       {&batch.x, &batch.y, &batch.row_mask, &batch.feature_mask, &batch.levels, &batch.info})
    bytes.push_back(to_bytes(*t));
  return bytes;
}

/// Bit for bit; says which dataset and element differ first.
void expect_the_bits_of_cpu(const Config& config, std::uint64_t seed, std::int64_t first,
                            std::int64_t count) {
  Cpu cpu;
  Cuda cuda;
  const auto want = bytes_of(generate(cpu, config, seed, first, count)),
             got = bytes_of(generate(cuda, config, seed, first, count));
  // What decides the rest comes first: rows, features, classes, family, attempts, rejections.
  for (const std::size_t i : {5u, 4u, 3u, 2u, 1u, 0u}) {
    ASSERT_EQ(got[i].size(), want[i].size());
    const auto at = std::mismatch(want[i].begin(), want[i].end(), got[i].begin()).first - want[i].begin();
    const auto size = static_cast<std::ptrdiff_t>(want[i].size());
    EXPECT_EQ(at, size) << names[i] << " of dataset " << first + at * count / size << ", byte "
                        << at % (size / count);
  }
}

Config small(Family family) {
  Config config = testing::small_config(family);
  config.post.categorical_share = 0.5;
  return config;
}

class CudaFamilies : public CudaPriors, public ::testing::WithParamInterface<Family> {};
INSTANTIATE_TEST_SUITE_P(Priors, CudaFamilies,
                         ::testing::Values(Family::formula, Family::graph, Family::mlp_scm, Family::tree_scm,
                                           Family::gp, Family::mixture),
                         [](const auto& p) { return std::string(to_string(p.param)); });

TEST_P(CudaFamilies, GiveTheBitsOfCpuForSmallDatasets) {
  expect_the_bits_of_cpu(small(GetParam()), 5, 100, 64);
}

TEST_P(CudaFamilies, GiveTheBitsOfCpuForRegression) {
  Config config = small(GetParam());
  config.task = Task::regression;
  expect_the_bits_of_cpu(config, 6, 0, 32);
}

TEST_P(CudaFamilies, GiveTheBitsOfCpuForOrdinaryDatasets) {
  Config config;  // 1024 rows, up to 20 features
  config.family = GetParam();
  config.weights = {1, 1, 1, 1, 1};
  expect_the_bits_of_cpu(config, 7, 1000, 48);
}

TEST_P(CudaFamilies, GiveTheSameDatasetsInAnyBatch) {
  Cuda cuda;
  const Config config = small(GetParam());
  const auto whole = generate(cuda, config, 5, 100, 300).x.to_vector<float>();
  for (const std::int64_t size : {1, 7, 150}) {
    std::vector<float> parts;
    for (std::int64_t i = 0; i < 300 && parts.size() < 30 * 70 * 9; i += size) {
      const auto part =
          generate(cuda, config, 5, 100 + i, std::min<std::int64_t>(size, 300 - i)).x.to_vector<float>();
      parts.insert(parts.end(), part.begin(), part.end());
    }
    EXPECT_EQ(std::memcmp(parts.data(), whole.data(), parts.size() * sizeof(float)), 0)
        << size << " at a time";
  }
}

TEST_F(CudaPriors, GiveTheBitsOfCpuUnderEveryOption) {
  Config config = small(Family::mlp_scm);
  for (const ClassCuts cuts : {ClassCuts::value, ClassCuts::rank, ClassCuts::balanced, ClassCuts::shares}) {
    config.post.cuts = cuts;
    expect_the_bits_of_cpu(config, 8, 0, 16);
  }
  config.post.standardise = config.post.permute_features = config.post.permute_labels = false;
  config.post.clip_sigma = config.post.learnability = 0;
  config.row_law = RowLaw::log_uniform;
  expect_the_bits_of_cpu(config, 9, 0, 16);
  config.mlp_scm.causality = Causality::non_causal;
  expect_the_bits_of_cpu(config, 10, 0, 16);
  config.post.attempts = 1;  // some datasets are not found
  config.post.learnability = 0.9;
  expect_the_bits_of_cpu(config, 11, 0, 32);
}

TEST_F(CudaPriors, GiveTheBitsOfCpuForTheRealisticPreset) {
  expect_the_bits_of_cpu(Config::preset("realistic"), 14, 0, 64);
}

TEST_F(CudaPriors, GiveTheBitsOfCpuForManyFeaturesAndForManyRows) {
  Config config = small(Family::mixture);
  config.features = {60, 128};
  config.rows = {250, 300};
  expect_the_bits_of_cpu(config, 12, 0, 12);
  config.features = {3, 5};
  config.rows = {5001, 5003};
  expect_the_bits_of_cpu(config, 13, 0, 8);
}

TEST_F(CudaPriors, StreamOfBatchesIsTheDatasetsInOrder) {
  Cuda cuda;
  Cpu cpu;
  const Config config = small(Family::mixture);
  BatchStream<Cuda> stream(cuda, config, 3, 20, 16);
  for (int k = 0; k < 4; ++k) {
    EXPECT_EQ(stream.position(), 20 + 16 * k);
    EXPECT_EQ(bytes_of(stream.next()), bytes_of(generate(cpu, config, 3, 20 + 16 * k, 16))) << "batch " << k;
  }
}

TEST_F(CudaPriors, HandTheirMemoryToOtherLibraries) {
  Cuda cuda;
  const std::size_t before = cuda.memory_stats().in_use;
  DLManagedTensor* managed = nullptr;
  {
    const auto batch = generate(cuda, small(Family::tree_scm), 1, 0, 4);
    managed = to_dlpack(batch.x);
    EXPECT_EQ(managed->dl_tensor.data, batch.x.primitive().data<void>());
  }
  EXPECT_EQ(managed->dl_tensor.device.device_type, kDLCUDA);
  EXPECT_EQ(managed->dl_tensor.shape[1], 70);
  EXPECT_GT(cuda.memory_stats().in_use, before);
  managed->deleter(managed);
  EXPECT_EQ(cuda.memory_stats().in_use, before);
}

struct FormulaSize {
  std::int64_t rows, features, count;
};
TEST_F(CudaPriors, FormulaValuesAreThoseOfCpuBitForBit) {
  Cpu cpu;
  Cuda cuda;
  for (const double noise : {0.0, 0.2}) {
    for (const auto& [rows, features, count] :
         {FormulaSize{64, 4, 1000}, FormulaSize{64, 4, 3}, FormulaSize{63, 4, 50}, FormulaSize{1, 4, 9},
          FormulaSize{257, 4, 21}, FormulaSize{64, 3, 77}, FormulaSize{33, 1, 40}, FormulaSize{1000, 7, 5},
          FormulaSize{300, 128, 3}}) {
      FormulaConfig config;
      config.noise = noise;
      if (rows == 1000) config.terms = {1, max_terms};
      const auto want = generate_formula(cpu, config, rows, features, 3, 10, count);
      const auto got = generate_formula(cuda, config, rows, features, 3, 10, count);
      EXPECT_TRUE(to_bytes(got.x) == to_bytes(want.x)) << rows << " x " << features;
      EXPECT_TRUE(to_bytes(got.y) == to_bytes(want.y)) << rows << " x " << features;
    }
  }
}

TEST_F(CudaPriors, RefuseWhatTheOpsRefuse) {
  Cuda cuda;
  EXPECT_THROW(generate(cuda, Config{}, 0, 0, 0), ValueError);
  EXPECT_THROW(generate_formula(cuda, FormulaConfig{}, 64, 1000, 0, 0, 1), ValueError);
}

}  // namespace
}  // namespace ferrite::priors
