#include "text/model.hpp"

#include <algorithm>
#include <utility>

#include "text/split.hpp"

namespace ferrite::text {
namespace {

std::array<Token, 256> byte_tokens(const Vocabulary& vocabulary) {
  std::array<Token, 256> out{};
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& token = vocabulary.tokens[id];
    if (token.size() == 1) out[static_cast<unsigned char>(token[0])] = static_cast<Token>(id);
  }
  return out;
}

/// Tokens on their way to a vector: copies of a fixed size are faster than a vector that grows by a few.
class GatheredTokens {
 public:
  explicit GatheredTokens(std::vector<Token>& out) : out_(out) {}
  GatheredTokens(const GatheredTokens&) = delete;

  void add(const WordCache::Slot& slot) {
    if (count_ + WordCache::max_tokens > tokens_.size()) flush();
    std::copy(slot.tokens.begin(), slot.tokens.end(), tokens_.data() + count_);
    count_ += slot.count;
  }
  void add(std::span<const Token> tokens) {
    flush();
    out_.insert(out_.end(), tokens.begin(), tokens.end());
  }

  /// Must be the last call.
  void flush() { out_.insert(out_.end(), tokens_.data(), tokens_.data() + std::exchange(count_, 0)); }

 private:
  std::vector<Token>& out_;
  std::array<Token, 1024> tokens_;
  std::size_t count_ = 0;
};

}  // namespace

/// A workspace that returns to its model. Words that one call has seen make the next one faster.
class BytePairModel::BorrowedWorkspace {
 public:
  explicit BorrowedWorkspace(const BytePairModel& model) : model_(model) {
    {
      const std::lock_guard lock(model.mutex_);
      if (!model.workspaces_.empty()) {
        workspace_ = std::move(model.workspaces_.back());
        model.workspaces_.pop_back();
      }
    }
    if (!workspace_) workspace_ = std::make_unique<Workspace>();
  }
  BorrowedWorkspace(const BorrowedWorkspace&) = delete;
  ~BorrowedWorkspace() {
    const std::lock_guard lock(model_.mutex_);
    model_.workspaces_.push_back(std::move(workspace_));
  }
  Workspace& operator*() const { return *workspace_; }

 private:
  const BytePairModel& model_;
  std::unique_ptr<Workspace> workspace_;
};

BytePairModel::BytePairModel(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      rules_(vocabulary_.merges, vocabulary_.merged, byte_tokens(vocabulary_)) {
  if (!vocabulary_.whole_words) return;
  Merger merger;
  for (std::size_t id = 0; id < vocabulary_.tokens.size(); ++id) {
    const std::string& token = vocabulary_.tokens[id];
    if (token.empty() || vocabulary_.is_special(id)) continue;
    const auto merged = merger.merge(rules_, token);
    if (merged.size() != 1 || merged[0] != static_cast<Token>(id))
      whole_words_.emplace(token, static_cast<Token>(id));
  }
}

std::span<const Token> BytePairModel::encode_word(std::string_view word, Merger& merger) const {
  if (!whole_words_.empty()) {
    if (const auto found = whole_words_.find(word); found != whole_words_.end()) return {&found->second, 1};
  }
  return merger.merge(rules_, word);
}

void BytePairModel::encode(std::string_view text, std::size_t begin, std::size_t end,
                           std::vector<Token>& out) const {
  if (begin == end) return;
  const BorrowedWorkspace borrowed(*this);
  auto& [merger, cache] = *borrowed;
  const WordSplitter splitter(text);
  GatheredTokens gathered(out);
  for (std::size_t stop; begin < end; begin = stop) {
    stop = splitter.word_end(begin);
    const std::string_view word = text.substr(begin, stop - begin);
    if (word.size() > WordKey::max_length) {
      gathered.add(encode_word(word, merger));
      continue;
    }
    const WordKey key(text, begin, word.size());
    WordCache::Slot& slot = cache.slot(key);
    if (slot.key != key) {
      const auto tokens = encode_word(word, merger);
      if (tokens.size() > WordCache::max_tokens) {
        gathered.add(tokens);
        continue;
      }
      slot.key = key;
      slot.count = static_cast<std::uint32_t>(tokens.size());
      std::copy(tokens.begin(), tokens.end(), slot.tokens.begin());
    }
    gathered.add(slot);
  }
  gathered.flush();
}

}  // namespace ferrite::text
