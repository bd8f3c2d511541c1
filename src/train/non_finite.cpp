// Where a NaN or inf came from, in words.
#include "ferrite/train/non_finite.hpp"

#include <fmt/format.h>

namespace ferrite::train {
namespace {

std::string bad_row(std::string_view name, const HostTensor& x) {
  const std::int64_t index = first_non_finite(x);
  if (index < 0) return {};
  const std::int64_t row = index / std::max<std::int64_t>(x.numel() / x.shape()[0], 1);
  return fmt::format("{} of the batch holds {} in row {}", name, first_nan(x) >= 0 ? "NaN" : "inf", row);
}

}  // namespace

void FirstNonFinite::see(std::string_view op, const HostTensor& result) {
  if (!nan_.empty()) return;
  const auto place = [&] {
    return fmt::format("[{}], {}", op, to_string(Meta{result.shape(), result.dtype()}));
  };
  if (first_nan(result) >= 0)
    nan_ = place();
  else if (inf_.empty() && first_non_finite(result) >= 0)
    inf_ = place();
}

std::string FirstNonFinite::describe() const {
  const auto first = [](std::string_view what, const std::string& place) {
    return fmt::format("the first op whose result holds {} is {}", what, place);
  };
  if (nan_.empty() && inf_.empty()) return "run once more, every op gave finite results";
  if (inf_.empty()) return first("NaN", nan_);
  if (nan_.empty()) return first("inf", inf_);
  return fmt::format("{}, after inf in {}", first("NaN", nan_), inf_);
}

std::string non_finite_input(const data::HostBatch& batch) {
  std::string text = bad_row("x", batch.x);
  if (text.empty()) text = bad_row("y", batch.y);
  for (std::size_t i = 0; i < batch.more.size() && text.empty(); ++i)
    text = bad_row(fmt::format("more[{}]", i), batch.more[i]);
  return text;
}

}  // namespace ferrite::train
