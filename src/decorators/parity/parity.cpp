// The parts of Parity that do not depend on the backend: counting, reports, replay files.
#include "ferrite/decorators/parity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "ferrite/io/safetensors.hpp"
#include "ferrite/ops/launch.hpp"
#include "tensor/op_names.hpp"

namespace ferrite {

ParityConfig ParityConfig::with_every(std::int64_t n) const {
  if (n < 1) throw ValueError(fmt::format("[parity] every {}: must be at least 1", n));
  return detail::with(*this, &ParityConfig::every, n);
}
ParityConfig ParityConfig::with_files(std::int64_t count, std::int64_t bytes) const {
  if (count < 0 || bytes < 0)
    throw ValueError(fmt::format("[parity] {} files of {} bytes: must not be negative", count, bytes));
  return detail::with(detail::with(*this, &ParityConfig::max_files, count), &ParityConfig::max_bytes, bytes);
}

namespace detail {

ByteSpan byte_span(const Array& array) {
  const Layout& layout = array.layout();
  std::int64_t first = layout.offset, last = layout.offset;
  for (int i = 0; i < layout.shape.rank(); ++i) {
    const std::int64_t reach = (layout.shape[i] - 1) * layout.strides[i];
    (reach < 0 ? first : last) += reach;
  }
  const bool empty = layout.shape.numel() == 0;
  const auto size = static_cast<std::int64_t>(size_of(array.dtype()));
  ByteSpan span;
  span.bytes = {array.buffer(),
                Layout{{empty ? 0 : (last - first + 1) * size}, {1}, empty ? 0 : first * size}, DType::u8};
  span.layout = layout;
  span.layout.offset = empty ? 0 : layout.offset - first;
  return span;
}

}  // namespace detail

namespace {

Shape unravel(std::int64_t index, const Shape& shape) {
  Shape place = shape;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    place[i] = index % shape[i];
    index /= shape[i];
  }
  return place;
}

std::string joined(const std::vector<Meta>& metas) {
  std::string text;
  for (const Meta& m : metas) text += (text.empty() ? "" : ", ") + to_string(m);
  return text.empty() ? "nothing" : text;
}

bool is_of_library(std::string_view op, std::string_view backend) {
  static constexpr std::string_view backends[] = {"reference", "cpu", "cuda", "lazy-cpu", "lazy-cuda"};
  return detail::is_library_op(op) &&
         std::find(std::begin(backends), std::end(backends), backend) != std::end(backends);
}

std::string verdict(const ParityReport& r) {
  const bool backend = r.backend_error <= r.comparison.allowed,
             reference = r.reference_error <= r.comparison.allowed;
  if (backend && reference) return "both are close to it";
  if (backend || reference) return (backend ? r.backend : r.reference) + " is right";
  return "neither is right";
}

}  // namespace

std::string ParityReport::message() const {
  std::string text =
      fmt::format("[{}] {} and {} differ: {} -> {}{}, attributes {}\n", op, backend, reference,
                  joined(inputs), joined(outputs), accumulated ? " (accumulating)" : "", attributes);
  text += fmt::format(
      "  output {} at {}: {} has {:.9g}, {} has {:.9g}; error {:.3g}, allowed {:.3g}; {} of {} elements "
      "differ\n",
      output, to_string(place), backend, comparison.value, reference, comparison.expected, comparison.error,
      comparison.allowed, comparison.differing, outputs[output].shape.numel());
  text += fmt::format("  in float64 it is {:.9g}: {} is off by {:.3g}, {} by {:.3g}; {}\n", exact, backend,
                      backend_error, reference, reference_error, verdict(*this));
  if (!file_error.empty()) return text + "  the inputs were not written: " + file_error;
  if (own)
    return text +
           fmt::format("  replay: {} by a program whose Replayer has {} on {} (ferrite/stacks/replay.hpp)",
                       file.string(), op, backend);
  return text + fmt::format("  replay: ferrite replay {} --backend {}", file.string(), backend);
}

struct ParityMonitor::State {
  struct Counts {
    std::int64_t calls = 0, compared = 0, mismatches = 0;
    double worst = 0;
  };
  mutable std::mutex mutex;
  std::map<std::string, Counts, std::less<>> ops;
  std::vector<ParityReport> reports;
  std::int64_t files = 0, bytes = 0, left_out = 0;

  Counts& of(std::string_view op) {
    const auto found = ops.find(op);
    return found != ops.end() ? found->second : ops.emplace(op, Counts{}).first->second;
  }
};

ParityMonitor::ParityMonitor(ParityConfig config, std::string backend, std::string reference)
    : config_(std::move(config)),
      backend_(std::move(backend)),
      reference_(std::move(reference)),
      state_(new State) {}
ParityMonitor::~ParityMonitor() = default;

bool ParityMonitor::begin(std::string_view op) {
  const std::lock_guard lock(state_->mutex);
  State::Counts& counts = state_->of(op);
  return counts.calls++ % config_.every == 0;
}

void ParityMonitor::check(const detail::ComparedCall& call, std::span<const Layout> layouts) {
  const std::vector<Comparison> results = detail::compare_outputs(call);
  const auto worst =
      std::max_element(results.begin(), results.end(),
                       [](const Comparison& a, const Comparison& b) { return a.ratio < b.ratio; });
  const bool mismatch = worst != results.end() && !worst->agrees();
  std::size_t known = 0;
  {
    const std::lock_guard lock(state_->mutex);
    State::Counts& counts = state_->of(call.op.name());
    ++counts.compared;
    if (worst != results.end()) counts.worst = std::max(counts.worst, worst->ratio);
    if (mismatch) ++counts.mismatches;
    known = state_->reports.size();
  }
  const bool throws = config_.throws == ParityConfig::Throw::by_mode
                          ? config_.mode == ParityMode::resync
                          : config_.throws == ParityConfig::Throw::yes;
  if (!mismatch) return;
  if (!throws && known >= max_reports) {
    const std::lock_guard lock(state_->mutex);
    ++state_->left_out;
    return;
  }
  ParityReport report = describe(call, static_cast<std::size_t>(worst - results.begin()), *worst);
  if (has_room_for_a_file())
    write(report, call, layouts);
  else
    report.file_error = "there are enough files; ParityConfig::with_files allows more";
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->reports.size() < max_reports) state_->reports.push_back(report);
  }
  if (throws) throw BackendError(report.message());
}

ParityReport ParityMonitor::describe(const detail::ComparedCall& call, std::size_t output,
                                     const Comparison& comparison) const {
  ParityReport report;
  report.op = call.op.name();
  report.attributes = call.op.info->attributes(call.op.op);
  report.backend = backend_;
  report.reference = reference_;
  report.own = !is_of_library(call.op.info->type_name, backend_);
  for (const Meta& m : detail::metas_of(call.inputs)) report.inputs.push_back(m);
  for (const Meta& m : detail::metas_of(call.outputs)) report.outputs.push_back(m);
  report.output = output;
  report.place = unravel(comparison.index, call.outputs[output].shape());
  report.comparison = comparison;
  report.accumulated = accumulates(call.mask, output);
  report.exact = detail::evaluate_in_double(call)[output][static_cast<std::size_t>(comparison.index)];
  report.backend_error = std::abs(comparison.value - report.exact);
  report.reference_error = std::abs(comparison.expected - report.exact);
  return report;
}

bool ParityMonitor::has_room_for_a_file() const {
  const std::lock_guard lock(state_->mutex);
  const bool room = state_->files < config_.max_files && state_->bytes < config_.max_bytes;
  ++(room ? state_->files : state_->left_out);
  return room;
}

void ParityMonitor::write(ParityReport& report, const detail::ComparedCall& call,
                          std::span<const Layout> layouts) const {
  SafeTensors content;
  content.metadata = {{"format", "ferrite replay 1"},
                      {"ferrite", FERRITE_VERSION},
                      {"op", std::string(call.op.info->type_name)},
                      {"attributes", report.attributes},
                      {"backend", backend_},
                      {"reference", reference_},
                      {"accumulate", std::to_string(static_cast<std::uint32_t>(call.mask))},
                      {"allowed_error", fmt::format("{}", report.comparison.allowed)}};
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const std::string name = fmt::format("in{}", i);
    content.tensors[name] = call.inputs[i];
    if (layouts[i].is_contiguous()) continue;
    // A fault may depend on the strides: replay gives the input the same layout.
    const Shape& strides = layouts[i].strides;
    content.metadata[name + ".strides"] = fmt::format("[{}]", fmt::join(strides.begin(), strides.end(), ","));
  }
  for (std::size_t k = 0; k < call.outputs.size(); ++k) {
    content.tensors[fmt::format("out{}", k)] = call.expected[k];
    content.tensors[fmt::format("got{}", k)] = call.outputs[k];
    if (accumulates(call.mask, k)) content.tensors[fmt::format("before{}", k)] = call.before[k];
  }
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [name, tensor] : content.tensors)
      state_->bytes += static_cast<std::int64_t>(tensor.bytes().size());
  }
  try {
    std::filesystem::create_directories(config_.directory);
    int number = 1;
    do {
      report.file = config_.directory / fmt::format("{}-{}.safetensors", report.op, number++);
    } while (std::filesystem::exists(report.file));
    write_safetensors(report.file, content);
  } catch (const std::exception& e) {
    report.file_error = e.what();
  }
}

std::vector<ParityReport> ParityMonitor::reports() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reports;
}

std::int64_t ParityMonitor::files_left_out() const {
  const std::lock_guard lock(state_->mutex);
  return state_->left_out;
}

void ParityMonitor::reset() {
  const std::lock_guard lock(state_->mutex);
  state_->ops.clear();
  state_->reports.clear();
  state_->files = state_->bytes = state_->left_out = 0;
}

std::string ParityMonitor::table() const {
  const std::lock_guard lock(state_->mutex);
  std::size_t width = 5;
  State::Counts total;
  for (const auto& [name, counts] : state_->ops) {
    width = std::max(width, name.size());
    total.calls += counts.calls;
    total.compared += counts.compared;
    total.mismatches += counts.mismatches;
    total.worst = std::max(total.worst, counts.worst);
  }
  std::string text = fmt::format("{:<{}} {:>10} {:>10} {:>10} {:>14}\n", "op", width, "calls", "compared",
                                 "mismatches", "error/allowed");
  const auto line = [&](std::string_view name, const State::Counts& c) {
    text += fmt::format("{:<{}} {:>10} {:>10} {:>10} {:>14.3g}\n", name, width, c.calls, c.compared,
                        c.mismatches, c.worst);
  };
  for (const auto& [name, counts] : state_->ops) line(name, counts);
  line("total", total);
  if (state_->left_out > 0)
    text += fmt::format("replay files: {} written to {}, {} left out (ParityConfig::with_files)\n",
                        state_->files, config_.directory.string(), state_->left_out);
  return text;
}

}  // namespace ferrite
