// What `ferrite pfn train` is asked to do, and the training itself for one kind of arithmetic.
#pragma once

#include <string>
#include <vector>

#include "cli/training_ranks.hpp"
#include "ferrite/models/pfn/config.hpp"
#include "ferrite/models/pfn/course.hpp"
#include "ferrite/models/pfn/table.hpp"
#include "ferrite/stacks/any_backend.hpp"

namespace ferrite::cli::pfn {

struct TrainOptions {
  std::string out, export_to, backend = "auto", precision = "auto", optimizer = "muon";
  ferrite::pfn::Config model;
  ferrite::pfn::CourseConfig course;
  std::int64_t steps = 0, warmup = -1, cells = 100'000, recorded = 64;
  std::int64_t report_every = 50, evaluate_every = 1000, evaluate_batches = 20, checkpoint_every = 1000;
  double lr = 0, weight_decay = 0.01, clip = 1, average = 0.999, evaluate_minutes = 0;
  std::uint64_t seed = 1;
  std::vector<std::string> tables;    // "FILE:TARGET"
  ferrite::pfn::TableConfig reading;  // of them
  bool resume = false, quiet = false, shard_optimizer = false;
};

/// Trains with parameters in f32. Products are in f32 too, or of operands that are rounded to bf16. Returns
/// an exit code.
int train_f32(const AnyBackend& backend, TrainingRanks& ranks, const TrainOptions& options);
int train_bf16(const AnyBackend& backend, TrainingRanks& ranks, const TrainOptions& options);

}  // namespace ferrite::cli::pfn
