// Weights of transformers' GPT-2 to a model file and back.
#include "ferrite/train/gpt_file.hpp"
#include "gpt_test.hpp"

namespace ferrite::testing {
namespace {

float element(const HostTensor& t, std::int64_t row, std::int64_t column) {
  return t.as<float>()[static_cast<std::size_t>(row * t.shape()[1] + column)];
}

TEST_F(HuggingFace, ImportRenamesTransposesAndPads) {
  const SafeTensors theirs = weights();
  save(theirs);
  const Converted result = gpt::import_hugging_face(hf, ours);
  const GptConfig expected{vocab, context, layers, heads, dim};
  EXPECT_EQ(result.model, expected);
  EXPECT_TRUE(result.notes.empty());
  const SafeTensors file = read_safetensors(ours);
  EXPECT_EQ(GptConfig::from_json(file.metadata.at("gpt"), "x"), expected);
  EXPECT_EQ(file.tensors.size(), theirs.tensors.size());

  const HostTensor& tokens = file.tensors.at("tokens.weight");
  EXPECT_EQ(tokens.shape(), (Shape{128, dim}));
  const HostTensor& table = theirs.tensors.at("transformer.wte.weight");
  for (std::int64_t row = 0; row < 128; ++row)
    for (std::int64_t column = 0; column < dim; ++column)
      ASSERT_EQ(element(tokens, row, column), row < vocab ? element(table, row, column) : 0.0F);
  expect_equal(file.tensors.at("positions.weight"), theirs.tensors.at("transformer.wpe.weight"));
  expect_equal(file.tensors.at("blocks.1.norm2.bias"), theirs.tensors.at("transformer.h.1.ln_2.bias"));
  expect_equal(file.tensors.at("norm.weight"), theirs.tensors.at("transformer.ln_f.weight"));

  const std::pair<const char*, const char*> linear[] = {{"attn.qkv", "attn.c_attn"},
                                                        {"attn.proj", "attn.c_proj"},
                                                        {"ff.up", "mlp.c_fc"},
                                                        {"ff.down", "mlp.c_proj"}};
  for (const auto& [our_name, their_name] : linear) {
    const HostTensor& w = file.tensors.at(fmt::format("blocks.1.{}.weight", our_name));
    const HostTensor& v = theirs.tensors.at(fmt::format("transformer.h.1.{}.weight", their_name));
    EXPECT_EQ(w.shape(), (Shape{v.shape()[1], v.shape()[0]}));
    for (std::int64_t i = 0; i < w.shape()[0]; ++i)
      for (std::int64_t j = 0; j < w.shape()[1]; ++j) ASSERT_EQ(element(w, i, j), element(v, j, i));
  }
}

TEST_F(HuggingFace, RoundTripsBitForBitInEveryDType) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    save(weights("transformer.", dtype));
    gpt::import_hugging_face(hf, ours, ImportConfig{}.with_dtype(dtype));
    const Converted result = gpt::export_hugging_face(ours, back);
    EXPECT_EQ(result.model.dtype, dtype);
    EXPECT_EQ(result.file, back / "model.safetensors");
    EXPECT_EQ(slurp(back / "model.safetensors"), slurp(hf / "model.safetensors"));
    // What was exported can be imported.
    const std::string first = slurp(ours);
    gpt::import_hugging_face(back, ours, ImportConfig{}.with_dtype(dtype));
    EXPECT_EQ(slurp(ours), first);
  }
}

TEST_F(HuggingFace, SixteenBitsBecomeF32AndBack) {
  save(weights());
  gpt::import_hugging_face(hf, ours);
  const std::string exact = slurp(ours);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    save(weights("transformer.", dtype));
    gpt::import_hugging_face(hf, ours);
    EXPECT_EQ(slurp(ours), exact);  // the samples are exact in 16 bits
    save(weights());
    gpt::import_hugging_face(hf, ours, ImportConfig{}.with_dtype(dtype));
    EXPECT_EQ(read_safetensors(ours).tensors.at("blocks.0.ff.up.weight").dtype(), dtype);
    gpt::export_hugging_face(ours, back);
    save(weights("transformer.", dtype));
    EXPECT_EQ(slurp(back / "model.safetensors"), slurp(hf / "model.safetensors"));
  }
}

TEST_F(HuggingFace, TheNamesOfThePublishedFilesAreTakenToo) {
  save(weights());
  gpt::import_hugging_face(hf, ours);
  const std::string expected = slurp(ours);
  SafeTensors file = weights("");
  file.tensors["h.0.attn.bias"] = tensor(DType::f32, {1, 1, context, context}, 0);
  file.tensors["h.1.attn.masked_bias"] = tensor(DType::f32, {}, 0);
  file.tensors["lm_head.weight"] = file.tensors.at("wte.weight");
  save(file);
  const Converted result = gpt::import_hugging_face(hf, ours);
  EXPECT_EQ(slurp(ours), expected);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_EQ(result.notes[0], "2 attention masks are left out: they hold no weights");

  file.tensors["lm_head.weight"] = tensor(DType::f32, {vocab, dim}, 99);
  save(file);
  fs::remove(ours);
  expect_refused<ValueError>({"[gpt import]", R"("lm_head.weight" differs from "wte.weight")"});
  file.tensors["transformer.wte.weight"] = file.tensors.at("wte.weight");
  save(file);
  expect_refused<ParseError>({R"(the tensor "wte.weight" is there twice)"});
}

TEST_F(HuggingFace, ShardsAreOneModel) {
  const SafeTensors all = weights();
  save(all);
  gpt::import_hugging_face(hf, ours);
  const std::string expected = slurp(ours);
  fs::remove(hf / "model.safetensors");
  fs::remove(ours);
  SafeTensors shards[2];
  nlohmann::json map;
  for (const auto& [name, t] : all.tensors) {
    const std::size_t shard = map.size() % 2;
    shards[shard].tensors.emplace(name, t);
    map[name] = fmt::format("model-{}.safetensors", shard);
  }
  for (int i = 0; i < 2; ++i) write_safetensors(hf / fmt::format("model-{}.safetensors", i), shards[i]);
  const fs::path index = hf / "model.safetensors.index.json";
  spill(index, nlohmann::json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump());
  gpt::import_hugging_face(hf, ours);
  EXPECT_EQ(slurp(ours), expected);
  fs::remove(ours);

  for (const std::string name : {"../model-0.safetensors", "/etc/passwd", "model.bin", ""}) {
    map["transformer.wte.weight"] = name;
    spill(index, nlohmann::json{{"weight_map", map}}.dump());
    expect_refused<ParseError>({index.string(), "must be the name of a .safetensors file beside it"});
  }
  for (const std::string text : {"", "{", "[]", R"({"weight_map": []})", R"({"weight_map": {"a": 1}})"}) {
    spill(index, text);
    expect_refused<ParseError>({index.string()});
  }
  fs::remove(index);
  expect_refused<IoError>({"has neither model.safetensors nor model.safetensors.index.json"});
  spill(hf / "pytorch_model.bin", "");
  expect_refused<IoError>({"has only pytorch_model.bin", "save_pretrained"});
}

TEST_F(HuggingFace, WithoutAConfigSizesComeFromTheTensors) {
  save(weights());
  fs::remove(hf / "config.json");
  expect_refused<ValueError>({"no config.json", "dim 8 is not a multiple of 64"});

  SafeTensors wide{{}, {}};
  for (const auto& [name, t] : weights("").tensors) {
    std::vector<std::int64_t> extents(t.shape().begin(), t.shape().end());
    for (std::int64_t& extent : extents) extent *= extent % dim == 0 ? 16 : 1;
    wide.tensors[name] = tensor(DType::f32, Shape(extents), 1);
  }
  write_safetensors(hf / "model.safetensors", wide);
  const Converted result = gpt::import_hugging_face(hf / "model.safetensors", ours);
  EXPECT_EQ(result.model, (GptConfig{vocab, context, layers, 2, 128}));
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_NE(result.notes[0].find("dim 128 is taken for 2 heads of 64"), std::string::npos);
  fs::remove(ours);

  wide.tensors.erase("wpe.weight");
  write_safetensors(hf / "model.safetensors", wide);
  expect_refused<ValueError>({R"(missing the matrix "wpe.weight")"});
}

TEST_F(HuggingFace, ExportTakesModelFilesAndCheckpointsOnly) {
  save(weights());
  expect_error<ParseError>([&] { gpt::export_hugging_face(hf / "model.safetensors", back); },
                           {"model.safetensors", "has no config in its metadata"});
  EXPECT_FALSE(fs::exists(back));
  gpt::import_hugging_face(hf, ours);
  SafeTensors file = read_safetensors(ours);
  train::Checkpoint checkpoint;
  checkpoint.model = file.tensors;
  checkpoint.optimizer["m.0"] = tensor(DType::f32, {3}, 0);
  checkpoint.settings = file.metadata;
  train::write_checkpoint(folder / "checkpoint.safetensors", checkpoint);
  gpt::export_hugging_face(folder / "checkpoint.safetensors", back);
  EXPECT_EQ(slurp(back / "model.safetensors"), slurp(hf / "model.safetensors"));

  file.tensors.erase("norm.bias");
  write_safetensors(folder / "bad.safetensors", file);
  expect_error<ValueError>([&] { gpt::export_hugging_face(folder / "bad.safetensors", back); },
                           {"[gpt export]", R"(missing "norm.bias")"});
  const auto expect_bad_config = [&]<class E>(const GptConfig& config, std::string_view part) {
    file.metadata[train::gpt_setting] = config.to_json();
    write_safetensors(folder / "bad.safetensors", file);
    expect_error<E>([&] { gpt::export_hugging_face(folder / "bad.safetensors", back); },
                    {"bad.safetensors", part});
  };
  const GptConfig sizes{vocab, context, layers, heads, dim};
  expect_bad_config.operator()<ParseError>(sizes.with_heads(3), "heads must divide dim");
  expect_bad_config.operator()<ParseError>(sizes.with_layers(INT64_MAX),
                                           "layers, and the file has 27 tensors");
  expect_bad_config.operator()<ParseError>(sizes.with_dim(std::int64_t{1} << 62), "it is damaged");
}

TEST_F(HuggingFace, ProgressReachesTheEnd) {
  save(weights());
  std::int64_t calls = 0, last = 0, total = 0;
  const auto progress = [&](std::int64_t done, std::int64_t all) { ++calls, last = done, total = all; };
  gpt::import_hugging_face(hf, ours, ImportConfig{}.with_progress(progress));
  EXPECT_EQ(calls, 28);
  EXPECT_EQ(last, total);
}

}  // namespace
}  // namespace ferrite::testing
