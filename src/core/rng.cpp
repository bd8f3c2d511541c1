// The stream counter with its recording scopes, and shuffling.
#include "ferrite/core/rng.hpp"

#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

thread_local RngReplay* innermost = nullptr;

}  // namespace

RandomKey Rng::next() { return RngReplay::draw(innermost, *this); }

RngReplay::RngReplay(Mode mode, std::vector<RandomKey>& log, std::vector<Rng*>* sources)
    : mode_(mode), log_(log), sources_(sources), outer_(innermost) {
  innermost = this;
}

RngReplay::~RngReplay() { innermost = outer_; }

RandomKey RngReplay::draw(RngReplay* scope, Rng& rng) {
  if (!scope) return {rng.seed_, rng.position_++};
  if (scope->mode_ == Record) {
    const RandomKey key = scope->log_.emplace_back(draw(scope->outer_, rng));
    if (scope->sources_) scope->sources_->push_back(&rng);
    return key;
  }
  if (scope->position_ == scope->log_.size()) {
    throw ValueError(
        fmt::format("[rng] replay of {} keys: more were drawn than recorded", scope->log_.size()));
  }
  return scope->log_[scope->position_++];
}

std::vector<std::int64_t> random_permutation(std::int64_t n, RandomKey key) {
  if (n < 0) throw ValueError(fmt::format("[random_permutation] n {}: must not be negative", n));
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t i = n - 1; i > 0; --i) {
    const std::int64_t j = integer_at(key, static_cast<std::uint64_t>(i), 0, i + 1);
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(j)]);
  }
  return order;
}

}  // namespace ferrite
