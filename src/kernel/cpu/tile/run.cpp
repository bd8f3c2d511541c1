// Running tile programs: the pool's threads take ranges of tiles, row by row.
#include <algorithm>
#include <array>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/kernel/emit.hpp"
#include "kernel/cpu/tile/code.hpp"

namespace ferrite::kernel {

namespace {

/// A chunk is run by one thread: long, so that the machine reads ahead, and at least four per thread.
constexpr std::int64_t least_chunk = 1 << 16, most_chunk = 1 << 20;

const ArrayArgument& array_of(void* const* arguments, int parameter) {
  return *static_cast<const ArrayArgument*>(arguments[parameter]);
}

/// One thread's part: where its arrays are, and memory for variables and for tiles that are not whole.
class TileRunner {
 public:
  TileRunner(const TileCode& code, std::span<const std::int64_t> dim, void* const* arguments)
      : code_(code), dim_(dim), last_(dim.size() - 1), arguments_(arguments) {
    const std::size_t count = code.arrays.size() + static_cast<std::size_t>(code.variables);
    const auto frame_bytes = static_cast<std::size_t>(code.place_offset(count));
    memory_.resize(frame_bytes + 128 + count * tile_size * sizeof(float));
    std::byte* const first = aligned(memory_.data());
    frame_ = new (first) TileFrame;
    places_ = reinterpret_cast<TilePlace*>(first + code.place_offset(0));
    for (std::size_t i = 0; i < count; ++i) {
      own_.push_back(aligned(first + frame_bytes) + i * tile_size * sizeof(float));
      new (places_ + i) TilePlace{own_.back(), 0};
    }
    for (std::size_t i = 0; i < code.scalars.size(); ++i) {
      const TileCode::ScalarPlace& s = code.scalars[i];
      const float x = s.parameter < 0 ? s.literal : *static_cast<const float*>(arguments[s.parameter]);
      // As bits: 0 + -0 would be 0.
      new (first + TileCode::scalar_offset(i))
          Bits(Bits{} + (s.is_bits ? s.bits : std::bit_cast<std::int32_t>(x)));
    }
  }

  /// Tiles [begin, end) of all rows, one row after the other.
  void run(std::int64_t begin, std::int64_t end) {
    const std::int64_t in_row = tiles_of(dim_[last_]), whole = dim_[last_] / tile_size;
    while (begin < end) {
      std::int64_t tile = begin % in_row;
      const std::int64_t stop = std::min(in_row, tile + end - begin);
      begin += stop - tile;
      enter_row((begin - 1) / in_row);
      const std::int64_t full = std::max(tile, std::min(stop, whole));
      run_tiles(code_.instructions.data(), *frame_, tile * tile_size, full * tile_size);
      tile = full;
      if (tile < stop) run_part(tile * tile_size, dim_[last_] - tile * tile_size);
    }
  }

  static std::int64_t tiles_of(std::int64_t extent) { return (extent + tile_size - 1) / tile_size; }

 private:
  void enter_row(std::int64_t row) {
    for (std::size_t axis = last_; axis-- > 0; row /= dim_[axis]) index_[axis] = row % dim_[axis];
    for (std::size_t i = 0; i < code_.arrays.size(); ++i) {
      const TileCode::ArrayPlace& place = code_.arrays[i];
      const ArrayArgument& a = array_of(arguments_, place.parameter);
      std::int64_t offset = 0;
      for (std::size_t axis = 0; axis < last_; ++axis) offset += index_[axis] * place.stride(a, axis);
      rows_[i] = static_cast<std::byte*>(a.data) + offset * size(place);
      if (place.stride(a, last_) == 0)
        spread(i, rows_[i]);
      else
        places_[i] = {rows_[i], size(place)};
    }
  }
  static std::byte* aligned(std::byte* p) { return p + (64 - reinterpret_cast<std::uintptr_t>(p) % 64) % 64; }
  static std::int64_t size(const TileCode::ArrayPlace& place) {
    return place.type == ScalarType::bf16 ? 2 : 4;
  }

  /// One element, repeated as a tile.
  void spread(std::size_t i, const std::byte* element) {
    places_[i] = {own_[i], 0};
    for (std::int64_t k = 0, bytes = size(code_.arrays[i]); k < tile_size; ++k)
      std::memcpy(own_[i] + k * bytes, element, static_cast<std::size_t>(bytes));
  }

  /// The rest of a row goes through separate memory.
  void run_part(std::int64_t at, std::int64_t count) {
    for (std::size_t i = 0; i < code_.arrays.size(); ++i) {
      const TileCode::ArrayPlace& place = code_.arrays[i];
      if (place.stride(array_of(arguments_, place.parameter), last_) == 0) continue;
      places_[i] = {own_[i], 0};
      std::memset(own_[i], 0, sizeof(float) * tile_size);
      std::memcpy(own_[i], rows_[i] + at * size(place), static_cast<std::size_t>(count * size(place)));
    }
    run_tiles(code_.instructions.data(), *frame_, 0, tile_size);
    for (std::size_t i = 0; i < code_.arrays.size(); ++i) {
      const TileCode::ArrayPlace& place = code_.arrays[i];
      if (place.stored)
        std::memcpy(rows_[i] + at * size(place), own_[i], static_cast<std::size_t>(count * size(place)));
    }
  }

  const TileCode& code_;
  std::span<const std::int64_t> dim_;
  std::size_t last_;
  void* const* arguments_;
  std::vector<std::byte> memory_;
  std::vector<std::byte*> own_;
  TilePlace* places_ = nullptr;  // in the frame
  std::vector<std::byte*> rows_ = std::vector<std::byte*>(code_.arrays.size());
  std::array<std::int64_t, 4> index_{};
  TileFrame* frame_ = nullptr;
};

}  // namespace

TileProgram::~TileProgram() = default;
TileProgram::TileProgram(TileProgram&&) noexcept = default;

const std::string& TileProgram::obstacle() const { return code_->obstacle; }

bool TileProgram::fits(std::span<const std::int64_t> dim, void* const* arguments) const {
  const TileCode& code = *code_;
  if (!code.obstacle.empty() || dim.size() != static_cast<std::size_t>(code.rank)) return false;
  const std::size_t last = dim.size() - 1;
  for (const TileCode::ArrayPlace& place : code.arrays) {
    const ArrayArgument& array = array_of(arguments, place.parameter);
    const std::int64_t stride = place.stride(array, last);
    if (stride != 1 && !(stride == 0 && !place.stored)) return false;
    for (std::size_t axis = 0; axis < dim.size(); ++axis)
      if (array.shape[axis] < ((place.fixed >> axis & 1) != 0 ? 1 : dim[axis])) return false;
  }
  return last == 0 || dim[last] >= tile_size / 2;
}

void TileProgram::run(std::span<const std::int64_t> dim, void* const* arguments, bool parallel) const {
  const bool extreme = std::all_of(code_->extremes.begin(), code_->extremes.end(), [&](const auto& e) {
    return is_extreme(e.max, *static_cast<const float*>(arguments[e.parameter]));
  });
  const TileCode& code = extreme ? *code_ : *plain_;
  std::int64_t rows = 1;
  for (std::size_t axis = 0; axis + 1 < dim.size(); ++axis) rows *= dim[axis];
  const std::int64_t tiles = rows * TileRunner::tiles_of(dim.back());
  const std::int64_t share = tiles * tile_size / (4 * num_threads());
  const std::int64_t grain = std::clamp(share, least_chunk, most_chunk) / tile_size;
  const auto range = [&](std::int64_t begin, std::int64_t end) {
    TileRunner(code, dim, arguments).run(begin, end);
  };
  if (!parallel) return range(0, tiles);
  parallel_ranges(tiles, grain, range);
}

}  // namespace ferrite::kernel
