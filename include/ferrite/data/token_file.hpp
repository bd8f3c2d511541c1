// Token files: the ids of a text for training a language model, mapped into memory and never read whole.
//
//   data::TokenFileWriter out("shard_0000.bin", data::token_dtype(tokenizer.vocabulary_size()));
//   out.write(tokenizer.encode(book));
//   out.commit();
//   const data::TokenFile file = data::TokenFile::open("shard_0000.bin");
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ferrite/core/dtype.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "ferrite/io/mapped_file.hpp"

namespace ferrite::data {

/// The dtype of a file for the ids of a vocabulary: u16 for up to 65536 tokens, else u32. Throws ValueError
/// for a vocabulary below 1 or above 2^31.
FERRITE_API DType token_dtype(std::int64_t vocabulary);

/// A value: copies share the mapping, which nobody may truncate meanwhile (see MappedFile). Several threads
/// may read at once.
class FERRITE_API TokenFile {
 public:
  /// Every id that i32 holds is below it.
  static constexpr std::int64_t any_vocabulary = std::int64_t{1} << 31;

  /// Reads one of three formats. Two are told by their content:
  /// - llm.c's .bin: 256 int32 {magic, version, count, 0, ...}, then the tokens. Magic 20240520 and version 1
  ///   mean u16, 20240801 and 7 mean u32;
  /// - .npy of one axis, u16, u32 or i32, little-endian.
  /// The third is bare tokens, as nanoGPT writes them: it has no header, so name its dtype, u16 or u32.
  /// Throws IoError if the file cannot be read; ParseError with the file, the place and the rule if it is
  /// empty, cut short, too long or in another format, and if bare tokens begin with a header; DTypeError for
  /// bare tokens of another dtype.
  static TokenFile open(const std::filesystem::path& path, std::optional<DType> bare = std::nullopt);

  /// How many tokens there are.
  std::int64_t size() const { return size_; }
  /// u16, u32 or i32.
  DType dtype() const { return dtype_; }
  const std::filesystem::path& path() const { return path_; }

  /// Copies the tokens number `first`, `first + 1`, ... to `out`. Throws ValueError if they reach past the
  /// end, and for an id that is negative or not below `vocabulary`, with the file, the token's number, its id
  /// and the vocabulary.
  void copy(std::int64_t first, std::span<std::int32_t> out, std::int64_t vocabulary = any_vocabulary) const;

 private:
  TokenFile(std::filesystem::path path, std::shared_ptr<const MappedFile> file, DType dtype,
            std::size_t offset);

  std::filesystem::path path_;
  std::shared_ptr<const MappedFile> file_;
  DType dtype_;
  std::size_t offset_;  // of the first token
  std::int64_t size_;
};

/// Writes llm.c's .bin, of any size in little memory. The file appears with `commit`; without it, or after
/// any failure (a full disk is an IoError), nothing is left behind and a previous file stays as it was.
class FERRITE_API TokenFileWriter {
 public:
  /// The header counts tokens in an int32.
  static constexpr std::int64_t most_tokens = (std::int64_t{1} << 31) - 1;

  /// Throws DTypeError unless dtype is u16 or u32, IoError as AtomicFile does.
  TokenFileWriter(const std::filesystem::path& path, DType dtype);

  /// Throws ValueError, with none of these tokens written, for an id that the dtype does not hold and for
  /// more than most_tokens in all; IoError.
  void write(std::span<const std::int32_t> tokens);
  std::int64_t size() const { return size_; }
  /// Puts the count into the header and the file into its place. Must be the last call. Throws IoError.
  void commit();

 private:
  void flush();

  std::filesystem::path path_;
  AtomicFile file_;
  DType dtype_;
  std::int64_t size_ = 0;
  std::vector<std::byte> waiting_;
};

}  // namespace ferrite::data
