// CudaMemoryLog in a build without CUDA. There is no Cuda to make one of, so the members only have to exist.
#include "ferrite/backend/cuda_memory_log.hpp"

namespace ferrite {

CudaMemoryLog::CudaMemoryLog(Cuda& cuda, std::size_t) : cuda_(cuda), start_(0) {}
CudaMemoryLog::~CudaMemoryLog() = default;
void CudaMemoryLog::write_trace(const std::filesystem::path&) const {}

}  // namespace ferrite
