#include "ferrite/dist/data_parallel.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "core/hash.hpp"

namespace ferrite::dist {

std::vector<double> mean(Group& group, std::span<const double> values, double weight) {
  detail::check_weight(weight, true);
  const Array sums = detail::host_array({{static_cast<std::int64_t>(values.size()) + 1}, DType::f64});
  double* const totals = sums.data<double>();
  totals[0] = weight;
  // 0 times what a rank without rows has, NaN perhaps, would not be 0.
  for (std::size_t i = 0; i < values.size(); ++i) totals[i + 1] = weight == 0 ? 0 : values[i] * weight;
  group.all_reduce(sums, sums);
  std::vector<double> means(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) means[i] = totals[i + 1] / totals[0];
  return means;
}

double mean(Group& group, double value, double weight) {
  return mean(group, std::span<const double>(&value, 1), weight)[0];
}

namespace detail {

namespace {

/// The text of rank `root`, which is `length` long there.
std::vector<std::string> lines_of(Group& group, std::string text, int root, std::int64_t length) {
  const Array bytes = host_array({{length}, DType::u8});
  if (group.rank() == root) std::memcpy(bytes.data(), text.data(), text.size());
  group.broadcast(bytes, root);
  text.assign(bytes.data<char>(), static_cast<std::size_t>(length));
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

void check_same_lines(Group& group, std::span<const std::string> lines, const Difference& difference) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  const Array mine = host_array({{2}, DType::i64});
  mine.data<std::int64_t>()[0] = static_cast<std::int64_t>(text.size());
  mine.data<std::int64_t>()[1] = static_cast<std::int64_t>(hash_text(text));
  const Array all = host_array({{2 * group.size()}, DType::i64});
  group.all_gather(mine, all);
  const std::int64_t* const marks = all.data<std::int64_t>();
  for (int rank = 1; rank < group.size(); ++rank) {
    if (std::equal(marks, marks + 2, marks + 2 * rank)) continue;
    const auto first = lines_of(group, text, 0, marks[0]);
    const auto other = lines_of(group, text, rank, marks[2 * rank]);
    std::size_t i = 0;
    while (i < first.size() && i < other.size() && first[i] == other[i]) ++i;
    const auto line = [&](const std::vector<std::string>& of) {
      return i < of.size() ? of[i] : "nothing more";
    };
    throw DistError(fmt::format("[{}] the ranks have different {}: rank {} has {}, rank 0 has {}: {}",
                                difference.who, difference.what, rank, line(other), line(first),
                                difference.advice));
  }
}

void check_weight(double weight, bool may_be_zero) {
  if (!std::isfinite(weight) || weight < 0 || (weight == 0 && !may_be_zero))
    throw ValueError(fmt::format(
        "[DataParallel] a weight of {}: needs a finite number {}", weight,
        may_be_zero ? "that is not negative" : "above 0; a rank without rows calls finish() alone"));
}

void throw_not_empty(const std::string& leaf) {
  throw GradientError(
      fmt::format("[DataParallel] '{}' has a gradient before the first micro-batch of a step: begin every "
                  "step with new Gradients",
                  leaf));
}

void throw_not_finished(std::string_view what) {
  throw ValueError(fmt::format(
      "[DataParallel] {} between backward and finish: the group is busy until finish() has returned", what));
}

void throw_failed() {
  throw DistError(
      "[DataParallel] a step of this rank has failed, and the ranks are no longer at the same place: end the "
      "program, and begin again from a checkpoint");
}

void throw_not_known(const std::string& parameter) {
  throw ValueError(
      fmt::format("[DataParallel] there is no parameter '{}' here: give the optimiser the parameters of the "
                  "model that this object was made from",
                  parameter));
}

void throw_not_dense(const std::string& parameter) {
  throw ValueError(fmt::format(
      "[DataParallel] shard_optimizer: the parameter '{}' is a view whose elements do not follow each "
      "other: make it of contiguous(x)",
      parameter));
}

void throw_claimed() {
  throw ValueError(
      "[DataParallel] shards() of two optimisers: the step of one ends the use of the gradients; give all "
      "parameters to one, with groups");
}

void throw_not_claimed() {
  throw ValueError(
      "[DataParallel] shard_optimizer, but no optimiser was made with shards(): it would use sums that this "
      "rank "
      "does not have; give it shards() as its last argument");
}

void throw_not_recordable(const std::string& group) {
  throw ValueError(
      fmt::format("[DataParallel] a step cannot be recorded: the group ({}) does not work on the queue of "
                  "the model's device; use finish()",
                  group));
}

}  // namespace detail

}  // namespace ferrite::dist
