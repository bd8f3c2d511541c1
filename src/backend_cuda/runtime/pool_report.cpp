// Reports and settings of a pool: statistics, report, event log, out-of-memory message, limit and
// environment.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "backend_cuda/runtime/pool.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cuda {

double PoolStats::fragmentation() const {
  const std::size_t free = cached - parked;
  return free == 0 ? 0.0 : 1.0 - static_cast<double>(largest_free) / static_cast<double>(free);
}

MemoryStats Pool::stats() const {
  const std::lock_guard guard(lock_);
  return {stats_.in_use, stats_.peak, stats_.reserved - stats_.in_use, stats_.allocations};
}

void Pool::reset_peak() {
  const std::lock_guard guard(lock_);
  stats_.peak = stats_.in_use;
}

std::size_t Pool::limit() const {
  const std::lock_guard guard(lock_);
  return stats_.limit;
}

void Pool::set_limit(std::size_t bytes) {
  const std::lock_guard guard(lock_);
  stats_.limit = bytes;
}

PoolStats Pool::pool_stats() const {
  const std::lock_guard guard(lock_);
  PoolStats stats = stats_;
  stats.cached = stats.reserved - stats.in_use;
  stats.largest_free = std::max(small_.largest(), large_.largest());
  return stats;
}

std::string format_bytes(std::size_t bytes) {
  static constexpr const char* units[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 1023.995 && unit < 3; ++unit) value /= 1024;
  return fmt::format("{:.2f} {}", value, units[unit]);
}

std::size_t parse_bytes(std::string_view name, std::string_view text) {
  std::size_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  int shift = 0;
  if (!suffix.empty()) {
    constexpr std::string_view letters = "KMGT";
    const std::size_t letter = letters.find(static_cast<char>(suffix[0] & ~0x20));  // either case
    const std::string_view tail = suffix.substr(1);
    shift = letter == letters.npos || (!tail.empty() && tail != "B" && tail != "iB")
                ? -1
                : 10 * static_cast<int>(letter + 1);
  }
  if (error != std::errc{} || shift < 0 || value == 0 || value > max_block_bytes >> shift) {
    throw ValueError(
        fmt::format("[cuda] {}='{}': must be a number of bytes above 0, with K, M, G or T for powers of "
                    "1024, like 512M or 8G",
                    name, text));
  }
  return value << shift;
}

PoolOptions PoolOptions::from_environment() {
  PoolOptions options;
  if (const char* text = std::getenv("FERRITE_CUDA_MEMORY_LIMIT")) {
    options.limit = parse_bytes("FERRITE_CUDA_MEMORY_LIMIT", text);
  }
  const char* poison = std::getenv("FERRITE_POISON");
  options.poison = poison && std::strcmp(poison, "1") == 0;
  return options;
}

void Pool::throw_out_of_memory(std::size_t bytes) {
  {
    const std::lock_guard guard(lock_);
    if (log_capacity_) log(PoolEvent::Kind::out_of_memory, bytes, OpScope::current());
  }
  const std::string asked = fmt::format("[{}] {} ({} bytes) on {}", OpScope::current(), format_bytes(bytes),
                                        bytes, to_string(device_));
  if (bytes > max_block_bytes) throw OutOfMemory(asked + ": at most 2^47 bytes can be addressed");
  const PoolStats now = pool_stats();
  const auto holders = live_by_op();
  std::string text = fmt::format("{}: out of memory; {} in use by {} blocks", asked, format_bytes(now.in_use),
                                 now.live_blocks);
  if (!holders.empty()) {
    text += fmt::format(" (most by {}: {})", holders[0].op, format_bytes(holders[0].bytes));
  }
  text += fmt::format(", {} cached (largest piece {}), {} free on the device", format_bytes(now.cached),
                      format_bytes(now.largest_free), format_bytes(source_.free_bytes()));
  const bool limited = now.limit < max_block_bytes;
  if (limited) text += fmt::format(", limit {}", format_bytes(now.limit));
  text += ". Use smaller batches, bf16 or checkpoint(), or drop tensors that are no longer needed";
  if (limited) text += ", or raise the limit (FERRITE_CUDA_MEMORY_LIMIT)";
  throw OutOfMemory(text);
}

std::string_view to_string(PoolEvent::Kind kind) {
  static constexpr std::string_view names[] = {"allocate", "free", "segment", "segment_release",
                                               "out_of_memory"};
  return names[static_cast<std::size_t>(kind)];
}

void Pool::log_events(std::size_t capacity) {
  std::vector<PoolEvent> ring;
  ring.reserve(capacity);  // so that logging never allocates
  const std::lock_guard guard(lock_);
  log_.swap(ring);
  log_capacity_ = capacity;
  log_next_ = 0;
  log_start_ = std::chrono::steady_clock::now();
}

void Pool::log(PoolEvent::Kind kind, std::size_t bytes, std::string_view op) noexcept {
  const PoolEvent event{kind, bytes, op, std::chrono::steady_clock::now() - log_start_};
  if (log_.size() < log_capacity_)
    log_.push_back(event);
  else
    log_[log_next_] = event;
  log_next_ = (log_next_ + 1) % log_capacity_;
}

std::vector<PoolEvent> Pool::events() const {
  const std::lock_guard guard(lock_);
  std::vector<PoolEvent> ordered = log_;
  if (ordered.size() == log_capacity_) {
    std::rotate(ordered.begin(), ordered.begin() + static_cast<std::ptrdiff_t>(log_next_), ordered.end());
  }
  return ordered;
}

std::vector<OpMemory> Pool::live_by_op() const {
  std::unordered_map<std::string_view, OpMemory> by_op;
  {
    const std::lock_guard guard(lock_);
    for (const Block* segment : segments_) {
      for (const Block* block = segment; block; block = block->right) {
        if (block->state != BlockState::live) continue;
        OpMemory& entry = by_op[block->op];
        entry.op = block->op;
        entry.bytes += block->bytes;
        entry.largest = std::max(entry.largest, block->bytes);
        ++entry.blocks;
      }
    }
  }
  std::vector<OpMemory> sorted;
  for (const auto& [op, entry] : by_op) sorted.push_back(entry);
  std::sort(sorted.begin(), sorted.end(), [](const OpMemory& a, const OpMemory& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.op < b.op;
  });
  return sorted;
}

std::string Pool::memory_report() const {
  const PoolStats now = pool_stats();
  const auto ops = live_by_op();
  std::string text = fmt::format("memory of {}\n", to_string(device_));
  const auto row = [&](std::string_view name, std::size_t bytes) {
    text += fmt::format("  {:<14} {:>12}\n", name, format_bytes(bytes));
  };
  row("in use", now.in_use);
  row("peak", now.peak);
  row("cached", now.cached);
  row("parked", now.parked);
  row("reserved", now.reserved);
  row("largest free", now.largest_free);
  if (now.limit < max_block_bytes) row("limit", now.limit);
  text += fmt::format("  {:<14} {:>12}\n  {:<14} {:>12}\n  {:<14} {:>11.1f} %\n", "allocations",
                      now.allocations, "segments", now.segments, "fragmentation", 100 * now.fragmentation());
  if (ops.empty()) return text;
  text += fmt::format("  {:<24} {:>8} {:>12} {:>12}\n", "live blocks by op", "blocks", "bytes", "largest");
  constexpr std::size_t shown = 10;
  for (std::size_t i = 0; i < std::min(shown, ops.size()); ++i) {
    text += fmt::format("  {:<24} {:>8} {:>12} {:>12}\n", ops[i].op, ops[i].blocks,
                        format_bytes(ops[i].bytes), format_bytes(ops[i].largest));
  }
  if (ops.size() > shown) text += fmt::format("  and {} more ops\n", ops.size() - shown);
  return text;
}

std::string Pool::memory_report_json() const {
  const PoolStats now = pool_stats();
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (const OpMemory& entry : live_by_op()) {
    ops.push_back(
        {{"op", entry.op}, {"blocks", entry.blocks}, {"bytes", entry.bytes}, {"largest", entry.largest}});
  }
  nlohmann::ordered_json log = nlohmann::ordered_json::array();
  for (const PoolEvent& event : events()) {
    log.push_back({{"kind", to_string(event.kind)},
                   {"bytes", event.bytes},
                   {"op", event.op},
                   {"nanoseconds", event.time.count()}});
  }
  const nlohmann::ordered_json json{{"device", to_string(device_)},
                                    {"in_use", now.in_use},
                                    {"peak", now.peak},
                                    {"cached", now.cached},
                                    {"parked", now.parked},
                                    {"reserved", now.reserved},
                                    {"largest_free", now.largest_free},
                                    {"limit", now.limit},
                                    {"allocations", now.allocations},
                                    {"live_blocks", now.live_blocks},
                                    {"segments", now.segments},
                                    {"segment_allocations", now.segment_allocations},
                                    {"fragmentation", now.fragmentation()},
                                    {"live_by_op", ops},
                                    {"events", log}};
  return json.dump(2);
}

}  // namespace ferrite::cuda
