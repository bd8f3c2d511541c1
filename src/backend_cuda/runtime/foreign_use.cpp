#include "ferrite/backend/foreign_use.hpp"

#include "backend_cuda/runtime/pool.hpp"

namespace ferrite::cuda {

void wait_for_consumer(const Array& array) noexcept {
  if (array.device().kind != DeviceKind::cuda) return;
  try {
    void* const default_stream = reinterpret_cast<void*>(0x1);  // cudaStreamLegacy
    Pool::record_use(*array.buffer(), default_stream);
  } catch (...) {  // CUDA is lost or shut down: nothing runs any more
  }
}

}  // namespace ferrite::cuda
