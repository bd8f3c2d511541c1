// Runs a block program: arguments into registers, the grid into blocks, blocks onto the threads of the pool.
// Without a program it runs the interpreter.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/isa_table.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "kernel/cpu/block/compiler.hpp"
#include "kernel/cpu/block/lanes.hpp"
#include "kernel/cpu/executor.hpp"
#include "kernel/interpret/machine.hpp"
#include "kernel/interpret/packed_values.hpp"

namespace ferrite::kernel {

namespace {

constexpr std::size_t file_bytes = 32768;  // of registers: they should stay in the first cache
constexpr std::size_t least_lanes = 64, most_lanes = 960;
constexpr std::int64_t threads_per_chunk = 16384;

/// Lanes of a register: an odd multiple of 64. If registers were 4096 bytes apart, they would share the
/// address bits by which the processor tells loads from earlier stores, and every instruction would take
/// twice as long.
std::size_t lanes_for(std::size_t bytes_per_lane, std::size_t threads, bool all_in_one) {
  const std::size_t fitting =
      std::clamp(file_bytes / std::max<std::size_t>(bytes_per_lane, 1), least_lanes, most_lanes);
  const std::size_t units = ((all_in_one ? threads : std::min(threads, fitting)) + 63) / 64;
  return 64 * (units % 2 == 1 ? units : all_in_one || units == 0 ? units + 1 : units - 1);
}

/// What builtins see when they are evaluated for one lane.
class LaneMachine final : public Machine {
 public:
  LaneMachine(const Instruction& i, Lanes& l, int lane) : i_(i), l_(l), lane_(lane) {}
  Number* locate(Number, std::span<const std::int64_t>) override { fail("an array where none can be"); }
  std::int64_t extent(Number, int) override { fail("an array where none can be"); }
  std::int64_t thread_index(int axis) override { return l_.thread_index(lane_, axis); }
  std::int64_t block_dim() override { return l_.run.options.block_dim; }
  [[noreturn]] void fail(std::string_view problem) override { l_.fail(i_, lane_, problem); }

 private:
  const Instruction& i_;
  Lanes& l_;
  int lane_;
};

void fill(std::byte* reg, std::size_t lanes, Cell cell, Number n) {
  visit_scalar(cell.type, [&]<ScalarType s>() {
    using T = typename Form<s>::Lane;
    const T x = is_float(s) ? static_cast<T>(n.real) : static_cast<T>(n.integer);
    std::fill_n(reinterpret_cast<T*>(reg), lanes, x);
  });
}

/// Memory of a thread of the pool, kept for its next block.
std::vector<std::uint64_t>& scratch() {
  thread_local std::vector<std::uint64_t> memory;
  return memory;
}

}  // namespace

Number read_lane(ScalarType type, const std::byte* reg, int lane) {
  return visit_scalar(type, [&]<ScalarType s>() {
    const auto x = reinterpret_cast<const typename Form<s>::Lane*>(reg)[lane];
    return is_float(s) ? from_real(static_cast<double>(x)) : from_integer(static_cast<std::int64_t>(x));
  });
}
void write_lane(ScalarType type, std::byte* reg, int lane, Number n) {
  visit_scalar(type, [&]<ScalarType s>() {
    using T = typename Form<s>::Lane;
    reinterpret_cast<T*>(reg)[lane] = is_float(s) ? static_cast<T>(n.real) : static_cast<T>(n.integer);
  });
}

std::int64_t Lanes::thread_index(int lane, int axis) const {
  std::int64_t rest = first + lane;
  if (axis < 0) return rest;
  for (std::size_t k = run.dim.size() - 1; k > static_cast<std::size_t>(axis); --k) rest /= run.dim[k];
  return rest % run.dim[static_cast<std::size_t>(axis)];
}

void Lanes::fail(const Instruction& i, int lane, std::string_view problem) {
  std::vector<std::int64_t> at;
  for (int axis = 0; axis < static_cast<int>(run.dim.size()); ++axis) at.push_back(thread_index(lane, axis));
  throw KernelError(
      program.module->source.get(), i.place,
      fmt::format("{} (thread [{}] of grid [{}])", problem, fmt::join(at, ", "), fmt::join(run.dim, ", ")));
}

void Lanes::call_lane(const Instruction& i, const Call& call, int lane) {
  std::array<Number, 96> room;  // at most: the components of four 4x4 matrices, and the result
  std::array<Number*, 8> values;
  Number* free = room.data();
  for (std::size_t a = 0; a < call.arguments.size(); ++a) {
    values[a] = free;
    for (const Cell& c : call.arguments[a]) *free++ = read_lane(c.type, at<std::byte>(c.reg), lane);
  }
  LaneMachine machine(i, *this, lane);
  BuiltinCall builtin{machine, Precision::native, call.type, call.types, values.data(), free};
  call.row->evaluate(builtin);
  for (const Cell& c : call.out) write_lane(c.type, at<std::byte>(c.reg), lane, *free++);
  if (call.row->effect == Effect::updates_first)
    write_lane(ScalarType::u32, at<std::byte>(call.arguments[0][0].reg), lane, values[0][0]);
}

void control::call(const Instruction& i, Lanes& l) {
  if (l.none(i)) return;
  const std::uint8_t* lanes = l.lanes_of(i);
  const Call& what = l.program.calls[static_cast<std::size_t>(i.detail)];
  for (int k = 0; k < l.count; ++k)
    if (lanes == nullptr || lanes[k] != 0) l.call_lane(i, what, k);
}

namespace {

std::shared_ptr<const BlockCode> compile(const Module& module, const Function& kernel) {
  auto code = std::make_shared<BlockCode>();
  code->module = &module;
  code->kernel = &kernel;
  try {
    BlockCompiler(*code).compile();
  } catch (const Unsupported& e) {
    code->fallback = e.reason;
  }
  TileProgram tiles(kernel);
  if (tiles.obstacle().empty()) code->tiles.emplace(std::move(tiles));
  return code;
}

void run(const BlockCode& program, std::span<const std::int64_t> dim, void* const* arguments,
         const BlockOptions& options) {
  const std::int64_t threads = checked_threads(*program.kernel, dim, options.block_dim);
  if (!program.fallback.empty())
    return interpret_packed(*program.module, *program.kernel, dim, arguments,
                            {Precision::native, options.block_dim, options.step_limit});
  if (threads == 0) return;
  if (program.tiles && program.tiles->fits(dim, arguments))
    return program.tiles->run(dim, arguments, options.parallel);
  BlockRun run{{dim.begin(), dim.end()}, options, arguments, {}};
  for (const ArraySlot& slot : program.arrays) {
    ArrayArgument array;
    if (slot.kind == ArraySlot::Kind::argument) {
      std::memcpy(&array, static_cast<const std::byte*>(arguments[slot.parameter]) + slot.offset,
                  sizeof array);
    } else {
      std::int64_t stride = 1;
      for (std::size_t axis = slot.type.dims; axis-- > 0; stride *= slot.shape[axis]) {
        array.shape[axis] = static_cast<std::int32_t>(slot.shape[axis]);
        array.strides[axis] = stride;
      }
    }
    run.arrays.push_back(array);
  }

  const auto wanted = static_cast<std::size_t>(program.blocks ? options.block_dim : threads);
  const std::size_t capacity = lanes_for(program.bytes_per_lane, wanted, program.blocks);
  const auto per_block = static_cast<std::int64_t>(program.blocks ? wanted : capacity);

  const auto range = [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint64_t>& memory = scratch();
    const std::size_t registers = program.bytes_per_lane * capacity,
                      total = registers + static_cast<std::size_t>(program.shared_bytes) + 64;
    if (memory.size() < total / 8 + 1) memory.resize(total / 8 + 1);
    Lanes l{program, run, {}, {}};
    auto* base = reinterpret_cast<std::byte*>(memory.data());
    base += (64 - reinterpret_cast<std::uintptr_t>(base) % 64) % 64;
    l.file = base;
    l.shared = base + registers;
    l.capacity = capacity;
    l.active.resize(program.masks.size());
    l.patterns.resize(static_cast<std::size_t>(program.patterns));
    for (const auto& c : program.constants) fill(l.at<std::byte>(c.cell.reg), capacity, c.cell, c.number);
    for (const auto& p : program.parameters)
      fill(l.at<std::byte>(p.cell.reg), capacity, p.cell,
           read_scalar(p.cell.type, static_cast<const std::byte*>(run.arguments[p.parameter]) + p.offset));
    for (std::int64_t first = begin; first < end; first += per_block) {
      l.first = first;
      l.count = static_cast<int>(std::min(per_block, end - first));
      l.width = (l.count + 15) / 16 * 16;
      std::memset(l.shared, 0, static_cast<std::size_t>(program.shared_bytes));
      for (l.next = 0; l.next < program.code.size();) {
        const Instruction& i = program.code[l.next++];
        i.execute(i, l);
      }
    }
    run.steps += l.steps;
  };
  if (program.sequential || !options.parallel) return range(0, threads);
  parallel_ranges(threads, (threads_per_chunk + per_block - 1) / per_block * per_block, range);
}

}  // namespace

FERRITE_ISA_TABLE(kernel, BlockExecutor) = {
    compile, [](const BlockCode& code) -> const std::string& { return code.fallback; }, run,
    [](const Function& kernel) { return std::make_unique<TileProgram>(kernel); }};

}  // namespace ferrite::kernel
