// The interpreter's memory of each number in an array: who read and wrote it last.
#pragma once

#include <span>

#include "ferrite/kernel/races.hpp"

namespace ferrite::kernel {

class RaceLog {
 public:
  RaceLog(std::vector<Race>& found, std::string kernel, int block_dim)
      : found_(found), kernel_(std::move(kernel)), block_dim_(block_dim) {}

  /// An array that threads share. Arrays of a block are forgotten at its end.
  void add_array(const std::string& name, std::span<const std::int64_t> shape, int stride, const Number* data,
                 bool of_block);
  void end_block();
  void barrier() { ++phase_; }

  /// `count` numbers from `first` on; arrays that were not added are ignored. A thread that writes the value
  /// already there (`same`) does not race with the thread that wrote it.
  void note(const Number* first, int count, Race::By by, bool same = false);

 private:
  /// A thread at a place, in the time between two barriers of its block.
  struct Mark {
    std::int32_t thread = -1, phase = 0;
    Place place;
  };
  struct Shadow {
    Mark write, atomic, read, other_read;
  };
  struct Tracked {
    std::string name;
    std::vector<std::int64_t> shape;
    int stride;
    const Number* data;
    std::size_t size;
    bool of_block;
    std::vector<Shadow> shadows;  // by number, once one was touched
  };
  bool meets(const Mark& mark, const Race::By& by) const;
  void report(const Tracked& array, std::size_t at, const Mark& mark, Race::Access access,
              const Race::By& by);
  void note(Tracked& array, std::size_t at, const Race::By& by, bool same);

  std::vector<Race>& found_;
  const std::string kernel_;
  const int block_dim_;
  std::int32_t phase_ = 0;
  std::vector<Tracked> arrays_;
};

}  // namespace ferrite::kernel
