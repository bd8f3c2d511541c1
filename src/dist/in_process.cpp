#include "ferrite/dist/in_process.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "dist/messages.hpp"
#include "dist/rank_sum.hpp"

namespace ferrite::dist {

/// What a rank brings to a collective. The arrays stay as they are until every rank has finished.
struct InProcessGroup::Visit {
  std::string call;
  const Array* in = nullptr;
  const Array* out = nullptr;
};

/// Where the ranks meet: first to compare what they called, then to know that nobody reads their arrays any
/// more.
class InProcessGroup::Meeting {
 public:
  explicit Meeting(int ranks) : visits_(static_cast<std::size_t>(ranks)), gone_(visits_.size()) {}

  int size() const { return static_cast<int>(visits_.size()); }

  /// Waits for all ranks; throws if they do not come or called different things.
  void meet(int rank, Visit visit, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    throw_failure();
    visits_[static_cast<std::size_t>(rank)] = std::move(visit);
    const std::uint64_t round = round_;
    if (++arrived_ == size()) {
      std::vector<std::string> calls;
      for (const Visit& v : visits_) calls.push_back(v.call);
      mismatch_ = find_mismatch(calls);
      open_next_round();
    }
    const std::string& call = visits_[static_cast<std::size_t>(rank)].call;
    wait(lock, {rank, call, everyone, timeout}, [&] { return round_ != round; });
    if (mismatch_.empty()) return;
    const std::string message = mismatch_;
    leave(lock);
    throw DistError(message);
  }
  const Visit& visit(int rank) const { return visits_[static_cast<std::size_t>(rank)]; }

  /// Ends what meet began. What is left to wait for is copies of memory, which end.
  void part() {
    std::unique_lock lock(mutex_);
    leave(lock);
  }

  void send(int from, int to, const Array& array, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    throw_failure();
    Parcel& parcel = parcels_[{from, to}];
    parcel = {&array, {}, false};
    changed_.notify_all();
    const std::string call = fmt::format("send of {} to rank {}", to_string(array.meta()), to);
    wait(lock, {from, call, to, timeout}, [&] { return parcel.taken; });
    const std::string mismatch = std::move(parcel.mismatch);
    parcel = {};
    if (!mismatch.empty()) throw DistError(mismatch);
  }
  void recv(int from, int to, const Array& array, std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    throw_failure();
    Parcel& parcel = parcels_[{from, to}];
    const std::string call = fmt::format("recv of {} from rank {}", to_string(array.meta()), from);
    wait(lock, {to, call, from, timeout}, [&] { return parcel.array != nullptr && !parcel.taken; });
    if (parcel.array->meta() == array.meta())
      std::memcpy(array.data(), parcel.array->data(), array.meta().bytes());
    else
      parcel.mismatch = pair_mismatch(from, to_string(parcel.array->meta()), to, to_string(array.meta()));
    parcel.taken = true;
    changed_.notify_all();
    if (!parcel.mismatch.empty()) throw DistError(parcel.mismatch);
  }

  void go(int rank) {
    const std::lock_guard lock(mutex_);
    gone_[static_cast<std::size_t>(rank)] = true;
    changed_.notify_all();
  }

 private:
  struct Parcel {
    const Array* array = nullptr;
    std::string mismatch;
    bool taken = false;
  };

  static constexpr int everyone = -1;
  /// Who waits, in what, and for whom.
  struct Wait {
    int rank;
    const std::string& call;
    int peer;
    std::chrono::milliseconds timeout;
  };

  void throw_failure() const {
    if (!failure_.empty()) throw DistError(failure_);
  }
  void fail(const std::string& message) {
    failure_ = message;
    changed_.notify_all();
    throw_failure();
  }
  /// The ranks waited for of which `is` holds.
  template <class Is>
  std::vector<int> find(int peer, const Is& is) const {
    std::vector<int> found;
    for (int i = 0; i < size(); ++i)
      if ((peer == everyone || i == peer) && is(static_cast<std::size_t>(i))) found.push_back(i);
    return found;
  }
  /// Throws if the group fails: after the timeout, or because a rank is gone that has not done its part.
  template <class Done>
  void wait(std::unique_lock<std::mutex>& lock, const Wait& w, const Done& done) {
    const auto deadline = std::chrono::steady_clock::now() + w.timeout;
    while (!done()) {
      throw_failure();
      const auto gone = find(w.peer, [&](std::size_t i) { return gone_[i]; });
      if (!gone.empty()) fail(has_left(gone, w.call, w.rank));
      if (changed_.wait_until(lock, deadline) == std::cv_status::no_timeout || done()) continue;
      throw_failure();
      const auto missing =
          find(w.peer, [&](std::size_t i) { return w.peer >= 0 || visits_[i].call.empty(); });
      fail(not_arrived(missing, w.call, w.rank, w.timeout));
    }
  }
  void open_next_round() {
    arrived_ = 0;
    ++round_;
    changed_.notify_all();
  }
  void leave(std::unique_lock<std::mutex>& lock) {
    const std::uint64_t round = round_;
    if (++arrived_ == size()) {
      for (Visit& v : visits_) v = {};
      open_next_round();
    }
    changed_.wait(lock, [&] { return round_ != round; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Visit> visits_;
  std::vector<bool> gone_;
  int arrived_ = 0;
  std::uint64_t round_ = 0;  // two of them for each collective: meet and part
  std::string mismatch_, failure_;
  std::map<std::pair<int, int>, Parcel> parcels_;
};

std::vector<std::unique_ptr<InProcessGroup>> InProcessGroup::create(int size) {
  if (size < 1) throw ValueError(fmt::format("[dist] a group of {} ranks: needs at least 1", size));
  const auto meeting = std::make_shared<Meeting>(size);
  std::vector<std::unique_ptr<InProcessGroup>> handles;
  for (int i = 0; i < size; ++i)
    handles.push_back(std::unique_ptr<InProcessGroup>(new InProcessGroup(meeting, i)));
  return handles;
}

InProcessGroup::~InProcessGroup() { meeting_->go(rank_); }

int InProcessGroup::size() const { return meeting_->size(); }

std::string InProcessGroup::describe() const {
  return fmt::format("threads of one process, rank {} of {}", rank_, size());
}

void InProcessGroup::run_all_reduce(const std::string& call, const Array& in, const Array& out, ReduceOp op) {
  meeting_->meet(rank_, {call, &in, &out}, timeout());
  // Each rank makes one part of the result and writes it to all: nobody reads the part that another one
  // writes.
  const std::int64_t n = in.shape().numel();
  const std::int64_t part = (n + size() - 1) / size();
  const std::int64_t begin = std::min(n, rank_ * part), count = std::min(n, begin + part) - begin;
  const std::size_t offset = static_cast<std::size_t>(begin) * size_of(in.dtype());
  std::vector<const std::byte*> parts;
  for (int i = 0; i < size(); ++i) parts.push_back(meeting_->visit(i).in->data() + offset);
  std::byte* const result = out.data() + offset;
  reduce_in_rank_order(in.dtype(), op, parts, result, count);
  for (int i = 0; i < size(); ++i)
    if (i != rank_)
      std::memcpy(meeting_->visit(i).out->data() + offset, result,
                  static_cast<std::size_t>(count) * size_of(in.dtype()));
  meeting_->part();
}

void InProcessGroup::run_reduce_scatter(const std::string& call, const Array& in, const Array& out,
                                        ReduceOp op) {
  meeting_->meet(rank_, {call, &in, &out}, timeout());
  const std::size_t offset = static_cast<std::size_t>(rank_) * out.meta().bytes();
  std::vector<const std::byte*> parts;
  for (int i = 0; i < size(); ++i) parts.push_back(meeting_->visit(i).in->data() + offset);
  reduce_in_rank_order(in.dtype(), op, parts, out.data(), out.shape().numel());
  meeting_->part();
}

void InProcessGroup::run_all_gather(const std::string& call, const Array& in, const Array& out) {
  meeting_->meet(rank_, {call, &in, &out}, timeout());
  const std::size_t bytes = in.meta().bytes();
  for (int i = 0; i < size(); ++i)
    if (i != rank_ || in.data() != out.data() + static_cast<std::size_t>(i) * bytes)
      std::memcpy(out.data() + static_cast<std::size_t>(i) * bytes, meeting_->visit(i).in->data(), bytes);
  meeting_->part();
}

void InProcessGroup::run_broadcast(const std::string& call, const Array& array, int root) {
  meeting_->meet(rank_, {call, &array, &array}, timeout());
  if (rank_ != root) std::memcpy(array.data(), meeting_->visit(root).in->data(), array.meta().bytes());
  meeting_->part();
}

void InProcessGroup::run_barrier(const std::string& call) {
  meeting_->meet(rank_, {call}, timeout());
  meeting_->part();
}

void InProcessGroup::run_send(const Array& array, int to) { meeting_->send(rank_, to, array, timeout()); }

void InProcessGroup::run_recv(const Array& array, int from) { meeting_->recv(from, rank_, array, timeout()); }

}  // namespace ferrite::dist
