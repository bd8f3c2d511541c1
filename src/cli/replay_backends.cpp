// Every op on every backend that `ferrite replay` offers: the part that takes long to compile.
#include "cli/replay_backends.hpp"

namespace ferrite::cli {

Replayer library_replayer() {
  Replayer replayer;
  replayer.add<Cpu>("cpu").add<Reference>("reference").add<Lazy<Cpu>>("lazy-cpu").add<CpuParity>("parity");
#if FERRITE_HAS_CUDA
  replayer.add<Cuda>("cuda").add<Lazy<Cuda>>("lazy-cuda").add<CudaParity>("cuda-parity");
#endif
  return replayer;
}

}  // namespace ferrite::cli
