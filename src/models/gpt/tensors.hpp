// The tensors of a model: their names here and in transformers, and how one becomes the other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ferrite/io/safetensors.hpp"
#include "ferrite/nn/gpt.hpp"

namespace ferrite::gpt {

using LazyTensors = std::map<std::string, LazyTensor, std::less<>>;

/// How a tensor here differs from the one in transformers. Each undoes itself.
enum class Form : std::uint8_t {
  same,
  transposed,  // transformers' Conv1D has [in, out], Linear has [out, in]
  resized,     // rows of zeros follow, or are cut off
};

struct NeededTensor {
  std::string name;
  Shape shape;
};

/// One tensor here, and those in transformers whose rows follow each other in it: most often one.
struct TensorPair {
  NeededTensor ours;
  std::vector<NeededTensor> theirs;  // names without "transformer." or "model."
  Form form;
};

/// All of them. Sizes must have less than 32 bits.
std::vector<TensorPair> tensor_pairs(const nn::GptConfig& model);

/// The table of the token embeddings, and what stands before the names in the files that transformers writes.
struct TheirNames {
  std::string_view table, prefix;
};
TheirNames their_names(const nn::GptConfig& model);

/// Throws unless `given` holds exactly the tensors `needed`, with their shapes and of f32, f16 or bf16:
/// ValueError naming what is missing and what is unknown, else ShapeError or DTypeError naming the tensors.
/// `what` starts the message: "[gpt import] file".
void check_tensors(std::string_view what, const std::vector<NeededTensor>& needed, const LazyTensors& given);

/// A tensor of f32, f16 or bf16 in another form, shape and dtype: `source` itself where nothing changes.
/// Throws ValueError with `name` if a finite value would become infinite.
HostTensor arranged(const HostTensor& source, Form form, const Meta& target, std::string_view name);

/// Tensors of one dtype, one after the other.
HostTensor joined(const std::vector<HostTensor>& parts, const Shape& shape);
/// The rows of a tensor from `first` on, as many as `shape` has.
HostTensor rows_of(const HostTensor& source, std::int64_t first, const Shape& shape);

}  // namespace ferrite::gpt
