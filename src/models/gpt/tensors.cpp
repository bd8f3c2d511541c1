#include "models/gpt/tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ferrite/core/error.hpp"
#include "io/format.hpp"

namespace ferrite::gpt {
namespace {

using io_detail::in_quotes;

/// "a, b and 5 more"
std::string listed(const std::vector<std::string>& items) {
  constexpr std::size_t shown = 8;
  const auto end = items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), shown));
  const std::string text = fmt::format("{}", fmt::join(items.begin(), end, ", "));
  return items.size() > shown ? fmt::format("{} and {} more", text, items.size() - shown) : text;
}

template <class F>
void visit_weights(DType dtype, F&& f) {
  if (dtype == DType::f32)
    f.template operator()<float>();
  else if (dtype == DType::f16)
    f.template operator()<Half>();
  else
    f.template operator()<BFloat16>();
}

template <class T>
bool is_infinite(T x) {
  return std::isinf(convert<float>(x));
}

/// Returns false if a finite value became infinite.
template <class From, class To>
bool convert_all(std::span<const From> source, std::span<To> out) {
  bool fits = true;
  for (std::size_t i = 0; i < source.size(); ++i) {
    out[i] = convert<To>(source[i]);
    fits &= !is_infinite(out[i]) || is_infinite(source[i]);
  }
  return fits;
}

/// Tiles stay in the nearest cache: rows of a large matrix are too far from each other.
template <class T>
void transpose(std::span<T> matrix, std::size_t rows, std::size_t columns) {
  constexpr std::size_t tile = 32;
  const std::vector<T> source(matrix.begin(), matrix.end());
  for (std::size_t row = 0; row < rows; row += tile)
    for (std::size_t column = 0; column < columns; column += tile)
      for (std::size_t i = row; i < std::min(rows, row + tile); ++i)
        for (std::size_t j = column; j < std::min(columns, column + tile); ++j)
          matrix[j * rows + i] = source[i * columns + j];
}

}  // namespace

namespace {

class Pairs {
 public:
  std::vector<TensorPair> all;

  void add(const std::string& ours, const std::string& theirs, const Shape& shape) {
    all.push_back({{ours, shape}, {{theirs, shape}}, Form::same});
  }
  void add_table(const std::string& ours, const std::string& theirs, const nn::GptConfig& model) {
    all.push_back(
        {{ours, {model.padded_vocab(), model.dim}}, {{theirs, {model.vocab, model.dim}}}, Form::resized});
  }
};

std::vector<TensorPair> pairs_of_gpt2(const nn::GptConfig& model) {
  const std::int64_t dim = model.dim;
  Pairs pairs;
  pairs.add_table("tokens.weight", "wte.weight", model);
  pairs.add("positions.weight", "wpe.weight", {model.context, dim});
  const auto add_norm = [&](const std::string& ours, const std::string& theirs) {
    pairs.add(ours + ".weight", theirs + ".weight", {dim});
    pairs.add(ours + ".bias", theirs + ".bias", {dim});
  };
  const auto add_linear = [&](const std::string& ours, const std::string& theirs, std::int64_t in,
                              std::int64_t to) {
    pairs.all.push_back({{ours + ".weight", {to, in}}, {{theirs + ".weight", {in, to}}}, Form::transposed});
    pairs.add(ours + ".bias", theirs + ".bias", {to});
  };
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const std::string ours = fmt::format("blocks.{}.", i), theirs = fmt::format("h.{}.", i);
    add_norm(ours + "norm1", theirs + "ln_1");
    add_linear(ours + "attn.qkv", theirs + "attn.c_attn", dim, 3 * dim);
    add_linear(ours + "attn.proj", theirs + "attn.c_proj", dim, dim);
    add_norm(ours + "norm2", theirs + "ln_2");
    add_linear(ours + "ff.up", theirs + "mlp.c_fc", dim, 4 * dim);
    add_linear(ours + "ff.down", theirs + "mlp.c_proj", 4 * dim, dim);
  }
  add_norm("norm", "ln_f");
  return pairs.all;
}

std::vector<TensorPair> pairs_of_llama(const nn::GptConfig& model) {
  const std::int64_t dim = model.dim, hidden = model.hidden_width(), width = model.width_of_head();
  const std::int64_t queries = model.heads * width, keys = model.key_heads() * width;
  Pairs pairs;
  pairs.add_table("tokens.weight", "embed_tokens.weight", model);
  const auto add_linear = [&](const std::string& ours, const std::string& theirs, std::int64_t in,
                              std::int64_t to) {
    pairs.add(ours + ".weight", theirs + ".weight", {to, in});
    if (model.bias) pairs.add(ours + ".bias", theirs + ".bias", {to});
  };
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const std::string ours = fmt::format("blocks.{}.", i), theirs = fmt::format("layers.{}.", i);
    const std::string attention = theirs + "self_attn.";
    pairs.add(ours + "norm1.weight", theirs + "input_layernorm.weight", {dim});
    pairs.all.push_back({{ours + "attn.qkv.weight", {queries + 2 * keys, dim}},
                         {{attention + "q_proj.weight", {queries, dim}},
                          {attention + "k_proj.weight", {keys, dim}},
                          {attention + "v_proj.weight", {keys, dim}}},
                         Form::same});
    if (model.qkv_bias.value_or(model.bias))
      pairs.all.push_back({{ours + "attn.qkv.bias", {queries + 2 * keys}},
                           {{attention + "q_proj.bias", {queries}},
                            {attention + "k_proj.bias", {keys}},
                            {attention + "v_proj.bias", {keys}}},
                           Form::same});
    add_linear(ours + "attn.proj", attention + "o_proj", queries, dim);
    pairs.add(ours + "norm2.weight", theirs + "post_attention_layernorm.weight", {dim});
    add_linear(ours + "ff.gate", theirs + "mlp.gate_proj", dim, hidden);
    add_linear(ours + "ff.up", theirs + "mlp.up_proj", dim, hidden);
    add_linear(ours + "ff.down", theirs + "mlp.down_proj", hidden, dim);
  }
  pairs.add("norm.weight", "norm.weight", {dim});
  if (!model.tied) pairs.add_table("head.weight", "lm_head.weight", model);
  return pairs.all;
}

}  // namespace

std::vector<TensorPair> tensor_pairs(const nn::GptConfig& model) {
  return model.rope ? pairs_of_llama(model) : pairs_of_gpt2(model);
}

TheirNames their_names(const nn::GptConfig& model) {
  return model.rope ? TheirNames{"embed_tokens.weight", "model."} : TheirNames{"wte.weight", "transformer."};
}

void check_tensors(std::string_view what, const std::vector<NeededTensor>& needed, const LazyTensors& given) {
  std::vector<std::string> missing, unknown, shapes, dtypes;
  std::set<std::string_view> names;
  for (const auto& [name, shape] : needed) {
    names.insert(name);
    const auto found = given.find(name);
    if (found == given.end()) {
      missing.push_back(in_quotes(name));
      continue;
    }
    const Meta& meta = found->second.meta;
    if (!(meta.shape == shape))
      shapes.push_back(fmt::format("{} has shape {} and needs {}", in_quotes(name), to_string(meta.shape),
                                   to_string(shape)));
    if (meta.dtype != DType::f32 && meta.dtype != DType::f16 && meta.dtype != DType::bf16)
      dtypes.push_back(
          fmt::format("{} is {} and needs to be f32, f16 or bf16", in_quotes(name), to_string(meta.dtype)));
  }
  for (const auto& item : given)
    if (!names.contains(item.first)) unknown.push_back(in_quotes(item.first));

  std::string problems;
  if (!missing.empty()) problems = "missing " + listed(missing);
  if (!unknown.empty()) problems += (problems.empty() ? "unknown " : "; unknown ") + listed(unknown);
  if (!problems.empty()) throw ValueError(fmt::format("{}: {}", what, problems));
  if (!shapes.empty()) throw ShapeError(fmt::format("{}: {}", what, listed(shapes)));
  if (!dtypes.empty()) throw DTypeError(fmt::format("{}: {}", what, listed(dtypes)));
}

HostTensor arranged(const HostTensor& source, Form form, const Meta& target, std::string_view name) {
  if (source.dtype() == target.dtype && source.shape() == target.shape && form != Form::transposed)
    return source;
  bool fits = true;
  HostTensor out = HostTensor::make(target.dtype, target.shape, [&](std::span<std::byte> bytes) {
    visit_weights(source.dtype(), [&]<class From>() {
      visit_weights(target.dtype, [&]<class To>() {
        const std::span<To> elements(reinterpret_cast<To*>(bytes.data()), bytes.size() / sizeof(To));
        const std::span<const From> given = source.as<From>();
        const std::size_t kept = std::min(given.size(), elements.size());
        fits = convert_all(given.first(kept), elements.first(kept));
        std::fill(elements.begin() + static_cast<std::ptrdiff_t>(kept), elements.end(), To{});
        if (form == Form::transposed)
          transpose(elements, static_cast<std::size_t>(source.shape()[0]),
                    static_cast<std::size_t>(source.shape()[1]));
      });
    });
  });
  if (!fits)
    throw ValueError(fmt::format("[gpt] {} has values beyond {}: choose another dtype", in_quotes(name),
                                 to_string(target.dtype)));
  return out;
}

HostTensor joined(const std::vector<HostTensor>& parts, const Shape& shape) {
  if (parts.size() == 1) return parts[0];
  return HostTensor::make(parts[0].dtype(), shape, [&](std::span<std::byte> bytes) {
    auto to = bytes.begin();
    for (const HostTensor& part : parts) to = std::ranges::copy(part.bytes(), to).out;
  });
}

HostTensor rows_of(const HostTensor& source, std::int64_t first, const Shape& shape) {
  if (source.shape() == shape) return source;
  const std::size_t row = source.bytes().size() / static_cast<std::size_t>(source.shape()[0]);
  const auto bytes =
      source.bytes().subspan(static_cast<std::size_t>(first) * row, static_cast<std::size_t>(shape[0]) * row);
  return HostTensor::copy_of(source.dtype(), shape, bytes);
}

}  // namespace ferrite::gpt
