// nn::Gpt with imported weights gives the logits of transformers. The fixtures are made by
// tests/peers/gpt_peer.py.
#include "ferrite/io/npy.hpp"
#include "ferrite/models/gpt/hugging_face.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "gpt_test.hpp"
#include "paths.hpp"

namespace ferrite::testing {
namespace {

fs::path fixture(const std::string& name) {
  return fs::path(test_paths::source_folder()) / "tests/models/gpt" / name;
}

/// The largest difference, as a share of the largest of the expected logits, which are f64.
double error_of(const std::vector<float>& logits, const HostTensor& expected) {
  EXPECT_EQ(static_cast<std::int64_t>(logits.size()), expected.numel());
  double error = 0, largest = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(logits[i]) - expected.as<double>()[i]));
    largest = std::max(largest, std::abs(expected.as<double>()[i]));
  }
  return error / largest;
}

TEST(ImportedGpt, HasTheLogitsOfTransformers) {
  const fs::path small = fixture("small");
  const ScratchFolder folder;
  gpt::import_hugging_face(small, folder / "model.safetensors");
  Cpu backend;
  nn::Gpt<Cpu> model = train::load_gpt(backend, folder / "model.safetensors");
  const auto ids = from_host(backend, read_npy(small / "ids.npy"));
  EXPECT_LT(error_of(model.logits(ids).to_vector<float>(), read_npy(small / "logits.npy")), 2e-6);
}

/// Shared keys and values, rotations scaled as Llama 3's and linearly, tied and untied projections, biases,
/// heads of another width than dim / heads, and a window; at once and token by token.
class ImportedLlama : public ::testing::TestWithParam<const char*> {};

TEST_P(ImportedLlama, HasTheLogitsOfTransformers) {
  const fs::path from = fixture(GetParam());
  const ScratchFolder folder;
  gpt::import_hugging_face(from, folder / "model.safetensors");
  Cpu backend;
  nn::Gpt<Cpu> model = train::load_gpt(backend, folder / "model.safetensors");
  const auto ids = from_host(backend, read_npy(from / "ids.npy"));
  const HostTensor expected = read_npy(from / "logits.npy");
  EXPECT_LT(error_of(model.logits(ids).to_vector<float>(), expected), 5e-6);

  nn::KvCache<Cpu> cache = model.make_cache(ids.size(0), ids.size(1));
  std::vector<Tensor<Cpu>> steps{model.logits(slice(ids, 1, 0, 7), cache)};
  for (std::int64_t t = 7; t < ids.size(1); ++t)
    steps.push_back(model.logits(slice(ids, 1, t, t + 1), cache));
  EXPECT_LT(error_of(cat(steps, 1).to_vector<float>(), expected), 5e-6);

  // The way back gives the same file.
  gpt::export_hugging_face(folder / "model.safetensors", folder / "back");
  EXPECT_EQ(slurp(folder / "back" / "model.safetensors"), slurp(from / "model.safetensors"));
  gpt::import_hugging_face(folder / "back", folder / "again.safetensors");
  EXPECT_EQ(slurp(folder / "again.safetensors"), slurp(folder / "model.safetensors"));
}
INSTANTIATE_TEST_SUITE_P(Fixtures, ImportedLlama,
                         ::testing::Values("llama", "llama_tied", "mistral", "qwen2"));

}  // namespace
}  // namespace ferrite::testing
