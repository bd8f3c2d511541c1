// Weights of Hugging Face's transformers, to a model file of ferrite and back: GPT-2, Llama, Mistral and
// Qwen2.
//
// Model files are those of train::save_gpt and train::load_gpt.
#pragma once

#include <filesystem>
#include <vector>

#include "ferrite/io/safetensors.hpp"
#include "ferrite/nn/gpt.hpp"

namespace ferrite::gpt {

/// What was converted.
struct Converted {
  nn::GptConfig model;
  std::filesystem::path file;
  /// What the caller may want to know: things assumed, things left out.
  std::vector<std::string> notes;
};

struct ImportConfig {
  /// Of all tensors in the model file: f32, f16 or bf16.
  DType dtype = DType::f32;
  BytesWritten progress = {};

  ImportConfig with_dtype(DType v) const { return {v, progress}; }
  ImportConfig with_progress(BytesWritten v) const { return {dtype, std::move(v)}; }
};

/// Writes the model file `out` from a folder that save_pretrained made (config.json and model.safetensors, or
/// its shards and model.safetensors.index.json), or from a .safetensors file; config.json is looked for
/// beside it. Without config.json it is a GPT-2: sizes come from the shapes of the tensors, and heads have 64
/// elements each, as in every GPT-2: a note says so.
///
/// Names may have the prefix "transformer." or "model.". Tensors are f32, f16 or bf16. What holds no weights
/// is left out (masks, frequencies), and so is `lm_head.weight` if it equals the token table, as it must
/// where config.json says that they are tied. GPT-2's linear weights are transposed, a Llama's projections to
/// queries, keys and values are joined, and the tables of tokens are padded with rows of zeros.
///
/// Holds one tensor in memory at a time and writes atomically. Throws ParseError for files that break their
/// formats, ValueError for other models, settings that ferrite does not have, missing and unknown tensors and
/// for values beyond the dtype, ShapeError and DTypeError for tensors of the wrong kind, IoError if reading
/// or writing fails.
FERRITE_API Converted import_hugging_face(const std::filesystem::path& from, const std::filesystem::path& out,
                                          const ImportConfig& config = {});

/// Writes config.json and model.safetensors, as save_pretrained of the class in transformers does
/// (GPT2LMHeadModel, LlamaForCausalLM, MistralForCausalLM with a window, Qwen2ForCausalLM with biases of
/// queries, keys and values), into `folder`, which is made if it is not there. `model` is a model file, or a
/// checkpoint whose settings have the config. Dtypes stay as they are. Weights come back bit for bit as they
/// were imported in their own dtype. Throws as import_hugging_face does, and ValueError for a model that
/// transformers has no class for.
FERRITE_API Converted export_hugging_face(const std::filesystem::path& model,
                                          const std::filesystem::path& folder,
                                          const BytesWritten& progress = {});

}  // namespace ferrite::gpt
