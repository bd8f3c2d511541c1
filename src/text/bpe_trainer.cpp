// Pair counts are kept up to date: a merge visits only the words that hold its pair.
#include "ferrite/text/bpe_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <utility>

#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "text/model.hpp"
#include "text/split.hpp"

namespace ferrite::text {
namespace {

using PairKey = std::uint64_t;

PairKey key_of(Token left, Token right) {
  return static_cast<PairKey>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

struct Word {
  std::vector<Token> tokens;
  std::int64_t count;
};

struct Pair {
  std::int64_t count = 0;
  std::vector<std::uint32_t> words;  // that held it when it was new; some may have lost it since
};

struct Candidate {
  std::int64_t count;
  PairKey pair;
  /// Of a heap whose top has the highest count, and of these the lowest ids.
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.count != b.count ? a.count < b.count : a.pair > b.pair;
  }
};

class Merging {
 public:
  explicit Merging(std::vector<Word> words) : words_(std::move(words)) {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::size_t i = 0; i + 1 < words_[w].tokens.size(); ++i)
        change(w, words_[w].tokens[i], words_[w].tokens[i + 1], +1);
    for (const auto& [key, pair] : pairs_) heap_.push({pair.count, key});
    grown_.clear();
  }

  /// The pair to merge next, or a count of 0.
  Candidate next() {
    while (!heap_.empty()) {
      Candidate best = heap_.top();
      heap_.pop();
      const auto found = pairs_.find(best.pair);
      if (found == pairs_.end()) continue;
      // Counts fall without notice to the heap. A candidate that comes too early goes back.
      if (found->second.count == best.count) return best;
      best.count = found->second.count;
      if (best.count > 0) heap_.push(best);
    }
    return {0, 0};
  }

  void merge(PairKey key, Token merged) {
    const auto left = static_cast<Token>(key >> 32), right = static_cast<Token>(key & 0xFFFFFFFF);
    const auto node = pairs_.extract(key);
    for (const std::uint32_t w : node.mapped().words) merge_in(w, left, right, merged);
    pairs_.erase(key);  // words with overlapping pairs, as "aaa", count it once more
    for (const PairKey pair : grown_)
      if (const auto found = pairs_.find(pair); found != pairs_.end() && found->second.count > 0)
        heap_.push({found->second.count, pair});
    grown_.clear();
  }

 private:
  void merge_in(std::uint32_t w, Token left, Token right, Token merged) {
    std::vector<Token>& tokens = words_[w].tokens;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] != left || i + 1 == tokens.size() || tokens[i + 1] != right) {
        tokens[kept++] = tokens[i];
        continue;
      }
      if (kept > 0) {
        change(w, tokens[kept - 1], left, -1);
        change(w, tokens[kept - 1], merged, +1);
      }
      if (i + 2 < tokens.size()) {
        change(w, right, tokens[i + 2], -1);
        change(w, merged, tokens[i + 2], +1);
      }
      tokens[kept++] = merged;
      ++i;
    }
    tokens.resize(kept);
  }

  void change(std::size_t w, Token left, Token right, std::int64_t by) {
    const PairKey key = key_of(left, right);
    Pair& pair = pairs_[key];
    pair.count += by * words_[w].count;
    if (by < 0) return;
    const auto word = static_cast<std::uint32_t>(w);
    if (pair.words.empty() || pair.words.back() != word) {
      if (pair.words.empty()) grown_.push_back(key);
      pair.words.push_back(word);
    }
  }

  std::vector<Word> words_;
  std::unordered_map<PairKey, Pair> pairs_;
  std::priority_queue<Candidate> heap_;
  std::vector<PairKey> grown_;
};

}  // namespace

void TrainerConfig::check() const {
  const auto refuse = [](std::string_view what, std::int64_t value, const std::string& rule) {
    throw ValueError(fmt::format("[train tokenizer] {} {}: {}", what, value, rule));
  };
  const auto least = 256 + static_cast<std::int64_t>(special_tokens.size());
  if (vocabulary_size < least || vocabulary_size > max_tokens)
    refuse("vocabulary_size", vocabulary_size, fmt::format("must be {} to {}", least, max_tokens));
  if (least_count < 1) refuse("least_count", least_count, "must be at least 1");
}

BytePairTrainer::BytePairTrainer(TrainerConfig config) : config_(std::move(config)) { config_.check(); }

void BytePairTrainer::add(std::string_view text) {
  constexpr std::size_t part_size = 1 << 20;
  std::vector<std::size_t> cuts{0};
  while (cuts.back() < text.size())
    cuts.push_back(safe_cut(text, std::min(text.size(), cuts.back() + part_size)));
  std::vector<std::unordered_map<std::string_view, std::int64_t>> counts(cuts.size() - 1);
  parallel_for(static_cast<std::int64_t>(counts.size()), [&](std::int64_t chunk) {
    const auto part = static_cast<std::size_t>(chunk);
    const WordSplitter splitter(text);
    for (std::size_t begin = cuts[part], end; begin < cuts[part + 1]; begin = end) {
      end = splitter.word_end(begin);
      ++counts[part][text.substr(begin, end - begin)];
    }
  });
  for (const auto& part : counts)
    for (const auto& [word, count] : part) words_[std::string(word)] += count;
}

BytePairTokenizer BytePairTrainer::train(const Progress& progress) const {
  Vocabulary vocabulary = bytes_only();
  TokenIds ids = token_ids(vocabulary);
  std::vector<Word> words;
  words.reserve(words_.size());
  for (const auto& [text, count] : words_) {
    Word& word = words.emplace_back(Word{{}, count});
    for (const char byte : text) word.tokens.push_back(ids.at(std::string(1, byte)));
  }
  Merging merging(std::move(words));
  const std::size_t ordinary =
      static_cast<std::size_t>(config_.vocabulary_size) - config_.special_tokens.size();
  const auto total = static_cast<std::int64_t>(ordinary) - 256;
  while (vocabulary.tokens.size() < ordinary && vocabulary.merged.size() < max_ranks) {
    const Candidate best = merging.next();
    if (best.count < config_.least_count) break;
    const auto left = static_cast<Token>(best.pair >> 32), right = static_cast<Token>(best.pair & 0xFFFFFFFF);
    merging.merge(best.pair, add_merge(vocabulary, ids, left, right));
    if (progress) progress(static_cast<std::int64_t>(vocabulary.tokens.size()) - 256, total);
  }
  add_special_tokens(vocabulary, config_.special_tokens);
  return BytePairTokenizer(std::make_shared<const BytePairModel>(std::move(vocabulary)));
}

}  // namespace ferrite::text
