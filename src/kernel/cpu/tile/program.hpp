// Tile programs: kernels without branches on f32, faster than block programs. A tile is as many elements as
// eight vector registers hold. Instructions pass it on in these registers, each calling the next as its last
// act, so that a chain of ops touches memory only at its ends.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

struct TileCode;

/// Virtual, so that those who compile it by BlockExecutor need none of the functions' names.
class TileProgram {
 public:
  /// For a kernel that reads and writes elements at its own thread's index, without loops.
  explicit TileProgram(const Function& kernel);
  virtual ~TileProgram();
  TileProgram(TileProgram&&) noexcept;

  /// Why there is no program; empty if there is one.
  virtual const std::string& obstacle() const;
  /// Whether these arrays can be walked in tiles: dense along the last axis, or one element for all of it,
  /// and no index out of bounds. Arguments are those of BlockProgram::run.
  virtual bool fits(std::span<const std::int64_t> dim, void* const* arguments) const;
  /// Runs it on all threads of the pool or on this one. Undefined for arguments that fits() refused.
  virtual void run(std::span<const std::int64_t> dim, void* const* arguments, bool parallel = true) const;

 private:
  std::unique_ptr<TileCode> code_;
  std::unique_ptr<TileCode> plain_;  // for scalars that code_ cannot take
};

}  // namespace ferrite::kernel
