#include "dist/mpi_transport.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace ferrite::dist {

namespace {

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw DistError(fmt::format("[mpi] {} failed: {}", what, text));
}

/// Counts of MPI are ints.
constexpr std::size_t largest_piece = std::size_t{1} << 30;

std::atomic<bool> aborts{false};

/// Other ranks may be about to say what went wrong, and MPI_Abort ends them too.
void abort_all() {
  std::fflush(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void end_mpi() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) return;
  if (aborts) abort_all();
  MPI_Finalize();
}

/// True if MPI was initialised here, by the first call.
bool start_mpi() {
  static const bool is_ours = [] {
    int initialized = 0;
    MPI_Initialized(&initialized);
    if (initialized) return false;
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    std::atexit(end_mpi);
    return true;
  }();
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized) throw DistError("[mpi] MPI was finalised already: make groups before");
  return is_ours;
}

/// Gives up its time soon, so that more ranks than cores get on, and sleeps after a while: rank 0 may be
/// writing a file for minutes.
template <class Done>
bool poll(MpiTransport::Deadline deadline, const Done& done) {
  for (std::int64_t round = 0;; ++round) {
    if (done()) return true;
    if (round < 100) continue;
    if (round % 64 == 0 && std::chrono::steady_clock::now() >= deadline) return false;
    if (round < 1'000'000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool finish(MPI_Request& request, MpiTransport::Deadline deadline) {
  return poll(deadline, [&] {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  });
}

MPI_Datatype datatype(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i64:
      return MPI_INT64_T;
    default:
      throw DistError(fmt::format("[mpi] no reduction of {} by MPI", to_string(dtype)));
  }
}

class Transport final : public MpiTransport {
 public:
  Transport() : is_ours_(start_mpi()) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(world_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(world_, &size_), "MPI_Comm_size");
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::vector<int> exchange(std::span<const Message> messages, Deadline deadline) override {
    requests_.clear();
    peers_.clear();
    for (const Message& m : messages)
      for (std::size_t begin = 0; begin < m.bytes; begin += largest_piece) start(m, begin);
    const auto test = [&] {
      int done = 0;
      check(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
            "MPI_Testall");
      return done != 0;
    };
    if (poll(deadline, test)) return {};
    std::vector<int> missing;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      int done = 0;
      check(MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (!done) missing.push_back(peers_[i]);
    }
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return missing;
  }

  bool broadcast(std::byte* data, std::size_t bytes, int root, Deadline deadline) override {
    for (std::size_t begin = 0; begin < bytes; begin += largest_piece) {
      const int count = static_cast<int>(std::min(largest_piece, bytes - begin));
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Ibcast(data + begin, count, MPI_BYTE, root, world_, &request), "MPI_Ibcast");
      if (!finish(request, deadline)) return false;
    }
    return true;
  }

  bool all_reduce(const std::byte* in, std::byte* out, std::int64_t count, DType dtype, ReduceOp op,
                  Deadline deadline) override {
    const MPI_Op reduction = op == ReduceOp::max ? MPI_MAX : op == ReduceOp::min ? MPI_MIN : MPI_SUM;
    constexpr std::int64_t piece = std::int64_t{1} << 28;
    for (std::int64_t begin = 0; begin < count; begin += piece) {
      const std::size_t offset = static_cast<std::size_t>(begin) * size_of(dtype);
      const void* const from = in == out ? MPI_IN_PLACE : static_cast<const void*>(in + offset);
      MPI_Request request = MPI_REQUEST_NULL;
      check(MPI_Iallreduce(from, out + offset, static_cast<int>(std::min(piece, count - begin)),
                           datatype(dtype), reduction, world_, &request),
            "MPI_Iallreduce");
      if (!finish(request, deadline)) return false;
    }
    return true;
  }

  void abort_at_exit() override { aborts = true; }
  void close() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (finalized) return;
    if (!aborts)
      MPI_Comm_free(&world_);
    else if (!is_ours_)
      abort_all();
  }

 private:
  void start(const Message& m, std::size_t begin) {
    const int bytes = static_cast<int>(std::min(largest_piece, m.bytes - begin));
    const int tag = static_cast<int>(m.channel);
    MPI_Request request = MPI_REQUEST_NULL;
    if (m.is_received)
      check(MPI_Irecv(m.data + begin, bytes, MPI_BYTE, m.peer, tag, world_, &request), "MPI_Irecv");
    else
      check(MPI_Isend(m.data + begin, bytes, MPI_BYTE, m.peer, tag, world_, &request), "MPI_Isend");
    requests_.push_back(request);
    peers_.push_back(m.peer);
  }

  bool is_ours_;
  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1;
  std::vector<MPI_Request> requests_;
  std::vector<int> peers_;  // of the requests
};

}  // namespace

extern "C" MpiTransport* ferrite_open_mpi() { return new Transport; }

}  // namespace ferrite::dist
