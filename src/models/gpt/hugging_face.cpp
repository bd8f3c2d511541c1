// Import and export: the tensors of one file, by other names and in other forms, make the other file.
#include "ferrite/models/gpt/hugging_face.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/error.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "models/gpt/hugging_face_config.hpp"
#include "models/gpt/hugging_face_files.hpp"
#include "models/gpt/tensors.hpp"

namespace ferrite::gpt {
namespace fs = std::filesystem;
namespace {

void check_other_file(std::string_view what, const fs::path& source, const fs::path& target) {
  std::error_code ignored;
  if (fs::equivalent(source, target, ignored))
    throw ValueError(fmt::format("{}: is the source itself: choose another place for the result", what));
}

/// The extent of a matrix that must be there, if there is no config.json.
std::int64_t extent_of(std::string_view what, const LazyTensors& tensors, const char* name, int axis) {
  const auto found = tensors.find(name);
  if (found == tensors.end() || found->second.meta.shape.rank() != 2)
    throw ValueError(
        fmt::format("{}: missing the matrix \"{}\" of a GPT-2; other models need their config.json beside it",
                    what, name));
  return found->second.meta.shape[axis];
}

nn::GptConfig derived(std::string_view what, const LazyTensors& tensors, std::vector<std::string>& notes) {
  constexpr std::int64_t head_dim = 64;  // of every GPT-2 that was published
  nn::GptConfig model;
  model.vocab = extent_of(what, tensors, "wte.weight", 0);
  model.dim = extent_of(what, tensors, "wte.weight", 1);
  model.context = extent_of(what, tensors, "wpe.weight", 0);
  model.layers = std::count_if(tensors.begin(), tensors.end(), [](const auto& item) {
    return item.first.starts_with("h.") && item.first.ends_with(".ln_1.weight");
  });
  if (model.dim % head_dim != 0)
    throw ValueError(
        fmt::format("{}: there is no config.json, and dim {} is not a multiple of {}: put config.json beside "
                    "it, which says "
                    "how many heads there are",
                    what, model.dim, head_dim));
  model.heads = model.dim / head_dim;
  notes.push_back(
      fmt::format("there is no config.json: sizes are those of the tensors, and dim {} is taken for {} heads "
                  "of {}",
                  model.dim, model.heads, head_dim));
  model.check();
  return model;
}

/// Each layer has several tensors: a config with more layers would fill the memory with names, and sizes of
/// 32 bits and more could not be multiplied.
void check_sizes(std::string_view what, const nn::GptConfig& model, const LazyTensors& tensors) {
  if (model.layers > static_cast<std::int64_t>(tensors.size()))
    throw ValueError(
        fmt::format("{}: is said to have {} layers, and has {} tensors", what, model.layers, tensors.size()));
  const std::int64_t largest = std::max(
      {model.vocab, model.context, model.dim, model.hidden, model.heads, model.kv_heads, model.head_width});
  if (largest > INT32_MAX)
    throw ValueError(fmt::format("{}: a size of {}: must be at most {}", what, largest, INT32_MAX));
  if (static_cast<double>(model.heads) * static_cast<double>(model.width_of_head()) > INT32_MAX)
    throw ValueError(
        fmt::format("{}: {} heads of {} elements: too many", what, model.heads, model.width_of_head()));
}

/// What a model can compute by itself: GPT-2's masks, and the frequencies in old files of Llamas.
bool is_computed(std::string_view name) {
  if (name.starts_with("layers.") && name.ends_with(".rotary_emb.inv_freq")) return true;
  return name.starts_with("h.") && (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
}

/// Takes out what the model does not need.
void remove_extras(std::string_view what, const nn::GptConfig& model, LazyTensors& tensors,
                   std::vector<std::string>& notes) {
  if (const auto count = std::erase_if(tensors, [](const auto& item) { return is_computed(item.first); }))
    notes.push_back(fmt::format("{} {} are left out: they hold no weights", count,
                                model.rope ? "tables of frequencies" : "attention masks"));
  if (!model.tied) return;
  const std::string_view table_name = their_names(model).table;
  const auto head = tensors.find("lm_head.weight"), table = tensors.find(table_name);
  if (head == tensors.end() || table == tensors.end()) return;
  const bool equal = head->second.meta == table->second.meta &&
                     std::ranges::equal(head->second.load().bytes(), table->second.load().bytes());
  if (!equal)
    throw ValueError(fmt::format(
        "{}: \"lm_head.weight\" differs from \"{}\": in this model they are one tensor", what, table_name));
  tensors.erase(head);
}

/// As transformers writes it.
std::string their_name(const nn::GptConfig& model, const std::string& name) {
  return name == "lm_head.weight" ? name : std::string(their_names(model).prefix) + name;
}

}  // namespace

Converted import_hugging_face(const fs::path& from, const fs::path& out, const ImportConfig& config) {
  const std::string what = fmt::format("[gpt import] {}", from.string());
  if (config.dtype != DType::f32 && config.dtype != DType::f16 && config.dtype != DType::bf16)
    throw DTypeError(fmt::format("[gpt import] dtype {}: must be f32, f16 or bf16", to_string(config.dtype)));
  Converted result;
  result.file = out;
  // First, because it may say that this is another kind of model.
  const auto their_config = find_config(from);
  if (their_config) check_other_file(what, *their_config, out);
  if (their_config) result.model = read_config(*their_config);
  const auto files = weight_files(from);
  for (const fs::path& file : files) check_other_file(what, file, out);
  LazyTensors source = open_weights(files);
  remove_extras(what, result.model, source, result.notes);
  if (!their_config) result.model = derived(what, source, result.notes);
  result.model.dtype = config.dtype;
  check_sizes(what, result.model, source);

  const auto pairs = tensor_pairs(result.model);
  std::vector<NeededTensor> needed;
  for (const TensorPair& pair : pairs) needed.insert(needed.end(), pair.theirs.begin(), pair.theirs.end());
  check_tensors(what, needed, source);

  LazySafeTensors file{{{train::gpt_setting, result.model.to_json()}}, {}};
  for (const TensorPair& pair : pairs) {
    const Meta meta{pair.ours.shape, config.dtype};
    const auto load = [&pair, &source, meta] {
      std::vector<HostTensor> parts;
      for (const NeededTensor& part : pair.theirs) {
        const Meta target{pair.theirs.size() > 1 ? part.shape : meta.shape, meta.dtype};
        parts.push_back(arranged(source.at(part.name).load(), pair.form, target, part.name));
      }
      return joined(parts, meta.shape);
    };
    file.tensors.emplace(pair.ours.name, LazyTensor{meta, load});
  }
  stream_safetensors(out, file, config.progress);
  return result;
}

Converted export_hugging_face(const fs::path& model, const fs::path& folder, const BytesWritten& progress) {
  const std::string what = fmt::format("[gpt export] {}", model.string());
  Converted result;
  result.model = train::read_gpt_config(model);
  if (result.model.quantized)
    throw ValueError(
        fmt::format("{}: its weights have 8 bits, for which transformers has no GPT-2: export the model that "
                    "it was made from",
                    what));
  result.file = folder / "model.safetensors";
  LazyTensors source;  // views of the file
  for (const auto& [name, tensor] : train::read_weights(model))
    source.emplace(name, LazyTensor{{tensor.shape(), tensor.dtype()}, [tensor = tensor] { return tensor; }});
  check_sizes(what, result.model, source);
  const std::string text = config_text(result.model);  // throws for models that transformers does not have

  const auto pairs = tensor_pairs(result.model);
  std::vector<NeededTensor> needed;
  for (const TensorPair& pair : pairs) needed.push_back(pair.ours);
  check_tensors(what, needed, source);
  check_other_file(what, model, result.file);

  // transformers refuses files without this note.
  LazySafeTensors file{{{"format", "pt"}}, {}};
  for (const TensorPair& pair : pairs) {
    const LazyTensor& tensor = source.at(pair.ours.name);
    std::int64_t row = 0;
    for (const NeededTensor& part : pair.theirs) {
      const Meta meta{part.shape, tensor.meta.dtype};
      const bool whole = pair.theirs.size() == 1;
      const auto load = [&pair, &tensor, meta, row, whole] {
        return whole ? arranged(tensor.load(), pair.form, meta, pair.ours.name)
                     : rows_of(tensor.load(), row, meta.shape);
      };
      file.tensors.emplace(their_name(result.model, part.name), LazyTensor{meta, load});
      row += part.shape[0];
    }
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw IoError(
        fmt::format("[gpt export] {}: cannot make the folder: {}", folder.string(), error.message()));
  stream_safetensors(result.file, file, progress);
  write_text(folder / "config.json", text);
  return result;
}

}  // namespace ferrite::gpt
