#include "cli/gpt/token_shards.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/error.hpp"

namespace ferrite::cli::gpt {
namespace {

[[noreturn]] void refuse(const std::string& pattern) {
  throw ValueError(fmt::format(
      "[gpt tokens] --out '{}': the number of a file is %d or %04d, once; %% is the sign itself", pattern));
}

}  // namespace

ShardNames::ShardNames(const std::string& pattern) {
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    std::string& part = numbered_ ? after_ : before_;
    if (pattern[i] != '%') {
      part += pattern[i];
      continue;
    }
    ++i;
    if (i < pattern.size() && pattern[i] == '%') {
      part += '%';
      continue;
    }
    const std::size_t end = pattern.find_first_not_of("0123456789", i);
    if (numbered_ || end == std::string::npos || pattern[end] != 'd' || end - i > 2) refuse(pattern);
    numbered_ = true;
    zeros_ = pattern[i] == '0';
    width_ = end == i ? 0 : std::stoi(pattern.substr(i, end - i));
    i = end;
  }
}

std::filesystem::path ShardNames::at(std::int64_t number) const {
  if (!numbered_) return before_;
  return before_ + (zeros_ ? fmt::format("{:0{}}", number, width_) : fmt::format("{:{}}", number, width_)) +
         after_;
}

TokenShards::TokenShards(ShardNames names, DType dtype, std::int64_t tokens, bool overwrite,
                         std::vector<std::filesystem::path> kept)
    : names_(std::move(names)),
      dtype_(dtype),
      tokens_(tokens),
      overwrite_(overwrite),
      kept_(std::move(kept)) {
  start_file();
}

bool TokenShards::is_kept(const std::filesystem::path& path) const {
  return std::ranges::any_of(kept_, [&](const std::filesystem::path& file) {
    std::error_code ignored;
    return std::filesystem::equivalent(file, path, ignored);
  });
}

void TokenShards::start_file() {
  const std::filesystem::path path = names_.at(static_cast<std::int64_t>(files_.size()));
  std::error_code ignored;
  if (!overwrite_ && std::filesystem::exists(path, ignored))
    throw ValueError(
        fmt::format("[gpt tokens] {}: is there already: give another --out, or --overwrite", path.string()));
  if (is_kept(path))
    throw ValueError(
        fmt::format("[gpt tokens] --out would replace {}, which is read: give another --out", path.string()));
  writer_.emplace(path, dtype_);
}

TokenShards::~TokenShards() {
  if (committed_) return;
  std::error_code ignored;
  for (const std::filesystem::path& file : files_) std::filesystem::remove(file, ignored);
}

void TokenShards::finish_file() {
  writer_->commit();
  files_.push_back(names_.at(static_cast<std::int64_t>(files_.size())));
  writer_.reset();
}

void TokenShards::write(std::span<const std::int32_t> tokens) {
  size_ += static_cast<std::int64_t>(tokens.size());
  while (!tokens.empty()) {
    const std::int64_t room = tokens_ - writer_->size();
    if (room > 0) {
      const auto count = std::min(tokens.size(), static_cast<std::size_t>(room));
      writer_->write(tokens.first(count));
      tokens = tokens.subspan(count);
      continue;
    }
    if (!names_.numbered())
      throw ValueError(
          fmt::format("[gpt tokens] {}: holds {} tokens, and there are more: give --out a "
                      "number, such as 'shard_%04d.bin'",
                      names_.at(0).string(), tokens_));
    const auto enough = static_cast<std::size_t>(tokens_ / 100 + 1);
    const std::size_t count = std::min(tokens.size(), enough - rest_.size());
    rest_.insert(rest_.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count));
    tokens = tokens.subspan(count);
    if (rest_.size() < enough) continue;
    finish_file();
    start_file();
    writer_->write(rest_);
    rest_.clear();
  }
}

void TokenShards::commit() {
  writer_->write(rest_);
  finish_file();
  committed_ = true;
  std::error_code ignored;
  for (auto next = static_cast<std::int64_t>(files_.size()); overwrite_ && names_.numbered(); ++next)
    if (is_kept(names_.at(next)) || !std::filesystem::remove(names_.at(next), ignored)) break;
}

}  // namespace ferrite::cli::gpt
