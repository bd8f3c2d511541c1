#include "ferrite/dist/nccl.hpp"

#include <fmt/format.h>
#include <nccl.h>

#include <exception>
#include <optional>

#include "backend_cuda/runtime/side_stream.hpp"
#include "dist/cuda/nccl_connect.hpp"
#include "dist/messages.hpp"
#include "dist/watchdog.hpp"
#include "ferrite/dist/collectives.hpp"

namespace ferrite::dist {

namespace {

/// Of dtypes that Group allows to reduce.
ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::f64:
      return ncclFloat64;
    case DType::f16:
      return ncclFloat16;
    case DType::bf16:
      return ncclBfloat16;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    default:
      return ncclUint8;  // bool too: max is any, min is all
  }
}

ncclRedOp_t op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return ncclSum;
    case ReduceOp::mean:
      return ncclAvg;
    case ReduceOp::max:
      return ncclMax;
    default:
      return ncclMin;
  }
}

std::size_t count_of(const Array& array) { return static_cast<std::size_t>(array.shape().numel()); }

/// Memory of the host on the GPU, for a call; back() copies it to where it came from.
class Staged {
 public:
  Staged(cuda::DeviceContext& context, const Array& host)
      : context_(context),
        host_(host),
        array_(context.allocate(host.meta().bytes()), Layout::contiguous(host.shape()), host.dtype()) {
    context.copy_from_host(array_.data(), host.data(), host.meta().bytes());
  }
  const Array& array() const { return array_; }
  void back() { context_.copy_to_host(host_.data(), array_.data(), host_.meta().bytes()); }

 private:
  cuda::DeviceContext& context_;
  const Array& host_;
  Array array_;
};

bool is_on_host(const Array& array) { return array.device().kind == DeviceKind::cpu; }

void check_sides(const Array& in, const Array& out) {
  if (is_on_host(in) != is_on_host(out))
    throw DeviceError("[nccl] in is on " + to_string(in.device()) + " and out on " + to_string(out.device()) +
                      ": needs both on one device");
}

}  // namespace

class NcclGroup::State {
 public:
  State(std::unique_ptr<Group> others, const nccl::Members& members, int gpu,
        std::chrono::milliseconds timeout)
      : hosts(std::move(others)),
        context(cuda::DeviceContext::of(gpu)),
        rank(members.rank),
        size(members.size),
        side_(context, cuda::SideStream::Priority::before_compute),  // others wait for what runs there
        comm_(nccl::connect(members, gpu, timeout)),
        watchdog_(
            std::in_place, [this] { return trouble(); },
            [this](const std::string& call, const std::string& why) { fail(call, why); }) {}
  ~State() {
    watchdog_.reset();  // it asks the communicator
    const cuda::DeviceGuard guard(context.index());
    if (has_failed_) return;
    // An error that leaves this rank leaves the others in a call that never ends here.
    static_cast<void>(std::uncaught_exceptions() > 0 ? ncclCommAbort(comm_) : ncclCommDestroy(comm_));
  }

  /// f(comm, stream) queues a call.
  template <class F>
  void queue(const std::string& call, std::chrono::milliseconds timeout, const F& f) {
    const cuda::DeviceGuard guard(context.index());
    const cudaStream_t stream = is_forked_ ? side_.get() : context.stream();
    {
      const std::lock_guard lock(in_use_);
      throw_failure();
      nccl::check(f(comm_, stream), call, comm_);
    }
    if (!context.is_capturing()) watch(call, timeout, stream);
  }
  /// f(hosts). Replays are not seen by the group: what the GPU has to do so far is watched here.
  template <class F>
  void on_hosts(const std::string& call, std::chrono::milliseconds timeout, const F& f) {
    throw_failure();
    if (size > 1 && !context.is_capturing())
      watch("what was queued before " + call, timeout, context.stream());
    hosts->set_timeout(timeout);
    f(*hosts);
  }
  /// A call from one memory to another: f(in, out, comm, stream) by NCCL, and that of the host by g(hosts),
  /// or on the GPU if there are none.
  template <class F, class G>
  void run(const std::string& call, std::chrono::milliseconds timeout, const Array& in, const Array& out,
           const F& f, const G& g) {
    check_sides(in, out);
    const auto by_nccl = [&](const Array& from, const Array& to) {
      queue(call, timeout, [&](ncclComm_t comm, cudaStream_t stream) { return f(from, to, comm, stream); });
    };
    if (!is_on_host(in)) return by_nccl(in, out);
    if (hosts) return on_hosts(call, timeout, g);
    Staged staged_in(context, in), staged_out(context, out);
    by_nccl(staged_in.array(), staged_out.array());
    staged_out.back();
  }
  void fork() {
    side_.after_compute();
    is_forked_ = true;
  }
  void join() {
    if (!std::exchange(is_forked_, false)) return;
    side_.before_compute();
  }

  std::unique_ptr<Group> hosts;  // or none
  cuda::DeviceContext& context;
  const int rank, size;

 private:
  void throw_failure() {
    if (!has_failed_) return;
    const std::lock_guard lock(mutex_);
    throw DistError(failure_);
  }
  void watch(const std::string& call, std::chrono::milliseconds timeout, cudaStream_t stream) {
    const cuda::DeviceGuard guard(context.index());
    const cudaEvent_t event = context.events().take();
    cuda::check(cudaEventRecord(event, stream), "nccl");
    watchdog_->watch(call, timeout, [this, event] {
      const cuda::DeviceGuard here(context.index());
      if (cudaEventQuery(event) == cudaErrorNotReady) return false;
      context.events().give_back(event);
      return true;
    });
    limit_ = timeout;
  }

  // On the watchdog's thread.
  std::string trouble() {
    ncclResult_t error = ncclSuccess;
    if (ncclCommGetAsyncError(comm_, &error) != ncclSuccess) return "NCCL does not answer";
    return error == ncclSuccess || error == ncclInProgress ? "" : ncclGetErrorString(error);
  }
  void fail(const std::string& call, const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      failure_ = why.empty()
                     ? not_done_by_gpu(call, rank, limit_.load())
                     : fmt::format("[nccl] {} on rank {}{}{}: another rank is gone, or the network is", why,
                                   rank, call.empty() ? "" : " in ", call);
      has_failed_ = true;
    }
    const cuda::DeviceGuard guard(context.index());
    // A call that waits inside NCCL ends by this too; one that is about to begin is let through first.
    const std::unique_lock lock(in_use_, std::chrono::seconds(1));
    static_cast<void>(ncclCommAbort(comm_));  // ends what hangs on the GPU, and who waits for it
  }

  cuda::SideStream side_;
  bool is_forked_ = false;
  ncclComm_t comm_;
  std::timed_mutex in_use_;  // the communicator
  std::mutex mutex_;
  std::string failure_;
  std::atomic<bool> has_failed_ = false;
  std::atomic<std::chrono::milliseconds> limit_{};
  std::optional<Watchdog> watchdog_;  // the last: its thread uses the others
};

NcclGroup::NcclGroup(std::unique_ptr<Group> hosts, int gpu) {
  const nccl::Members members = nccl::members_of(*hosts);
  state_ = std::make_unique<State>(std::move(hosts), members, gpu, timeout());
}

NcclGroup::NcclGroup(const Rendezvous& rendezvous, int gpu) {
  const nccl::CommId variable(rendezvous.address);
  state_ = std::make_unique<State>(nullptr, nccl::members_of(rendezvous), gpu, timeout());
}

NcclGroup::~NcclGroup() = default;

int NcclGroup::rank() const { return state_->rank; }
int NcclGroup::size() const { return state_->size; }

std::string NcclGroup::describe() const {
  return fmt::format("NCCL, rank {} of {}, {}", rank(), size(), to_string(state_->context.device()));
}

bool NcclGroup::takes(Device device) const {
  return device.kind == DeviceKind::cpu || device == state_->context.device();
}

void NcclGroup::fork() { state_->fork(); }
void NcclGroup::join() { state_->join(); }

void NcclGroup::run_all_reduce(const std::string& call, const Array& in, const Array& out, ReduceOp op) {
  const auto by_nccl = [&](const Array& from, const Array& to, ncclComm_t comm, cudaStream_t stream) {
    return ncclAllReduce(from.data(), to.data(), count_of(from), type_of(in.dtype()), op_of(op), comm,
                         stream);
  };
  state_->run(call, timeout(), in, out, by_nccl, [&](Group& hosts) { hosts.all_reduce(in, out, op); });
}

void NcclGroup::run_reduce_scatter(const std::string& call, const Array& in, const Array& out, ReduceOp op) {
  const auto by_nccl = [&](const Array& from, const Array& to, ncclComm_t comm, cudaStream_t stream) {
    return ncclReduceScatter(from.data(), to.data(), count_of(to), type_of(in.dtype()), op_of(op), comm,
                             stream);
  };
  state_->run(call, timeout(), in, out, by_nccl, [&](Group& hosts) { hosts.reduce_scatter(in, out, op); });
}

void NcclGroup::run_all_gather(const std::string& call, const Array& in, const Array& out) {
  const auto by_nccl = [&](const Array& from, const Array& to, ncclComm_t comm, cudaStream_t stream) {
    return ncclAllGather(from.data(), to.data(), from.meta().bytes(), ncclUint8, comm, stream);
  };
  state_->run(call, timeout(), in, out, by_nccl, [&](Group& hosts) { hosts.all_gather(in, out); });
}

void NcclGroup::run_broadcast(const std::string& call, const Array& array, int root) {
  if (!is_on_host(array))
    return state_->queue(call, timeout(), [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclBroadcast(array.data(), array.data(), array.meta().bytes(), ncclUint8, root, comm, stream);
    });
  if (state_->hosts)
    return state_->on_hosts(call, timeout(), [&](Group& hosts) { hosts.broadcast(array, root); });
  Staged staged(state_->context, array);
  run_broadcast(call, staged.array(), root);
  staged.back();
}

void NcclGroup::run_barrier(const std::string& call) {
  if (state_->hosts) return state_->on_hosts(call, timeout(), [&](Group& hosts) { hosts.barrier(); });
  const Array flag = detail::host_array({{1}, DType::u8});
  *flag.data() = {};
  run_all_reduce(call, flag, flag, ReduceOp::max);
}

void NcclGroup::run_send(const Array& array, int to) {
  const std::string call = fmt::format("send of {} to rank {}", to_string(array.meta()), to);
  if (!is_on_host(array))
    return state_->queue(call, timeout(), [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclSend(array.data(), array.meta().bytes(), ncclUint8, to, comm, stream);
    });
  if (state_->hosts) return state_->on_hosts(call, timeout(), [&](Group& hosts) { hosts.send(array, to); });
  run_send(Staged(state_->context, array).array(), to);
}

void NcclGroup::run_recv(const Array& array, int from) {
  const std::string call = fmt::format("recv of {} from rank {}", to_string(array.meta()), from);
  if (!is_on_host(array))
    return state_->queue(call, timeout(), [&](ncclComm_t comm, cudaStream_t stream) {
      return ncclRecv(array.data(), array.meta().bytes(), ncclUint8, from, comm, stream);
    });
  if (state_->hosts) return state_->on_hosts(call, timeout(), [&](Group& hosts) { hosts.recv(array, from); });
  Staged staged(state_->context, array);
  run_recv(staged.array(), from);
  staged.back();
}

}  // namespace ferrite::dist
