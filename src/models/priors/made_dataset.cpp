// One dataset made on the host together with the plans behind it.
#include "models/priors/made_dataset.hpp"

#include <fmt/format.h>

#include "ferrite/core/error.hpp"

namespace ferrite::priors {

MadeDataset::MadeDataset(const Config& c, std::uint64_t seed, std::int64_t dataset) : config(c) {
  op::PriorDatasets op{config, seed, dataset, 1};
  const Metas metas = op.infer({});
  scratch_ = std::make_unique<CpuScratch>(config);
  for (const Meta& meta : metas) bytes_.emplace_back(meta.bytes());
  std::vector<void*> pointers;
  for (auto& b : bytes_) pointers.push_back(b.data());
  out_ = slice_of(pointers.data(), config, 0);
  SerialTeam team;
  generate_dataset(team, config, seed, static_cast<std::uint64_t>(dataset), plan(), workspace(), out_);
  if (out_.info[info_rows] == 0)
    throw ValueError(fmt::format("[priors] dataset {} of seed {}: all {} attempts were rejected", dataset,
                                 seed, config.post.attempts));
  key = {seed, static_cast<std::uint64_t>(dataset), static_cast<std::uint32_t>(out_.info[info_attempts] - 1)};
  shape = draw_dataset_shape(config, key);
  features_ = out_.info[info_features];
  classes_ = out_.info[info_classes];
  columns_.assign(workspace().post->column, workspace().post->column + features_);
}

}  // namespace ferrite::priors
