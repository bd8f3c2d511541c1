#include "ferrite/dist/buckets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ferrite/core/error.hpp"

namespace ferrite::dist {

BucketPlan plan_buckets(std::span<const Meta> parameters, std::int64_t bucket_bytes, int parts) {
  if (bucket_bytes < 1 || parts < 1)
    throw ValueError(fmt::format("[DataParallel] bucket_bytes is {}, in {} parts: needs at least 1 of each",
                                 bucket_bytes, parts));
  constexpr std::int64_t alignment = 64;
  BucketPlan plan;
  plan.parts = parts;
  plan.places.resize(parameters.size());
  std::map<DType, std::size_t> arena_of;
  std::vector<Bucket> open;  // by arena
  const auto close = [&](Bucket& bucket) {
    Meta& arena = plan.arenas[bucket.arena];
    const std::int64_t unit = parts * alignment / static_cast<std::int64_t>(size_of(arena.dtype));
    bucket.count = (bucket.count + unit - 1) / unit * unit;
    arena.shape = {bucket.begin + bucket.count};
    for (const std::size_t i : bucket.parameters) plan.places[i].bucket = plan.buckets.size();
    const Bucket next{bucket.arena, bucket.begin + bucket.count, 0, {}};
    plan.buckets.push_back(std::move(bucket));
    bucket = next;
  };
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const auto [found, is_new] = arena_of.try_emplace(parameters[i].dtype, plan.arenas.size());
    if (is_new) {
      plan.arenas.push_back({{0}, parameters[i].dtype});
      open.push_back({found->second, 0, 0, {}});
    }
    Bucket& bucket = open[found->second];
    const auto size = static_cast<std::int64_t>(size_of(parameters[i].dtype));
    const std::int64_t unit = alignment / size;
    plan.places[i] = {bucket.arena, 0, bucket.begin + bucket.count};
    bucket.parameters.push_back(i);
    bucket.count += std::max<std::int64_t>((parameters[i].shape.numel() + unit - 1) / unit, 1) * unit;
    if (bucket.count * size >= bucket_bytes) close(bucket);
  }
  for (Bucket& bucket : open)
    if (!bucket.parameters.empty()) close(bucket);
  return plan;
}

optim::Share share_of(const BucketPlan& plan, std::size_t parameter, std::int64_t numel, int part) {
  const BucketPlan::Place& place = plan.places[parameter];
  const Bucket& bucket = plan.buckets[place.bucket];
  const std::int64_t length = bucket.count / plan.parts, first = bucket.begin + part * length - place.begin;
  const std::int64_t begin = std::clamp<std::int64_t>(first, 0, numel);
  return {begin, std::clamp<std::int64_t>(first + length, begin, numel) - begin};
}

}  // namespace ferrite::dist
