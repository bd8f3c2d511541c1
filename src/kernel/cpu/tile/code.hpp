// The parts of tile programs. Included only by files that are compiled as kernels: the vectors are the
// machine's.
#pragma once

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/core/dtype.hpp"
#include "ferrite/kernel/emit.hpp"
#include "kernel/cpu/tile/program.hpp"
#include "math/vector_width.hpp"

namespace ferrite::kernel {

inline constexpr int vector_size = vector_bytes / 4, tile_vectors = 8, tile_size = vector_size * tile_vectors;

using Floats [[gnu::vector_size(vector_bytes)]] = float;
using Bits [[gnu::vector_size(vector_bytes)]] = std::int32_t;

/// The place of elements: those of tile `at` start at base + at * step bytes. Variables do not move.
struct TilePlace {
  std::byte* base = nullptr;
  std::int64_t step = 0;
  FERRITE_INLINE std::byte* operator[](std::int64_t at) const { return base + at * step; }
};

struct TileFrame;

/// Takes the tile in registers, and calls the next instruction with it.
template <std::size_t>
using FloatsAt = Floats;
template <class Index>
struct TileFunction;
template <std::size_t... k>
struct TileFunction<std::index_sequence<k...>> {
  struct Instruction {
    void (*run)(const Instruction*, const TileFrame*, std::int64_t at, FloatsAt<k>...);
    std::array<int, 2> operands{};  // in the frame
  };
};
using Vectors = std::make_index_sequence<tile_vectors>;
using TileInstruction = TileFunction<Vectors>::Instruction;

/// The start of a thread's memory. Scalars, in every lane, and places follow it; operands are byte offsets.
struct alignas(64) TileFrame {
  const TileInstruction* first = nullptr;
  std::int64_t end = 0;  // of the tiles to run

  template <class T>
  FERRITE_INLINE const T& at(int offset) const {
    return *reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(this) + offset);
  }
};

FERRITE_INLINE Floats load_floats(const void* from) {
  Floats x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
FERRITE_INLINE void store_floats(void* to, Floats x) { std::memcpy(to, &x, sizeof x); }

/// The kind of an operand: a tile in memory, or a scalar.
enum class TileOperand : std::uint8_t { place, scalar };

TileInstruction tile_load(ScalarType type, int place);   // f32 or bf16; of one element in every lane below
TileInstruction tile_store(ScalarType type, int place);  // the tile stays in registers
TileInstruction tile_scalar(int scalar);
TileInstruction tile_end();
/// tile = builtin(tile, operand), or builtin(operand, tile) if `reversed`. run is null if there is no such
/// instruction.
TileInstruction tile_binary(Builtin builtin, TileOperand operand, int index, bool reversed);
/// The tile is a mask: tile ? a : b.
TileInstruction tile_select(TileOperand a, int first, TileOperand b, int second);
/// tile = compare(tile, operand) ? c : tile, or with the sides of the comparison or the choices swapped.
struct TileChoice {
  Builtin compare;
  bool tile_is_right, tile_if_true;
};
TileInstruction tile_choose(TileChoice choice, TileOperand operand, int index, TileOperand c, int other);
/// tile = the larger of it and a scalar, or the smaller: tile <= scalar ? scalar : tile, scalar <= tile ?
/// scalar : tile.
TileInstruction tile_extreme(bool max, int scalar);
/// Whether tile_extreme works for this scalar: NaN and one of the zeros are excluded.
inline bool is_extreme(bool max, float scalar) {
  return scalar == scalar && !(scalar == 0 && std::signbit(scalar) == max);
}
TileInstruction tile_unary(Builtin builtin);
TileInstruction tile_math(Builtin builtin);  // exp and its like
/// f32 rounded to bf16.
TileInstruction tile_round();
/// Tiles from `begin` on, until `end`.
void run_tiles(const TileInstruction* code, TileFrame& frame, std::int64_t begin, std::int64_t end);

struct TileCode {
  std::string obstacle;
  std::vector<TileInstruction> instructions;
  int rank = 1;
  struct ArrayPlace {
    int parameter;
    ScalarType type;
    std::uint8_t fixed;  // axes, as bits, along which its index is 0
    bool stored = false;
    std::int64_t stride(const ArrayArgument& array, std::size_t along) const {
      return (fixed >> along & 1) != 0 ? 0 : array.strides[along];
    }
  };
  std::vector<ArrayPlace> arrays;  // the first places
  int variables = 0;               // the other places
  struct ScalarPlace {
    int parameter;  // -1: a literal
    float literal;
    std::int32_t bits;  // of a truth value
    bool is_bits;
  };
  std::vector<ScalarPlace> scalars;
  struct ExtremeScalar {
    int parameter;
    bool max;
  };
  std::vector<ExtremeScalar> extremes;  // for all of which is_extreme() must hold

  static constexpr int scalar_offset(std::size_t i) {
    return static_cast<int>(sizeof(TileFrame) + i * sizeof(Floats));
  }
  int place_offset(std::size_t i) const {
    return scalar_offset(scalars.size()) + static_cast<int>(i * sizeof(TilePlace));
  }
};

}  // namespace ferrite::kernel
