// What the tests of this folder share: GPT-2's vocabulary and the vectors of make_vectors.py.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "ferrite/text/bpe.hpp"
#include "io/io_test.hpp"
#include "paths.hpp"

namespace ferrite::text::testing {

using ferrite::testing::expect_error;
using ferrite::testing::ScratchFolder;
using ferrite::testing::slurp;
using ferrite::testing::spill;

inline std::string folder() { return test_paths::source_folder() + "/tests/text/"; }

inline const std::string& gpt2_merges() {
  static const std::string content = [] {
    std::string out;
    const gzFile file = gzopen((folder() + "vocab.bpe.gz").c_str(), "rb");
    std::array<char, 65536> buffer;
    for (int n; (n = gzread(file, buffer.data(), buffer.size())) > 0;)
      out.append(buffer.data(), static_cast<std::size_t>(n));
    gzclose(file);
    return out;
  }();
  return content;
}

inline const BytePairTokenizer& gpt2() {
  static const BytePairTokenizer tokenizer = BytePairTokenizer::parse(gpt2_merges(), "vocab.bpe");
  return tokenizer;
}

inline const nlohmann::json& vectors() {
  static const nlohmann::json content = nlohmann::json::parse(std::ifstream(folder() + "vectors.json"));
  return content;
}

/// Expects that two tokenizers give the same ids for all strings of the vectors.
inline void expect_same_ids(const BytePairTokenizer& a, const BytePairTokenizer& b) {
  EXPECT_EQ(a.vocabulary_size(), b.vocabulary_size());
  EXPECT_EQ(a.special_tokens(), b.special_tokens());
  for (const auto& vector : vectors()["strings"]) {
    const std::string text = vector["text"];
    EXPECT_EQ(a.encode(text), b.encode(text)) << text;
  }
}

inline std::string to_utf8(char32_t c) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  const auto tail = [&](int shift) { return byte(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0 | c >> 6), tail(0)};
  if (c < 0x10000) return {byte(0xE0 | c >> 12), tail(6), tail(0)};
  return {byte(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
}

}  // namespace ferrite::text::testing
