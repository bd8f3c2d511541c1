// The running interpreter: frames of numbers, arrays by handle, and the threads of a block.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernel/builtins/call.hpp"
#include "kernel/interpret/race_log.hpp"

namespace ferrite::kernel {

/// The threads of the grid. Throws ShapeError or ValueError if the kernel cannot run on it.
std::int64_t checked_threads(const Function& kernel, std::span<const std::int64_t> dim, int block_dim);

/// Memory for temporaries, given back in the reverse order.
class Arena {
 public:
  Number* take(std::size_t n) {
    while (chunk_ < chunks_.size() && used_ + n > chunks_[chunk_].size()) {
      ++chunk_;
      used_ = 0;
    }
    if (chunk_ == chunks_.size()) chunks_.emplace_back(std::max<std::size_t>(n, 4096));
    Number* found = chunks_[chunk_].data() + used_;
    used_ += n;
    return found;
  }
  /// Frees what was allocated while it lived.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), chunk_(arena.chunk_), used_(arena.used_) {}
    ~Scope() {
      arena_.chunk_ = chunk_;
      arena_.used_ = used_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    std::size_t chunk_, used_;
  };

 private:
  std::deque<std::vector<Number>> chunks_;  // a deque: vectors stay where they are
  std::size_t chunk_ = 0, used_ = 0;
};

class Interpreter final : public Machine {
 public:
  Interpreter(const Module& module, const Function& kernel, std::span<const std::int64_t> dim,
              const InterpretOptions& options);
  void run(std::span<Value> arguments);

  // Machine
  Number* locate(Number handle, std::span<const std::int64_t> indices) override;
  std::int64_t extent(Number handle, int axis) override;
  std::int64_t thread_index(int axis) override;
  std::int64_t block_dim() override { return options_.block_dim; }
  [[noreturn]] void fail(std::string_view problem) override;

 private:
  enum class Flow : std::uint8_t { next, break_, continue_, return_ };

  /// Where the variables of a function lie in its frame.
  struct Layout {
    std::vector<int> offsets;
    int size = 0;
  };
  /// The variables of one call, and of one thread at the top.
  struct Frame {
    const Function* function = nullptr;
    const Layout* layout = nullptr;
    Number* numbers = nullptr;
    std::vector<bool> written;  // by variable
    Number* results = nullptr;
  };
  struct ArrayView {
    std::string name;
    std::vector<std::int64_t> shape;
    int stride = 1;  // numbers per element
    Number* data = nullptr;
    std::vector<Number> own;  // the memory of arrays that kernels make
  };
  /// Adds an array and returns its handle. Handles begin at 1, so a struct of zeros holds no array.
  std::int64_t add_array(ArrayView array);
  /// The array of a handle; an error if it was never set.
  ArrayView& array_of(Number handle);
  /// A loop over a range: count rounds, from `value` on.
  struct Range {
    std::int64_t value, step;
    std::uint64_t count;
  };

  // interpreter.cpp
  int size_of(Type type) const;
  int field_offset(std::uint16_t structure, int field) const;
  const Layout& layout_of(const Function& function);
  void bind(const Value& value, Type type, const std::string& name, Number* out);
  void run_block(std::int64_t first, std::int64_t count, const std::vector<Number>& parameters);
  Frame frame_for_thread(const std::vector<Number>& parameters);

  Number* element_at(Number handle, std::span<const std::int64_t> indices);
  /// For the log of races, if there is one: `count` numbers of a place in an array.
  void note(const Expr& place, const Number* first, int count, Race::Access access, bool same = false);

  // expressions.cpp
  /// The numbers of an expression, to be read.
  const Number* read(const Expr& e);
  void evaluate(const Expr& e, Number* out);
  /// The numbers of an expression: in place if possible, else computed into the arena.
  Number* numbers(const Expr& e);
  Number* place_of(const Expr& e);
  std::int64_t component_offset(const Expr& e);
  std::int64_t integer(const Expr& e);
  bool truth(const Expr& e);
  void apply_builtin(const Expr& e, Number* out);
  void call_function(const Expr& e, Number* out);
  void construct_value(const Expr& e, Number* out);
  Number* element_of(const Expr& e);
  Number* variable_of(const Expr& e, bool write);

  // statements.cpp
  Flow execute(const std::vector<Stmt>& body);
  Flow execute(const Stmt& s);
  void assign(const Stmt& s);
  void update(const Stmt& s);
  void declare_array(const Stmt& s);
  Flow for_loop(const Stmt& s);
  Flow while_loop(const Stmt& s);
  Range range_of(const Stmt& s);
  void set_loop_variable(const Stmt& s, std::int64_t value);
  void step(Place place);

  // lockstep.cpp: the threads of a block side by side, for kernels with barriers
  struct Lane {
    Frame frame;
    std::int64_t thread = 0;
    Flow flow = Flow::next;
  };
  using Lanes = std::vector<Lane*>;
  void lockstep(const std::vector<Stmt>& body, const Lanes& lanes);
  void lockstep(const Stmt& s, const Lanes& lanes);
  void lockstep_if(const Stmt& s, const Lanes& lanes);
  void lockstep_loop(const Stmt& s, const Lanes& lanes);
  void barrier(const Stmt& s, const Lanes& lanes);
  void enter(Lane& lane);
  void leave(Lane& lane);

  const Module& module_;
  const Function& kernel_;
  std::vector<std::int64_t> dim_;
  InterpretOptions options_;
  std::map<const Function*, Layout> layouts_;
  std::deque<ArrayView> arrays_;
  std::map<const Stmt*, std::int64_t> shared_;  // handles of the block's arrays
  Arena arena_;
  Frame frame_;
  Place place_;
  std::int64_t thread_ = 0, steps_ = 0;
  std::optional<RaceLog> races_;
  std::vector<Lane> lanes_;
};

}  // namespace ferrite::kernel
