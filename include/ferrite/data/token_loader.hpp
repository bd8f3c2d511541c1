// TokenLoader: batches of token windows for training a language model, from token files of any size, in an
// order that depends only on the seed and the epoch.
//
//   const auto config = data::TokenLoaderConfig{}.with_batch(8, 1024).with_seed(1).with_vocab(50257);
//   data::TokenLoader loader("shards/train_*.bin", config);
//   data::Prefetch ahead(loader);  // a thread makes the next batches
//   train::Trainer<B> trainer(net, optimizer, ahead, step, training);
#pragma once

#include <concepts>
#include <string>

#include "ferrite/core/config.hpp"
#include "ferrite/data/source.hpp"
#include "ferrite/data/token_file.hpp"
#include "ferrite/io/glob.hpp"

namespace ferrite::data {

/// How a TokenLoader cuts token files into batches.
struct FERRITE_API TokenLoaderConfig {
  /// Windows of a batch, of each rank.
  std::int64_t batch_size = 8;
  /// Tokens of a row, T: a window has one more, as the targets are the tokens that follow.
  std::int64_t length = 1024;
  std::uint64_t seed = 0;
  /// Another order in every epoch; without it, the files' own order: for evaluation.
  bool shuffle = true;
  /// Ids must lie below it; the model's table of embeddings has as many rows.
  std::int64_t vocabulary = TokenFile::any_vocabulary;
  /// This process takes every ranks-th window, from window `rank` on.
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  /// u16 or u32 for files of bare tokens: see TokenFile::open.
  std::optional<DType> dtype = {};

  TokenLoaderConfig with_batch(std::int64_t windows, std::int64_t tokens) const {
    return detail::with(detail::with(*this, &TokenLoaderConfig::batch_size, windows),
                        &TokenLoaderConfig::length, tokens);
  }
  TokenLoaderConfig with_seed(std::uint64_t v) const {
    return detail::with(*this, &TokenLoaderConfig::seed, v);
  }
  TokenLoaderConfig with_shuffle(bool v) const { return detail::with(*this, &TokenLoaderConfig::shuffle, v); }
  TokenLoaderConfig with_vocab(std::int64_t v) const {
    return detail::with(*this, &TokenLoaderConfig::vocabulary, v);
  }
  TokenLoaderConfig with_rank(std::int64_t number, std::int64_t of) const {
    return detail::with(detail::with(*this, &TokenLoaderConfig::rank, number), &TokenLoaderConfig::ranks, of);
  }
  TokenLoaderConfig with_dtype(DType v) const { return detail::with(*this, &TokenLoaderConfig::dtype, v); }
  /// Throws ValueError for sizes below 1, a vocabulary above 2^31, and a rank that is not below ranks.
  void check() const;
};

/// The windows of a file begin at its tokens 0, T, 2T, ... and have T + 1 tokens: neighbours share one, and
/// the tokens at the end that fill no window are left out. An epoch takes the files in a random order, and
/// the windows of each file in a random order, so that one file is read after the other. Every window comes
/// once in an epoch, over all ranks. What does not fill a batch on every rank, less than batch_size * ranks
/// windows at the end of the epoch's order, is dropped; with a shuffle these are others in every epoch.
/// One thread at a time; a Prefetch may be that thread.
class FERRITE_API TokenLoader final : public BatchSource {
 public:
  /// Maps all files. Throws as TokenFile::open does; ValueError for a config that `check` refuses, for no
  /// files, for a file that is shorter than one window, for too few windows to fill a batch, and for an id in
  /// the first window of a file that is not in the vocabulary.
  explicit TokenLoader(const std::vector<std::filesystem::path>& files, TokenLoaderConfig config = {});
  /// The files that a pattern matches, as matching_files has them: "shards/train_*.bin".
  template <class Pattern>
  requires std::convertible_to<const Pattern&, std::string>
  explicit TokenLoader(const Pattern& pattern, TokenLoaderConfig config = {})
      : TokenLoader(matching_files(pattern), std::move(config)) {}

  /// # Shapes: x [batch_size, length], y the same, i32: y[i, t] is the token after x[i, t].
  /// The batch at the position, which moves on; epochs follow each other without end. Throws ValueError for
  /// an id that is not in the vocabulary, as TokenFile::copy does, and then stays where it is.
  HostBatch next();
  std::optional<HostBatch> pull() override { return next(); }

  std::int64_t batches_per_epoch() const { return batches_; }
  /// Windows of an epoch over all ranks, with those that are dropped; and the tokens of all files.
  std::int64_t windows() const { return windows_; }
  std::int64_t tokens() const { return tokens_; }
  const TokenLoaderConfig& config() const { return config_; }

  /// What fixes the order of the data, with a checksum of the beginnings of the files. It is the same on all
  /// ranks, so that all can resume from the checkpoint of one.
  std::string describe() const override;
  LoaderPosition position() const override { return {position_.epoch, position_.batch * config_.ranks}; }
  bool can_seek() const override { return true; }
  /// The batches after a seek are, bit for bit, those of a loader that came there by itself. Throws
  /// ValueError for a position that no epoch has.
  void seek(LoaderPosition position) override;
  std::int64_t batch_size() const override { return config_.batch_size; }

 private:
  struct Place {
    std::size_t file;
    std::int64_t window;
  };
  void start_epoch(std::int64_t epoch);
  void enter(std::size_t turn);
  Place place_of(std::int64_t number);
  std::uint64_t stream(std::uint64_t part) const;

  std::vector<TokenFile> files_;
  TokenLoaderConfig config_;
  std::int64_t windows_ = 0, tokens_ = 0, batches_ = 0;
  std::uint64_t checksum_ = 0;
  LoaderPosition position_;
  // The order of epoch `epoch_`: the files by turn, how many windows come before each turn, and the order of
  // windows in the file of the turn `turn_`.
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> turns_, before_;
  std::size_t turn_ = 0;
  std::vector<std::int64_t> order_;
};

}  // namespace ferrite::data
