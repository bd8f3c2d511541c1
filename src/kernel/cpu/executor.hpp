// What compiles and runs block programs, once for each instruction set: their lanes are its vectors.
#pragma once

#include "ferrite/kernel/block.hpp"
#include "kernel/cpu/tile/program.hpp"

namespace ferrite::kernel {

/// The functions of BlockProgram, and tile programs by themselves.
struct BlockExecutor {
  std::shared_ptr<const BlockCode> (*compile)(const Module& module, const Function& kernel);
  const std::string& (*fallback)(const BlockCode& code);
  void (*run)(const BlockCode& code, std::span<const std::int64_t> dim, void* const* arguments,
              const BlockOptions& options);
  std::unique_ptr<TileProgram> (*compile_tiles)(const Function& kernel);
};

/// That of the chosen set.
const BlockExecutor& executor();

}  // namespace ferrite::kernel
