// nn::Gpt with imported weights gives the logits of transformers. The fixture is made by
// tests/peers/gpt_peer.py.
#include "ferrite/ferrite.hpp"
#include "ferrite/io/npy.hpp"
#include "ferrite/models/gpt/hugging_face.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "gpt_test.hpp"
#include "paths.hpp"

namespace ferrite::testing {
namespace {

TEST(ImportedGpt, HasTheLogitsOfTransformers) {
  const fs::path small = fs::path(test_paths::source_folder()) / "tests/models/gpt/small";
  const ScratchFolder folder;
  gpt::import_hugging_face(small, folder / "model.safetensors");
  Cpu backend;
  nn::Gpt<Cpu> model = train::load_gpt(backend, folder / "model.safetensors");
  const auto ids = from_host(backend, read_npy(small / "ids.npy"));
  const auto logits = model.logits(ids).to_vector<float>();

  const HostTensor expected = read_npy(small / "logits.npy");  // in f64
  ASSERT_EQ(static_cast<std::int64_t>(logits.size()), expected.numel());
  double error = 0, largest = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    error = std::max(error, std::abs(static_cast<double>(logits[i]) - expected.as<double>()[i]));
    largest = std::max(largest, std::abs(expected.as<double>()[i]));
  }
  EXPECT_LT(error, 2e-6 * largest);
}

}  // namespace
}  // namespace ferrite::testing
