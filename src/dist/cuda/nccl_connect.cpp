#include "dist/cuda/nccl_connect.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/dist/collectives.hpp"

namespace ferrite::dist {

namespace nccl {

void check(ncclResult_t result, const std::string& call, ncclComm_t comm) {
  if (result == ncclSuccess) [[likely]]
    return;
  cuda::check_context("nccl");
  throw DistError(fmt::format("[nccl] {}: {} ({}); NCCL_DEBUG=WARN in the environment tells more", call,
                              ncclGetErrorString(result), ncclGetLastError(comm)));
}

namespace {
void check_available() {
  const std::string reason = nccl_unavailable_reason();
  if (!reason.empty()) throw DistError("[nccl] " + reason);
}
constexpr const char* variable = "NCCL_COMM_ID";
}  // namespace

Members members_of(Group& hosts) {
  check_available();
  Members members{hosts.rank(), hosts.size(), {}};
  if (members.rank == 0) check(ncclGetUniqueId(&members.id), "ncclGetUniqueId");
  const Array bytes = detail::host_array({{sizeof members.id}, DType::u8});
  std::memcpy(bytes.data(), &members.id, sizeof members.id);
  hosts.broadcast(bytes);
  std::memcpy(&members.id, bytes.data(), sizeof members.id);
  return members;
}

Members members_of(const Rendezvous& rendezvous) {
  check_available();
  Members members{rendezvous.rank, rendezvous.size, {}};
  if (rendezvous.size < 1 || rendezvous.rank < 0 || rendezvous.rank >= rendezvous.size)
    throw ValueError(
        fmt::format("[nccl] rank {} of {}: ranks are 0 to size - 1", rendezvous.rank, rendezvous.size));
  check(ncclGetUniqueId(&members.id), "ncclGetUniqueId for " + rendezvous.address);
  return members;
}

namespace {
/// Who has set the variable.
struct {
  std::mutex mutex;
  std::condition_variable left;
  int users = 0;
  bool is_ours = false;  // also after a failure
  std::string address;
  std::optional<std::string> before;
} setting;
}  // namespace

CommId::CommId(const std::string& address) : exceptions_(std::uncaught_exceptions()) {
  std::unique_lock lock(setting.mutex);
  setting.left.wait(lock, [&] { return setting.users == 0 || setting.address == address; });
  if (setting.users++ > 0) return;
  setting.address = address;
  const char* const value = std::getenv(variable);
  if (!std::exchange(setting.is_ours, true))
    setting.before = value ? std::optional<std::string>(value) : std::nullopt;
  ::setenv(variable, address.c_str(), 1);
}
CommId::~CommId() {
  const std::lock_guard lock(setting.mutex);
  const bool failed = std::uncaught_exceptions() > exceptions_;
  if (--setting.users == 0 && !failed) {
    setting.is_ours = false;
    if (setting.before)
      ::setenv(variable, setting.before->c_str(), 1);
    else
      ::unsetenv(variable);
  }
  setting.left.notify_all();
}

ncclComm_t connect(const Members& members, int gpu, std::chrono::milliseconds timeout) {
  const auto result = std::make_shared<std::promise<ncclComm_t>>();
  std::future<ncclComm_t> connected = result->get_future();
  std::thread([=] {
    try {
      const cuda::DeviceGuard guard(gpu);
      ncclComm_t comm = nullptr;
      check(ncclCommInitRank(&comm, members.size, members.id, members.rank), "ncclCommInitRank");
      result->set_value(comm);
    } catch (...) {
      result->set_exception(std::current_exception());
    }
  }).detach();
  if (connected.wait_for(timeout) != std::future_status::ready)
    throw DistError(fmt::format(
        "[nccl] rank {} could not connect to {} others within {:g} s: not all of them were started, "
        "or a firewall keeps them apart (NCCL_SOCKET_IFNAME chooses the network)",
        members.rank, members.size - 1, static_cast<double>(timeout.count()) / 1000));
  return connected.get();
}

}  // namespace nccl

std::string nccl_unavailable_reason() {
  std::string reason = cuda::device_count() > 0 ? "" : cuda::why_no_device();
  if (!reason.empty()) return reason;
  try {
    int version = 0;
    nccl::check(ncclGetVersion(&version), "ncclGetVersion");
  } catch (const Error& error) {
    reason = error.what();
  }
  return reason;
}

}  // namespace ferrite::dist
