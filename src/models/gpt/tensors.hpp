// The tensors of a GPT-2: their names here and in transformers, and how one becomes the other.
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

struct TensorPair {
  std::string ours, theirs;  // theirs without "transformer."
  Shape our_shape, their_shape;
  Form form;
};

/// All of them. Sizes must have less than 32 bits.
std::vector<TensorPair> tensor_pairs(const nn::GptConfig& model);

struct NeededTensor {
  std::string name;
  Shape shape;
};
/// Throws unless `given` holds exactly the tensors `needed`, with their shapes and of f32, f16 or bf16:
/// ValueError naming what is missing and what is unknown, else ShapeError or DTypeError naming the tensors.
/// `what` starts the message: "[gpt import] file".
void check_tensors(std::string_view what, const std::vector<NeededTensor>& needed, const LazyTensors& given);

/// A tensor of f32, f16 or bf16 in another form, shape and dtype: `source` itself where nothing changes.
/// Throws ValueError with `name` if a finite value would become infinite.
HostTensor arranged(const HostTensor& source, Form form, const Meta& target, std::string_view name);

}  // namespace ferrite::gpt
