// A folder as save_pretrained makes it, with a small GPT-2.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ferrite/models/gpt/hugging_face.hpp"
#include "io/io_test.hpp"

namespace ferrite::testing {

using gpt::Converted;
using gpt::ImportConfig;
using nn::GptConfig;

constexpr std::int64_t vocab = 10, context = 6, layers = 2, heads = 2, dim = 8;

/// Values that differ everywhere and are exact in f16 and bf16.
inline HostTensor tensor(DType dtype, const Shape& shape, std::int64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((static_cast<std::int64_t>(i) * 7 + seed * 31) % 255 - 127) / 64;
  if (dtype == DType::f32) return HostTensor::from(std::span<const float>(values), shape);
  return HostTensor::make(dtype, shape, [&](std::span<std::byte> bytes) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t bits =
          dtype == DType::f16 ? convert<Half>(values[i]).bits : convert<BFloat16>(values[i]).bits;
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
    }
  });
}

/// What save_pretrained writes for a GPT2LMHeadModel of these sizes.
inline SafeTensors weights(std::string prefix = "transformer.", DType dtype = DType::f32) {
  SafeTensors file{{{"format", "pt"}}, {}};
  const auto add = [&](const std::string& name, const Shape& shape) {
    file.tensors[prefix + name] = tensor(dtype, shape, static_cast<std::int64_t>(file.tensors.size()));
  };
  add("wte.weight", {vocab, dim});
  add("wpe.weight", {context, dim});
  for (int i = 0; i < layers; ++i) {
    const std::string h = fmt::format("h.{}.", i);
    for (const std::string norm : {"ln_1.", "ln_2."})
      add(h + norm + "weight", {dim}), add(h + norm + "bias", {dim});
    add(h + "attn.c_attn.weight", {dim, 3 * dim}), add(h + "attn.c_attn.bias", {3 * dim});
    add(h + "attn.c_proj.weight", {dim, dim}), add(h + "attn.c_proj.bias", {dim});
    add(h + "mlp.c_fc.weight", {dim, 4 * dim}), add(h + "mlp.c_fc.bias", {4 * dim});
    add(h + "mlp.c_proj.weight", {4 * dim, dim}), add(h + "mlp.c_proj.bias", {dim});
  }
  add("ln_f.weight", {dim}), add("ln_f.bias", {dim});
  return file;
}

inline nlohmann::json config() {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"layer_norm_epsilon", 1e-5},
          {"n_inner", nullptr},
          {"n_embd", dim},
          {"n_head", heads},
          {"n_layer", layers},
          {"n_positions", context},
          {"vocab_size", vocab}};
}

struct HuggingFace : ::testing::Test {
  ScratchFolder folder;
  fs::path hf = folder / "hf", ours = folder / "ours.safetensors", back = folder / "back";

  HuggingFace() { fs::create_directory(hf); }
  void save(const SafeTensors& file, const nlohmann::json& json = config()) {
    write_safetensors(hf / "model.safetensors", file);
    spill(hf / "config.json", json.dump());
  }
  /// Import fails with this message, and leaves nothing.
  template <class E>
  void expect_refused(std::initializer_list<std::string_view> parts, const ImportConfig& c = {}) {
    expect_error<E>([&] { gpt::import_hugging_face(hf, ours, c); }, parts);
    EXPECT_EQ(folder.file_count(), 1u);
  }
};

}  // namespace ferrite::testing
