// How the ranks of an NcclGroup find each other.
#pragma once

#include <nccl.h>

#include <chrono>
#include <string>

#include "ferrite/dist/nccl.hpp"

namespace ferrite::dist::nccl {

/// Throws a DistError that names the call, unless it went well.
void check(ncclResult_t result, const std::string& call, ncclComm_t comm = nullptr);

/// Who the ranks are, and how NCCL finds them.
struct Members {
  int rank, size;
  ncclUniqueId id;
};
/// The id is made by rank 0, which the others connect to.
Members members_of(Group& hosts);
/// While there is a CommId, the id is the address of rank 0, and all ranks make the same.
Members members_of(const Rendezvous& rendezvous);

/// NCCL reads the address of rank 0 from NCCL_COMM_ID until it has connected. Then the variable is put back:
/// another group that the process makes would take the address for its own. Threads may connect to one
/// address at the same time; to another they wait. After an exception it stays, as NCCL may still be reading.
class CommId {
 public:
  explicit CommId(const std::string& address);
  ~CommId();
  CommId(const CommId&) = delete;
  CommId& operator=(const CommId&) = delete;

 private:
  const int exceptions_;
};

/// NCCL waits for all ranks without an end: this throws a DistError after the timeout.
ncclComm_t connect(const Members& members, int gpu, std::chrono::milliseconds timeout);

}  // namespace ferrite::dist::nccl
