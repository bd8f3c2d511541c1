// Block programs: registers, instructions, and their execution. A register holds one scalar for each of the
// threads (lanes) of a block; an instruction is a function that loops over them.
#pragma once

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/kernel/block.hpp"
#include "ferrite/kernel/emit.hpp"
#include "kernel/builtins/call.hpp"
#include "kernel/cpu/tile/program.hpp"
#include "kernel/ir/element_layout.hpp"

namespace ferrite::kernel {

/// The place of a register in the register file: bytes per lane. f16 and bf16 are kept as f32, rounded.
using Register = std::uint32_t;
inline constexpr Register no_register = ~Register{0};

/// A scalar of an expression: a register, or the number of an array.
struct Cell {
  ScalarType type = ScalarType::f32;
  Register reg = no_register;
  int array = -1;  // in BlockCode::arrays
};
using Cells = std::vector<Cell>;
/// An array, or a place for one that was never set.
constexpr bool is_array(const Cell& c) { return c.reg == no_register; }

/// Bytes of a scalar in a register.
constexpr std::uint32_t lane_bytes(ScalarType s) {
  return s == ScalarType::f16 || s == ScalarType::bf16 ? 4 : static_cast<std::uint32_t>(bits_of(s)) / 8;
}

struct Lanes;
struct Instruction;
using Execute = void (*)(const Instruction&, Lanes&);

struct Instruction {
  Execute execute = nullptr;
  Register out = no_register, a = no_register, b = no_register, c = no_register;
  bool single = false;  // b is the same for all lanes
  int mask = -1;        // which lanes it is for: a mask, or -1 for all
  int detail = 0;   // of memory: an access; of calls: a call; of control: masks; of fills: an axis or array
  int target = -1;  // of jumps; a second mask
  std::int64_t number = 0;  // byte offset of a component; bits of a constant
  Place place;
};

/// An array that a program knows.
struct ArraySlot {
  enum class Kind : std::uint8_t { argument, shared, local };
  Kind kind = Kind::argument;
  std::string name;
  Type type;
  ElementLayout layout;
  int parameter = 0;                    // argument: which one,
  std::uint32_t offset = 0;             // and where in it (in a struct)
  std::array<std::int64_t, 4> shape{};  // of shared and local arrays
  std::int64_t elements = 0;            // the same
  std::int64_t memory = 0;              // shared: where it lies in the block's memory
  Register base = 0;  // local: element e, part p is the register base + e * stride + part_at[p]
  std::uint32_t stride = 0;
  std::vector<std::uint32_t> part_at;
};

/// One place where a program reads or writes an array.
struct Access {
  int array = 0;
  bool linear = false;             // the one index is the thread's number
  std::vector<Cell> indices;       // for messages
  Register offsets = no_register;  // i64: the element; unless linear
  int pattern = 0;                 // in Lanes::patterns
};

/// A builtin that is evaluated lane by lane, as in the interpreter; or the values to show when one fails.
struct Call {
  const BuiltinInfo* row = nullptr;
  Type type;
  std::vector<Type> types;
  std::vector<Cells> arguments;
  Cells out;
};

struct BlockCode {
  const Module* module = nullptr;
  const Function* kernel = nullptr;
  std::string fallback;
  std::optional<TileProgram> tiles;  // for grids and arrays that fit it

  std::vector<Instruction> code;
  std::vector<ArraySlot> arrays;
  std::vector<Access> accesses;
  std::vector<Call> calls;
  std::vector<Cells> lists;                  // registers to zero
  std::vector<std::vector<int>> mask_lists;  // masks to clear
  std::vector<std::string> texts;            // messages of assertions, names of types

  struct Constant {
    Cell cell;
    Number number;
  };
  std::vector<Constant> constants;
  struct Parameter {
    Cell cell;
    int parameter;
    std::uint32_t offset;
  };
  std::vector<Parameter> parameters;
  std::vector<Register> masks;
  std::uint32_t bytes_per_lane = 0;
  std::int64_t shared_bytes = 0;
  int patterns = 0;
  bool blocks = false;      // shared arrays or barriers: lanes are the threads of a block
  bool sequential = false;  // atomics
};

/// The layout of an access's elements, found when their places are computed.
enum class Pattern : std::uint8_t { scattered, consecutive, one };

struct BlockRun;

/// A block of threads that is running.
struct Lanes {
  const BlockCode& program;
  const BlockRun& run;
  std::vector<int> active;  // lanes in each mask
  std::vector<Pattern> patterns;
  std::byte* file = nullptr;
  std::byte* shared = nullptr;
  std::size_t capacity = 0;  // lanes of a register, a multiple of 64
  int count = 0;             // lanes in use
  int width = 0;             // the same, rounded up: instructions without effect may run for all of these
  std::int64_t first = 0;    // number of the first thread
  std::size_t next = 0;      // the next instruction
  std::int64_t steps = 0;

  template <class T>
  T* at(Register r) {
    return reinterpret_cast<T*>(file + r * capacity);
  }
  std::uint8_t* mask(int m) { return at<std::uint8_t>(program.masks[static_cast<std::size_t>(m)]); }
  /// The lanes an instruction is for; null if that is all of them.
  const std::uint8_t* lanes_of(const Instruction& i) {
    return i.mask < 0 || active[static_cast<std::size_t>(i.mask)] == count ? nullptr : mask(i.mask);
  }
  bool none(const Instruction& i) const {
    return i.mask >= 0 && active[static_cast<std::size_t>(i.mask)] == 0;
  }

  std::int64_t thread_index(int lane, int axis) const;
  [[noreturn]] void fail(const Instruction& i, int lane, std::string_view problem);
  /// Makes the call of a failing instruction again by the interpreter's rules, to get the message.
  void call_lane(const Instruction& i, const Call& call, int lane);
};

/// A launch: the grid and the arguments.
struct BlockRun {
  std::vector<std::int64_t> dim;
  const BlockOptions& options;
  void* const* arguments;
  std::vector<ArrayArgument> arrays;  // by slot; of shared and local arrays only the shape
  std::atomic<std::int64_t> steps{0};
};

// The instructions there are. Those for a builtin and the type of its first operand; null if there is none.
Execute arithmetic_instruction(Builtin builtin, ScalarType type);  // instructions/arithmetic.cpp
Execute integer_instruction(Builtin builtin, ScalarType type);     // instructions/integers.cpp
Execute math_instruction(Builtin builtin, ScalarType type);        // ../math/block_math.cpp
Execute vector_instruction(const Call& call);                      // instructions/vectors.cpp
Execute cast_instruction(ScalarType from, ScalarType to);          // instructions/casts.cpp

// instructions/memory.cpp
Execute offset_instruction(ScalarType index, bool first,
                           bool wraps);  // wraps: negative ones count from the end
Execute pattern_instruction();
Execute load_instruction(ScalarType type);
Execute store_instruction(ScalarType type);
Execute atomic_instruction(Builtin builtin, ScalarType type);

// instructions/control.cpp: only the size of `type` matters.
Execute copy_instruction(ScalarType type);    // out = a, of active lanes
Execute select_instruction(ScalarType type);  // out = a ? b : c
namespace control {
void call(const Instruction&, Lanes&);            // call `detail`, lane by lane
void zero(const Instruction&, Lanes&);            // the registers of list `detail`
void zero_array(const Instruction&, Lanes&);      // local array `detail`
void fill_integer(const Instruction&, Lanes&);    // out, an i32, = number
void extent(const Instruction&, Lanes&);          // out, an i32, = extent `number` of array `detail`
void block_dim(const Instruction&, Lanes&);       // out, an i32
void thread_number(const Instruction&, Lanes&);   // out, an i32
void thread_indices(const Instruction&, Lanes&);  // out, an i32, = index on axis `detail`
void logical_and(const Instruction&, Lanes&);
void logical_or(const Instruction&, Lanes&);
void equals(const Instruction&, Lanes&);  // out, a bool, = whether the i64 a is `number`
void way(const Instruction&, Lanes&);     // out = (a or 0) * number + b, i64; b must be in [-number, number)
void assertion(const Instruction&, Lanes&);     // a must hold; text `detail`
void barrier(const Instruction&, Lanes&);       // all lanes must be active
void set_mask(const Instruction&, Lanes&);      // mask detail = mask
void narrow(const Instruction&, Lanes&);        // mask detail = mask where a is true
void split(const Instruction&, Lanes&);         // the same, and mask target = mask where a is false
void clear_masks(const Instruction&, Lanes&);   // takes the lanes of mask out of mask list `detail`
void jump(const Instruction&, Lanes&);          // to target
void jump_if_none(const Instruction&, Lanes&);  // to target if mask has no lanes
void begin_range(const Instruction&, Lanes&);   // out = value, rounds left, step; from a, b, c; all i64
void begin_range_u64(const Instruction&, Lanes&);
void while_round(const Instruction&, Lanes&);  // mask = mask where a; detail = mask; to target if none
}  // namespace control
/// Puts the next value of the range `a` into the loop variable `out`; acts like while_round if the range is
/// not empty.
Execute for_round_instruction(ScalarType variable);
/// The same if all lanes go through the same range.
Execute uniform_round_instruction(ScalarType variable);

/// The scalar at a lane of a register, and back.
Number read_lane(ScalarType type, const std::byte* reg, int lane);
void write_lane(ScalarType type, std::byte* reg, int lane, Number n);

}  // namespace ferrite::kernel
