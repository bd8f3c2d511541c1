// Description: the sizes of a GPT-2, as the metadata of model files hold them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ferrite/core/dtype.hpp"

namespace ferrite::gpt {

/// The defaults are the sizes of the smallest GPT-2.
struct FERRITE_API Description {
  std::int64_t vocab = 50257;
  std::int64_t context = 1024;
  std::int64_t layers = 12;
  std::int64_t heads = 12;
  std::int64_t dim = 768;
  double dropout = 0;
  DType dtype = DType::f32;

  /// Rows of the token table: a multiple of 128. Those beyond the vocabulary are zero.
  std::int64_t padded_vocab() const { return (vocab + 127) / 128 * 128; }
  /// Without the rows that pad the vocabulary: the count that is published.
  std::int64_t parameter_count() const;

  /// Throws ValueError for sizes below 1 or of 32 bits and more, heads that do not divide dim, a dropout
  /// outside [0, 1], and a dtype that is not floating.
  void check() const;
  /// A JSON object with every member.
  std::string to_json() const;
  /// Throws ParseError, in which `name` stands for the source, unless the text is what to_json writes and
  /// passes `check`.
  static Description from_json(std::string_view text, std::string_view name);

  friend bool operator==(const Description&, const Description&) = default;
};

}  // namespace ferrite::gpt
