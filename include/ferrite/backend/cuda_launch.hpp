// How a kernel of the user is started on a GPU: into how many blocks its grid is cut. The choice is ferrite's
// (docs/kernels.md), and this is how to see it.
#pragma once

#include <cstdint>
#include <string>

#include "ferrite/backend/cuda.hpp"
#include "ferrite/kernel/kernel.hpp"

namespace ferrite {

struct LaunchBlocks {
  std::int64_t blocks = 0;  // 0 for an empty grid, which is not launched
  int threads = 0;          // of a block
  int items = 1;            // elements of the grid per thread
  friend bool operator==(const LaunchBlocks&, const LaunchBlocks&) = default;
};

/// How launches of the kernel over a grid of this size are started on this GPU: as the last one was, or as
/// the next one will be. A large grid is measured at its first launch; before that, this is what it would get
/// without measurement. Compiles the kernel if need be. Throws what a launch throws.
FERRITE_API LaunchBlocks launch_blocks(Cuda& cuda, const kernel::Kernel& kernel, const kernel::Grid& grid);

/// "1024 blocks of 256 threads, 4 elements each"
inline std::string to_string(const LaunchBlocks& launch) {
  const auto counted = [](std::int64_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  return counted(launch.blocks, "block") + " of " + counted(launch.threads, "thread") +
         (launch.items == 1 ? "" : ", " + counted(launch.items, "element") + " each");
}

}  // namespace ferrite
