// Finds indices that are never negative. A negative index counts from the end of its axis, as in Python and
// Warp: executors and emitters add the extent to it. If an index cannot be negative, they need not check.
#pragma once

#include <optional>
#include <vector>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::kernel {

/// Facts about the integers of one function that hold for any arguments.
class IndexRange {
 public:
  IndexRange() = default;
  /// The function must outlive it.
  explicit IndexRange(const Function& function);

  bool is_never_negative(const Expr& index) const { return largest(index).has_value(); }
  /// Whether one of the indices of an element, component or atomic may be negative.
  bool may_be_negative(const Expr* first, std::size_t count) const;

 private:
  /// The largest value of an integer that is never negative; nothing if it may be negative, also by overflow.
  std::optional<std::int64_t> largest(const Expr& e) const;
  std::optional<std::int64_t> largest_of(int variable) const;
  std::optional<std::int64_t> largest_in(const Stmt& loop) const;

  struct Known {
    std::vector<const Expr*> values;  // all that is assigned to the variable
    std::vector<const Stmt*> loops;   // that count in it
    bool thread_index = false;        // i, j = wp.tid()
    bool open = false;                // also something of which nothing is known
    enum class State : std::uint8_t { fresh, searching, found } state = State::fresh;
    std::optional<std::int64_t> largest;
  };
  mutable std::vector<Known> variables_;
};

}  // namespace ferrite::kernel
