// sort: every line becomes unsigned keys whose order is the order wanted, with the places as tie breakers,
// which makes any sort a stable one.
#include "ferrite/ops/sort.hpp"

#include <bit>
#include <vector>

#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

/// Unsigned and in the order of the values: -0 equals 0, NaN is larger than everything.
template <class T>
auto key_of(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return key_of(to_float(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr Bits sign = Bits{1} << (8 * sizeof(T) - 1);
    if (value != value) return ~Bits{0};
    const Bits bits = std::bit_cast<Bits>(value == 0 ? T{0} : value);
    return bits & sign ? static_cast<Bits>(~bits) : static_cast<Bits>(bits | sign);
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return static_cast<std::uint64_t>(value) ^ (std::uint64_t{1} << 63);
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return static_cast<std::uint32_t>(value) ^ (std::uint32_t{1} << 31);
  } else {
    return static_cast<std::uint32_t>(value);  // u8, bool
  }
}

/// A 64-bit key and its place.
struct Entry {
  std::uint64_t key;
  std::int64_t place;
  friend bool operator<(const Entry& a, const Entry& b) {
    return a.key != b.key ? a.key < b.key : a.place < b.place;
  }
};
std::int64_t place_of(const Entry& e) { return e.place; }
void sort_entries(std::vector<Entry>& entries, std::vector<Entry>&) {
  std::sort(entries.begin(), entries.end());
}

/// A 32-bit key above a 32-bit place. Long lines go through four rounds of a counting sort by one byte of the
/// key.
std::int64_t place_of(std::uint64_t entry) { return static_cast<std::int64_t>(entry & 0xffffffffu); }
void sort_entries(std::vector<std::uint64_t>& entries, std::vector<std::uint64_t>& scratch) {
  if (entries.size() < 512) return std::sort(entries.begin(), entries.end());
  scratch.resize(entries.size());
  for (int shift = 32; shift < 64; shift += 8) {
    const auto digit = [shift](std::uint64_t e) { return static_cast<std::size_t>(e >> shift & 0xff); };
    std::size_t next[257] = {};
    for (const std::uint64_t e : entries) ++next[digit(e) + 1];
    if (next[digit(entries[0]) + 1] == entries.size()) continue;
    for (std::size_t d = 1; d < 257; ++d) next[d] += next[d - 1];
    for (const std::uint64_t e : entries) scratch[next[digit(e)]++] = e;
    entries.swap(scratch);
  }
}

template <class T, bool narrow>
void sort_lines(const Rows& x, bool descending, const Array& values, const Array& indices) {
  using Stored = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
  using Key = decltype(key_of(T{}));
  const std::int64_t n = x.length;
  for_row_ranges(x.count, n, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::conditional_t<narrow, std::uint64_t, Entry>> entries(static_cast<std::size_t>(n)),
        scratch;
    for (std::int64_t r = begin; r < end; ++r) {
      const Stored* const line = x.array.data<const Stored>() + r * x.stride;
      for (std::int64_t i = 0; i < n; ++i) {
        const Key key =
            descending ? static_cast<Key>(~key_of(convert<T>(line[i]))) : key_of(convert<T>(line[i]));
        if constexpr (narrow)
          entries[static_cast<std::size_t>(i)] = std::uint64_t{key} << 32 | static_cast<std::uint64_t>(i);
        else
          entries[static_cast<std::size_t>(i)] = {key, i};
      }
      sort_entries(entries, scratch);
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t place = place_of(entries[static_cast<std::size_t>(i)]);
        values.data<Stored>()[r * n + i] = line[place];
        indices.data<std::int64_t>()[r * n + i] = place;
      }
    }
  });
}

}  // namespace

void run(Cpu& cpu, const op::Sort& op, Ins in, Outs out) {
  if (in[0].shape().numel() == 0) return;
  const int axis = normalize_axis(op.type_name, op.axis, in[0].shape().rank());
  const Rows x = rows_of(cpu, axis_last(in[0], axis));
  Destination values(cpu, axis_last(out[0], axis), false), indices(cpu, axis_last(out[1], axis), false);
  visit_dtype(in[0].dtype(), [&]<class T>() {
    constexpr bool narrow = sizeof(key_of(T{})) == 4;
    if (narrow && x.length <= std::int64_t{1} << 32)
      sort_lines<T, narrow>(x, op.descending, values.array(), indices.array());
    else
      sort_lines<T, false>(x, op.descending, values.array(), indices.array());
  });
  values.commit();
  indices.commit();
}

}  // namespace ferrite
