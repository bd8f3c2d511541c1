// Which windows make which batch.
#include "ferrite/data/token_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/hash.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"

namespace ferrite::data {
namespace {

/// Distinct from the streams that an Rng of the same seed hands out, which count from 0, and from those of a
/// DataLoader, which count from 2^63.
constexpr std::uint64_t window_streams = std::uint64_t{3} << 62;

std::int64_t window_count(const TokenFile& file, std::int64_t length) {
  return file.size() == 0 ? 0 : (file.size() - 1) / length;
}

/// Random or ascending, 0 .. n-1.
std::vector<std::int64_t> order_of(std::int64_t n, const TokenLoaderConfig& config, std::uint64_t stream) {
  if (config.shuffle) return random_permutation(n, {config.seed, stream});
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}

}  // namespace

void TokenLoaderConfig::check() const {
  const auto refuse = [](std::string_view what, std::int64_t value, std::string_view rule) {
    throw ValueError(fmt::format("[token loader] {} {}: {}", what, value, rule));
  };
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (batch_size < 1 || batch_size > most) refuse("batch of", batch_size, "must be 1 to 2^31 windows");
  if (length < 1 || length > most) refuse("windows of", length, "must be 1 to 2^31 tokens");
  if (vocabulary < 1 || vocabulary > TokenFile::any_vocabulary)
    refuse("vocabulary", vocabulary, "must be 1 to 2^31");
  if (ranks < 1) refuse("ranks", ranks, "must be at least 1");
  if (rank < 0 || rank >= ranks) refuse("rank", rank, fmt::format("must be 0 to {}", ranks - 1));
}

TokenLoader::TokenLoader(const std::vector<std::filesystem::path>& files, TokenLoaderConfig config)
    : config_(std::move(config)) {
  config_.check();
  if (files.empty()) throw ValueError("[token loader] no files: give at least one token file");
  std::vector<std::int32_t> first;
  const auto mix = [this](std::uint64_t word) { checksum_ = hash_word(word, checksum_); };
  for (const std::filesystem::path& path : files) {
    const TokenFile& file = files_.emplace_back(TokenFile::open(path, config_.dtype));
    if (window_count(file, config_.length) == 0)
      throw ValueError(fmt::format(
          "[token loader] {}: {} tokens, but a window has {}: leave the file out, join it with others, or "
          "take shorter windows",
          path.string(), file.size(), config_.length + 1));
    windows_ += window_count(file, config_.length);
    tokens_ += file.size();
    first.resize(static_cast<std::size_t>(config_.length) + 1);
    file.copy(0, first, config_.vocabulary);
    mix(static_cast<std::uint64_t>(file.size()));
    for (const std::int32_t id : first) mix(static_cast<std::uint64_t>(id));
  }
  batches_ = windows_ / config_.batch_size / config_.ranks;
  if (batches_ == 0)
    throw ValueError(
        fmt::format("[token loader] {} windows of {} tokens: a batch of {} on each of {} ranks needs more: "
                    "take smaller batches, shorter windows or more tokens",
                    windows_, config_.length + 1, config_.batch_size, config_.ranks));
}

std::string TokenLoader::describe() const {
  return fmt::format("{} tokens in {} files ({:016x}), windows of {} in batches of {}, {}", tokens_,
                     files_.size(), checksum_, config_.length + 1, config_.batch_size,
                     config_.shuffle ? fmt::format("shuffled by seed {}", config_.seed) : "in order");
}

/// Part 0 is the order of the files; part 1 + n that of the windows of file n.
std::uint64_t TokenLoader::stream(std::uint64_t part) const {
  return window_streams + static_cast<std::uint64_t>(epoch_) * (files_.size() + 1) + part;
}

void TokenLoader::start_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  turns_ = order_of(static_cast<std::int64_t>(files_.size()), config_, stream(0));
  before_.assign(1, 0);
  for (const std::int64_t file : turns_)
    before_.push_back(before_.back() + window_count(files_[static_cast<std::size_t>(file)], config_.length));
  enter(0);
}

void TokenLoader::enter(std::size_t turn) {
  turn_ = turn;
  order_ = order_of(before_[turn + 1] - before_[turn], config_,
                    stream(1 + static_cast<std::uint64_t>(turns_[turn])));
}

/// The window that comes as number `number` of the epoch, counted over all ranks.
TokenLoader::Place TokenLoader::place_of(std::int64_t number) {
  const auto next_turn = std::ranges::upper_bound(before_, number);
  const auto turn = static_cast<std::size_t>(next_turn - before_.begin()) - 1;
  if (turn != turn_) enter(turn);
  return {static_cast<std::size_t>(turns_[turn]), order_[static_cast<std::size_t>(number - before_[turn])]};
}

HostBatch TokenLoader::next() {
  if (epoch_ != position_.epoch) start_epoch(position_.epoch);
  const auto length = static_cast<std::size_t>(config_.length);
  const Shape shape{config_.batch_size, config_.length};
  std::vector<std::int32_t> window(length + 1);
  HostTensor targets;
  const HostTensor ids = HostTensor::make(DType::i32, shape, [&](std::span<std::byte> x) {
    targets = HostTensor::make(DType::i32, shape, [&](std::span<std::byte> y) {
      const std::size_t row_bytes = length * sizeof(std::int32_t);
      for (std::int64_t row = 0; row < config_.batch_size; ++row) {
        const std::int64_t number =
            (position_.batch * config_.batch_size + row) * config_.ranks + config_.rank;
        const Place place = place_of(number);
        files_[place.file].copy(place.window * config_.length, window, config_.vocabulary);
        const std::size_t at = static_cast<std::size_t>(row) * row_bytes;
        std::memcpy(x.data() + at, window.data(), row_bytes);
        std::memcpy(y.data() + at, window.data() + 1, row_bytes);
      }
    });
  });
  if (++position_.batch == batches_) position_ = {position_.epoch + 1, 0};
  return {ids, targets};
}

void TokenLoader::seek(LoaderPosition position) {
  position_ =
      position_on_rank("token loader", position, windows_ / config_.batch_size, config_.ranks, batches_);
}

}  // namespace ferrite::data
