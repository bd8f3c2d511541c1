// Loads NCCL when its first function is called, as backend_cuda/runtime/dlopen_libraries.cpp does for others.
#include <fmt/format.h>
#include <nccl.h>

#include "backend_cuda/runtime/dlopen_library.hpp"

namespace ferrite::cuda {
namespace {

const DlopenLibrary& nccl() {
  static const DlopenLibrary* const library = new DlopenLibrary(fmt::format("libnccl.so.{}", NCCL_MAJOR));
  return *library;
}

}  // namespace
}  // namespace ferrite::cuda

extern "C" {

FERRITE_FORWARD(nccl, ncclResult_t, ncclGetVersion, (int* version), (version))
FERRITE_FORWARD(nccl, ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id), (id))
FERRITE_FORWARD(nccl, ncclResult_t, ncclCommInitRank,
                (ncclComm_t * comm, int size, ncclUniqueId id, int rank), (comm, size, id, rank))
FERRITE_FORWARD(nccl, ncclResult_t, ncclCommDestroy, (ncclComm_t comm), (comm))
FERRITE_FORWARD(nccl, ncclResult_t, ncclCommAbort, (ncclComm_t comm), (comm))
FERRITE_FORWARD(nccl, ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* error),
                (comm, error))
FERRITE_FORWARD(nccl, const char*, ncclGetErrorString, (ncclResult_t result), (result))
FERRITE_FORWARD(nccl, const char*, ncclGetLastError, (ncclComm_t comm), (comm))
FERRITE_FORWARD(nccl, ncclResult_t, ncclAllReduce,
                (const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                 ncclComm_t comm, cudaStream_t stream),
                (in, out, count, type, op, comm, stream))
FERRITE_FORWARD(nccl, ncclResult_t, ncclReduceScatter,
                (const void* in, void* out, size_t count, ncclDataType_t type, ncclRedOp_t op,
                 ncclComm_t comm, cudaStream_t stream),
                (in, out, count, type, op, comm, stream))
FERRITE_FORWARD(nccl, ncclResult_t, ncclAllGather,
                (const void* in, void* out, size_t count, ncclDataType_t type, ncclComm_t comm,
                 cudaStream_t stream),
                (in, out, count, type, comm, stream))
FERRITE_FORWARD(nccl, ncclResult_t, ncclBroadcast,
                (const void* in, void* out, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                 cudaStream_t stream),
                (in, out, count, type, root, comm, stream))
FERRITE_FORWARD(nccl, ncclResult_t, ncclSend,
                (const void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                 cudaStream_t stream),
                (data, count, type, peer, comm, stream))
FERRITE_FORWARD(nccl, ncclResult_t, ncclRecv,
                (void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                 cudaStream_t stream),
                (data, count, type, peer, comm, stream))

}  // extern "C"
