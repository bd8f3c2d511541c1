#include "dist/messages.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ferrite::dist {

std::string name_ranks(std::span<const int> ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i > 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += std::to_string(ranks[i]);
  }
  return text;
}

std::string find_mismatch(std::span<const std::string> calls) {
  if (std::all_of(calls.begin(), calls.end(), [&](const std::string& c) { return c == calls[0]; })) return "";
  std::string text = "[dist] the ranks called different things: ";
  std::vector<bool> named(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (named[i]) continue;
    std::vector<int> ranks;
    for (std::size_t j = i; j < calls.size(); ++j) {
      if (calls[j] != calls[i]) continue;
      named[j] = true;
      ranks.push_back(static_cast<int>(j));
    }
    text += fmt::format("{}{} {}", i > 0 ? "; " : "", name_ranks(ranks), calls[i]);
  }
  return text;
}

namespace {
double seconds(std::chrono::milliseconds time) { return static_cast<double>(time.count()) / 1000; }
}  // namespace

std::string not_finished(const std::string& call, int rank, std::chrono::milliseconds timeout) {
  return fmt::format("[dist] {} did not end within {:g} s on rank {}, though all ranks had called it", call,
                     seconds(timeout), rank);
}

std::string not_done_by_gpu(const std::string& call, int rank, std::chrono::milliseconds timeout) {
  return fmt::format(
      "[nccl] {} did not end within {:g} s on rank {}: another rank did not call it, called something else, "
      "hangs or is gone, or a GPU was busy for longer with the work before it; see what the other ranks say, "
      "or raise the timeout (FERRITE_DIST_TIMEOUT)",
      call, seconds(timeout), rank);
}

std::string not_arrived(std::span<const int> missing, const std::string& call, int rank,
                        std::chrono::milliseconds timeout) {
  return fmt::format("[dist] {} did not arrive within {:g} s at {}, which rank {} called",
                     name_ranks(missing), seconds(timeout), call, rank);
}

std::string has_left(std::span<const int> gone, const std::string& call, int rank) {
  return fmt::format("[dist] {} {} gone, the group there was destroyed: rank {} called {}", name_ranks(gone),
                     gone.size() == 1 ? "is" : "are", rank, call);
}

std::string pair_mismatch(int from, const std::string& sent, int to, const std::string& expected) {
  return fmt::format(
      "[dist] rank {} sends {} to rank {}, which receives {}: shape and dtype must be the same", from, sent,
      to, expected);
}

}  // namespace ferrite::dist
