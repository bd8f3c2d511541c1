#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>

#include "dist/messages.hpp"
#include "dist/mpi_transport.hpp"
#include "dist/rank_sum.hpp"
#include "ferrite/dist/mpi.hpp"

namespace ferrite::dist {

namespace {

using Message = MpiTransport::Message;
using Channel = MpiTransport::Channel;
using CallText = std::array<char, 256>;

CallText call_text(const std::string& call) {
  CallText text{};
  std::copy_n(call.begin(), std::min(call.size(), text.size() - 1), text.begin());
  return text;
}

const std::string end_of_group = "the end of the group";

/// The others are not added in f32 there, or not compared as here: NaN, and u8 as MPICH 4.0 has it.
bool reduced_by_mpi(DType dtype, ReduceOp op) {
  if (dtype == DType::f32 || dtype == DType::f64) return op == ReduceOp::sum || op == ReduceOp::mean;
  return dtype == DType::i32 || dtype == DType::i64;
}

/// Arrays up to here go to everyone at once: one message is then faster than two smaller ones.
constexpr std::size_t small_bytes = 16 << 10;
/// What a rank adds at a time. The memory for the parts of the others is bounded by it.
constexpr std::int64_t slice_bytes = 4 << 20;

}  // namespace

/// MPI may still use its memory after a call has failed: it is then kept for ever.
struct MpiGroup::State {
  std::unique_ptr<MpiTransport> transport = open_mpi();
  std::string failure;
  CallText mine{};
  std::vector<CallText> calls = std::vector<CallText>(static_cast<std::size_t>(transport->size()));
  std::vector<Array> arrays;  // of the call that runs
  std::vector<std::byte> scratch;
};

/// One call of the group. Its constructor returns when all ranks have called the same.
class MpiGroup::Call {
 public:
  Call(MpiGroup& group, std::string name, std::vector<Array> arrays)
      : Call(group, std::move(name), std::move(arrays), Channel::data) {
    State& s = state();
    s.mine = call_text(name_);
    for (int peer : others()) receive(bytes_of(s.calls[at(peer)]), peer, Channel::call);
    for (int peer : others()) send(bytes_of(s.mine), peer, Channel::call);
    exchange();
    s.calls[at(group_.rank_)] = s.mine;
    std::vector<std::string> calls;
    std::vector<int> gone;
    for (const CallText& text : s.calls) {
      if (text.data() == end_of_group && name_ != end_of_group)
        gone.push_back(static_cast<int>(calls.size()));
      calls.emplace_back(text.data());
    }
    if (!gone.empty()) fail(has_left(gone, name_, group_.rank_));
    const std::string mismatch = find_mismatch(calls);
    if (!mismatch.empty()) throw DistError(mismatch);
  }
  /// Between two ranks: returns when the other one has called its half, with an array of the same meta.
  Call(MpiGroup& group, int from, int to, const Array& array)
      : Call(group, pair_name(group.rank_, from, to, array), {array}, Channel::pair_data) {
    State& s = state();
    const std::string meta = to_string(array.meta());
    const int peer = group.rank_ == from ? to : from;
    s.mine = call_text(meta);
    receive(bytes_of(s.calls[at(peer)]), peer, Channel::pair_call);
    send(bytes_of(s.mine), peer, Channel::pair_call);
    exchange();
    const std::string other = s.calls[at(peer)].data();
    if (other == meta) return;
    throw DistError(group.rank_ == from ? pair_mismatch(from, meta, to, other)
                                        : pair_mismatch(from, other, to, meta));
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    if (state().failure.empty()) state().arrays.clear();
  }

  std::vector<int> others() const {
    std::vector<int> ranks;
    for (int i = 0; i < group_.size_; ++i)
      if (i != group_.rank_) ranks.push_back(i);
    return ranks;
  }
  void receive(std::span<std::byte> to, int peer) { receive(to, peer, channel_); }
  void send(std::span<const std::byte> from, int peer) { send(from, peer, channel_); }
  /// Memory until the next call of it.
  std::byte* scratch(std::size_t bytes) {
    if (state().scratch.size() < bytes) state().scratch.resize(bytes);
    return state().scratch.data();
  }

  /// Waits for what was given to receive and send since the last time.
  void exchange() {
    const std::vector<int> missing =
        guarded([&] { return state().transport->exchange(messages_, deadline()); });
    if (!missing.empty()) fail(not_arrived(missing, name_, group_.rank_, group_.timeout()));
    messages_.clear();
  }
  /// A collective of MPI itself: run(transport, deadline) is false after the timeout.
  template <class Run>
  void run(const Run& run) {
    if (!guarded([&] { return run(*state().transport, deadline()); }))
      fail(not_finished(name_, group_.rank_, group_.timeout()));
  }

 private:
  Call(MpiGroup& group, std::string name, std::vector<Array> arrays, Channel channel)
      : group_(group), name_(std::move(name)), channel_(channel) {
    if (!state().failure.empty()) throw DistError(state().failure);
    state().arrays = std::move(arrays);
  }
  static std::string pair_name(int rank, int from, int to, const Array& array) {
    return rank == from ? fmt::format("send of {} to rank {}", to_string(array.meta()), to)
                        : fmt::format("recv of {} from rank {}", to_string(array.meta()), from);
  }
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  static std::span<std::byte> bytes_of(CallText& text) { return std::as_writable_bytes(std::span(text)); }
  State& state() const { return *group_.state_; }
  MpiTransport::Deadline deadline() const { return std::chrono::steady_clock::now() + group_.timeout(); }

  void receive(std::span<std::byte> to, int peer, Channel channel) {
    messages_.push_back({to.data(), to.size(), peer, true, channel});
  }
  void send(std::span<const std::byte> from, int peer, Channel channel) {
    messages_.push_back({const_cast<std::byte*>(from.data()), from.size(), peer, false, channel});
  }
  template <class F>
  std::invoke_result_t<const F&> guarded(const F& f) {
    try {
      return f();
    } catch (const DistError& error) {
      fail(fmt::format("{}, in {}", error.what(), name_));
    }
  }
  [[noreturn]] void fail(const std::string& message) {
    static auto* const kept = new std::vector<std::shared_ptr<State>>;
    kept->push_back(group_.state_);
    state().failure = message;
    state().transport->abort_at_exit();
    throw DistError(message);
  }

  MpiGroup& group_;
  std::string name_;
  Channel channel_;
  std::vector<Message> messages_;
};

namespace {

/// Groups that are left when the program exits end before MPI does.
class Register {
 public:
  static Register& get() {
    static auto* const only = [] {
      std::atexit([] {
        while (!get().groups_.empty()) get().groups_.begin()->second();
      });
      return new Register;
    }();
    return *only;
  }
  void add(const MpiGroup* group, std::function<void()> end) { groups_[group] = std::move(end); }
  bool remove(const MpiGroup* group) { return groups_.erase(group) > 0; }

 private:
  std::map<const MpiGroup*, std::function<void()>> groups_;
};

}  // namespace

MpiGroup::MpiGroup(Reduction reduction) : state_(std::make_shared<State>()), reduction_(reduction) {
  rank_ = state_->transport->rank();
  size_ = state_->transport->size();
  Register::get().add(this, [this] { end(); });
}

MpiGroup::~MpiGroup() { end(); }

void MpiGroup::end() {
  if (!Register::get().remove(this)) return;
  if (state_->failure.empty()) {
    try {
      const Call call(*this, end_of_group, {});
    } catch (const Error& error) {  // nobody is left to catch it
      fmt::print(stderr, "{}\n", error.what());
      state_->transport->abort_at_exit();
    }
  }
  state_->transport->close();
}

std::string MpiGroup::describe() const { return fmt::format("MPI, rank {} of {}", rank_, size_); }

void MpiGroup::run_all_reduce(const std::string& name, const Array& in, const Array& out, ReduceOp op) {
  Call call(*this, name, {in, out});
  const std::int64_t n = in.shape().numel();
  const DType dtype = in.dtype();
  if (reduction_ == Reduction::mpi && reduced_by_mpi(dtype, op)) {
    call.run([&](MpiTransport& mpi, MpiTransport::Deadline deadline) {
      return mpi.all_reduce(in.data(), out.data(), n, dtype, op, deadline);
    });
    if (op == ReduceOp::mean) divide(dtype, out.data(), n, size_);
    return;
  }
  if (in.meta().bytes() <= small_bytes) return reduce_small(call, in, out, op);
  reduce_slices(call, in, out, op);
}

void MpiGroup::reduce_small(Call& call, const Array& in, const Array& out, ReduceOp op) {
  const std::size_t bytes = in.meta().bytes();
  std::byte* const received = call.scratch(bytes * static_cast<std::size_t>(size_));
  std::vector<const std::byte*> parts(static_cast<std::size_t>(size_), in.data());
  for (int peer : call.others()) {
    std::byte* const place = received + static_cast<std::size_t>(peer) * bytes;
    parts[static_cast<std::size_t>(peer)] = place;
    call.receive({place, bytes}, peer);
  }
  for (int peer : call.others()) call.send({in.data(), bytes}, peer);
  call.exchange();
  reduce_in_rank_order(in.dtype(), op, parts, out.data(), in.shape().numel());
}

/// Each rank makes one part of the result and sends it to all: it gets that part from all others before,
/// slice by slice. While a slice comes in, the result of the one before goes out.
void MpiGroup::reduce_slices(Call& call, const Array& in, const Array& out, ReduceOp op) {
  const std::int64_t width = static_cast<std::int64_t>(size_of(in.dtype()));
  const std::int64_t n = in.shape().numel(), part = (n + size_ - 1) / size_;
  const std::int64_t slice = std::min(part, slice_bytes / width);
  const std::int64_t slices = (part + slice - 1) / slice;
  const auto bytes = [&](const Array& array, int owner, std::int64_t index) {
    const std::int64_t end = std::min({n, (owner + 1) * part, owner * part + (index + 1) * slice});
    const std::int64_t begin = std::min(end, owner * part + index * slice);
    return std::span(array.data() + begin * width, static_cast<std::size_t>((end - begin) * width));
  };
  std::byte* const received = call.scratch(static_cast<std::size_t>(size_ * slice * width));
  for (std::int64_t i = 0; i <= slices; ++i) {
    std::vector<const std::byte*> parts;
    const std::span<std::byte> mine = bytes(in, rank_, i);
    for (int r = 0; r < size_; ++r) parts.push_back(r == rank_ ? mine.data() : received + r * slice * width);
    for (int peer : call.others()) {
      if (i < slices) call.receive({received + peer * slice * width, mine.size()}, peer);
      if (i > 0) call.receive(bytes(out, peer, i - 1), peer);
    }
    for (int peer : call.others()) {
      if (i < slices) call.send(bytes(in, peer, i), peer);
      if (i > 0) call.send(bytes(out, rank_, i - 1), peer);
    }
    call.exchange();
    if (i < slices)
      reduce_in_rank_order(in.dtype(), op, parts, bytes(out, rank_, i).data(),
                           static_cast<std::int64_t>(mine.size()) / width);
  }
}

void MpiGroup::run_reduce_scatter(const std::string& name, const Array& in, const Array& out, ReduceOp op) {
  Call call(*this, name, {in, out});
  const std::size_t bytes = out.meta().bytes();
  const auto place = [&](std::byte* base, int rank) { return base + static_cast<std::size_t>(rank) * bytes; };
  std::byte* const received = call.scratch(bytes * static_cast<std::size_t>(size_));
  std::vector<const std::byte*> parts;
  for (int r = 0; r < size_; ++r) parts.push_back(r == rank_ ? place(in.data(), r) : place(received, r));
  for (int peer : call.others()) call.receive({place(received, peer), bytes}, peer);
  for (int peer : call.others()) call.send({place(in.data(), peer), bytes}, peer);
  call.exchange();
  reduce_in_rank_order(in.dtype(), op, parts, out.data(), out.shape().numel());
}

void MpiGroup::run_all_gather(const std::string& name, const Array& in, const Array& out) {
  Call call(*this, name, {in, out});
  const std::size_t bytes = in.meta().bytes();
  const auto place = [&](int rank) { return out.data() + static_cast<std::size_t>(rank) * bytes; };
  for (int peer : call.others()) call.receive({place(peer), bytes}, peer);
  for (int peer : call.others()) call.send({in.data(), bytes}, peer);
  if (place(rank_) != in.data()) std::memcpy(place(rank_), in.data(), bytes);
  call.exchange();
}

void MpiGroup::run_broadcast(const std::string& name, const Array& array, int root) {
  Call call(*this, name, {array});
  call.run([&](MpiTransport& mpi, MpiTransport::Deadline deadline) {
    return mpi.broadcast(array.data(), array.meta().bytes(), root, deadline);
  });
}

void MpiGroup::run_barrier(const std::string& name) { const Call call(*this, name, {}); }

void MpiGroup::run_send(const Array& array, int to) {
  Call call(*this, rank_, to, array);
  call.send({array.data(), array.meta().bytes()}, to);
  call.exchange();
}

void MpiGroup::run_recv(const Array& array, int from) {
  Call call(*this, from, rank_, array);
  call.receive({array.data(), array.meta().bytes()}, from);
  call.exchange();
}

}  // namespace ferrite::dist
