// NcclGroup in a build without CUDA or NCCL: there is none, and it says so.
#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/dist/nccl.hpp"

namespace ferrite::dist {

class NcclGroup::State {};

std::string nccl_unavailable_reason() {
  const std::string cuda = cuda_unavailable_reason();
  return cuda.empty() ? "this build has no NCCL: install libnccl-dev and configure again" : cuda;
}

NcclGroup::NcclGroup(std::unique_ptr<Group>, int) { throw DistError("[nccl] " + nccl_unavailable_reason()); }
NcclGroup::NcclGroup(const Rendezvous&, int) { throw DistError("[nccl] " + nccl_unavailable_reason()); }
NcclGroup::~NcclGroup() = default;

int NcclGroup::rank() const { return 0; }
int NcclGroup::size() const { return 1; }
std::string NcclGroup::describe() const { return "NCCL"; }
bool NcclGroup::takes(Device) const { return false; }
void NcclGroup::fork() {}
void NcclGroup::join() {}
void NcclGroup::run_all_reduce(const std::string&, const Array&, const Array&, ReduceOp) {}
void NcclGroup::run_reduce_scatter(const std::string&, const Array&, const Array&, ReduceOp) {}
void NcclGroup::run_all_gather(const std::string&, const Array&, const Array&) {}
void NcclGroup::run_broadcast(const std::string&, const Array&, int) {}
void NcclGroup::run_barrier(const std::string&) {}
void NcclGroup::run_send(const Array&, int) {}
void NcclGroup::run_recv(const Array&, int) {}

}  // namespace ferrite::dist
