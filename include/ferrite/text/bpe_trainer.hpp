// BytePairTrainer: learns the merges of a BytePairTokenizer from text.
//
//   text::BytePairTrainer trainer(text::TrainerConfig{}.with_vocabulary_size(4096));
//   trainer.add(book);
//   trainer.train().save("mine.bpe");
#pragma once

#include <functional>
#include <unordered_map>

#include "ferrite/core/config.hpp"
#include "ferrite/text/bpe.hpp"

namespace ferrite::text {

struct FERRITE_API TrainerConfig {
  /// Bytes, merges and special tokens together; fewer if the text has too few pairs.
  std::int64_t vocabulary_size = 50257;
  /// Pairs that appear less often are not merged.
  std::int64_t least_count = 2;
  /// Their ids follow the merges.
  std::vector<std::string> special_tokens = {"<|endoftext|>"};

  TrainerConfig with_vocabulary_size(std::int64_t v) const {
    return detail::with(*this, &TrainerConfig::vocabulary_size, v);
  }
  TrainerConfig with_least_count(std::int64_t v) const {
    return detail::with(*this, &TrainerConfig::least_count, v);
  }
  TrainerConfig with_special_tokens(std::vector<std::string> v) const {
    return detail::with(*this, &TrainerConfig::special_tokens, std::move(v));
  }
  /// Throws ValueError for a size that does not hold the bytes and special tokens or is above 2^21 - 1, and
  /// for a count below 1.
  void check() const;
};

/// Counts the words of texts, cut by GPT-2's pattern, then merges the pair of neighbours that appears most
/// often, again and again; of equally frequent pairs the one of the lower left id, then of the lower right
/// id. The merges are those of Hugging Face's BpeTrainer with its byte-level alphabet, and the same for any
/// number of threads.
class FERRITE_API BytePairTrainer {
 public:
  /// Throws ValueError for an invalid config.
  explicit BytePairTrainer(TrainerConfig config = {});

  /// Counts the words of a text, on all threads of the pool. Words do not reach from one text into the next.
  void add(std::string_view text);
  /// How many different words there are.
  std::int64_t word_count() const { return static_cast<std::int64_t>(words_.size()); }

  /// Called with the merges that are done and those to do.
  using Progress = std::function<void(std::int64_t done, std::int64_t total)>;
  /// May be called again after more texts.
  BytePairTokenizer train(const Progress& progress = {}) const;

 private:
  TrainerConfig config_;
  std::unordered_map<std::string, std::int64_t> words_;
};

}  // namespace ferrite::text
