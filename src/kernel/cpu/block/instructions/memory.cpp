// Arrays: addresses of the elements of all lanes, loads, stores and atomics.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/cpu/block/lanes.hpp"

namespace ferrite::kernel {

namespace {

const Access& access_of(const Instruction& i, const Lanes& l) {
  return l.program.accesses[static_cast<std::size_t>(i.detail)];
}

[[noreturn]] void outside(const Instruction& i, Lanes& l, int lane) {
  const Access& access = access_of(i, l);
  const ArraySlot& slot = l.program.arrays[static_cast<std::size_t>(access.array)];
  const ArrayArgument& array = l.run.arrays[static_cast<std::size_t>(access.array)];
  std::vector<std::int64_t> at;
  for (const Cell& index : access.indices)
    at.push_back(read_lane(index.type, l.at<std::byte>(index.reg), lane).integer);
  l.fail(i, lane,
         fmt::format("index [{}] is outside array '{}' of shape [{}]", fmt::join(at, ", "), slot.name,
                     fmt::join(array.shape, array.shape + slot.type.dims, ", ")));
}

/// out = (b, or 0) + a * stride on axis `number`, checked for active lanes. With `wraps`, a may be negative.
template <class T, bool first, bool wraps>
void offset(const Instruction& i, Lanes& l) {
  const ArrayArgument& array = l.run.arrays[static_cast<std::size_t>(access_of(i, l).array)];
  const std::int64_t extent = array.shape[i.number], stride = array.strides[i.number];
  std::int64_t* __restrict out = l.at<std::int64_t>(i.out);
  const T* __restrict index = l.at<T>(i.a);
  const std::int64_t* __restrict before = first ? nullptr : l.at<std::int64_t>(i.b);
  const auto from_start = [extent](T x) {
    const auto at = static_cast<std::int64_t>(x);
    return wraps ? at + (at >> 63 & extent) : at;
  };
  int wrong = 0;
  for (int k = 0; k < l.count; ++k) {
    const std::int64_t at = from_start(index[k]);
    wrong += static_cast<std::uint64_t>(at) >= static_cast<std::uint64_t>(extent);
    // Wrapping: inactive lanes may have any index.
    out[k] = static_cast<std::int64_t>(static_cast<std::uint64_t>(first ? 0 : before[k]) +
                                       static_cast<std::uint64_t>(at) * static_cast<std::uint64_t>(stride));
  }
  if (wrong == 0 || l.none(i)) return;
  const std::uint8_t* lanes = l.lanes_of(i);
  for (int k = 0; k < l.count; ++k)
    if ((lanes == nullptr || lanes[k] != 0) &&
        static_cast<std::uint64_t>(from_start(index[k])) >= static_cast<std::uint64_t>(extent))
      outside(i, l, k);
}

void find_pattern(const Instruction& i, Lanes& l) {
  const std::int64_t* at = l.at<std::int64_t>(i.a);
  const auto minus = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  };
  const std::int64_t span = minus(at[l.count - 1], at[0]);
  Pattern pattern = Pattern::scattered;
  if (span == l.count - 1 || span == 0) {
    const std::int64_t step = span == 0 ? 0 : 1;
    int wrong = 0;
    for (int k = 1; k < l.count; ++k) wrong += minus(at[k], at[k - 1]) != step;
    if (wrong == 0) pattern = step == 0 ? Pattern::one : Pattern::consecutive;
  }
  l.patterns[static_cast<std::size_t>(access_of(i, l).pattern)] = pattern;
}

/// The component at byte `number` of the elements of an access: a run of lanes at equal distances, or each
/// lane by itself.
struct Elements {
  std::byte* base;
  const std::int64_t* offsets = nullptr;  // in elements; if null, lane k is at base + k * distance
  std::int64_t distance = 0;              // in bytes
  std::int64_t size;                      // of an element

  Elements(const Instruction& i, Lanes& l, const std::uint8_t* lanes) {
    const Access& access = access_of(i, l);
    const ArraySlot& slot = l.program.arrays[static_cast<std::size_t>(access.array)];
    const ArrayArgument& array = l.run.arrays[static_cast<std::size_t>(access.array)];
    size = slot.layout.size;
    base = (slot.kind == ArraySlot::Kind::shared ? l.shared + slot.memory
                                                 : static_cast<std::byte*>(array.data)) +
           i.number;
    if (access.linear) {
      const std::int64_t inside = std::clamp<std::int64_t>(array.shape[0] - l.first, 0, l.count);
      for (int k = static_cast<int>(inside); k < l.count; ++k)
        if (lanes == nullptr || lanes[k] != 0) outside(i, l, k);
      base += l.first * array.strides[0] * size;
      distance = array.strides[0] * size;
      return;
    }
    const std::int64_t* at = l.at<std::int64_t>(access.offsets);
    const Pattern pattern = l.patterns[static_cast<std::size_t>(access.pattern)];
    if (pattern == Pattern::scattered || lanes != nullptr) {
      offsets = at;
      return;
    }
    base += at[0] * size;
    distance = pattern == Pattern::one ? 0 : size;
  }
  template <class T>
  FERRITE_INLINE T* at(int k) const {
    return reinterpret_cast<T*>(base + (offsets == nullptr ? k * distance : offsets[k] * size));
  }
};

bool is_local(const Instruction& i, const Lanes& l) {
  return l.program.arrays[static_cast<std::size_t>(access_of(i, l).array)].kind == ArraySlot::Kind::local;
}
/// The scalar of lane k in a local array; `number` is its part.
template <class T>
FERRITE_INLINE T* local_at(const Instruction& i, Lanes& l, const ArraySlot& slot, const std::int64_t* offsets,
                           int k) {
  const Register reg = slot.base + static_cast<Register>(offsets[k]) * slot.stride +
                       slot.part_at[static_cast<std::size_t>(i.target)];
  return l.at<T>(reg) + k;
}
template <class F>
FERRITE_INLINE void for_active(const Lanes& l, const std::uint8_t* lanes, F f) {
  for (int k = 0; k < l.count; ++k)
    if (lanes == nullptr || lanes[k] != 0) f(k);
}

template <ScalarType s>
void load(const Instruction& i, Lanes& l) {
  using Memory = typename Form<s>::Memory;
  using Lane = typename Form<s>::Lane;
  if (l.none(i)) return;
  Lane* __restrict out = l.at<Lane>(i.out);
  const std::uint8_t* lanes = l.lanes_of(i);
  if (is_local(i, l)) {
    const ArraySlot& slot = l.program.arrays[static_cast<std::size_t>(access_of(i, l).array)];
    const std::int64_t* offsets = l.at<std::int64_t>(access_of(i, l).offsets);
    return for_active(l, lanes, [&](int k) { out[k] = *local_at<Lane>(i, l, slot, offsets, k); });
  }
  const Elements elements(i, l, lanes);
  if (lanes != nullptr) {
    for_active(l, lanes, [&](int k) { out[k] = Form<s>::load(*elements.at<Memory>(k)); });
  } else if (elements.offsets != nullptr) {
    for (int k = 0; k < l.count; ++k) out[k] = Form<s>::load(*elements.at<Memory>(k));
  } else if (elements.distance == sizeof(Memory)) {
    const Memory* __restrict x = elements.at<Memory>(0);
    for (int k = 0; k < l.count; ++k) out[k] = Form<s>::load(x[k]);
  } else if (elements.distance == 0) {
    std::fill_n(out, l.width, Form<s>::load(*elements.at<Memory>(0)));
  } else {
    const std::byte* x = elements.base;
    for (int k = 0; k < l.count; ++k, x += elements.distance)
      out[k] = Form<s>::load(*reinterpret_cast<const Memory*>(x));
  }
}

template <ScalarType s>
void store(const Instruction& i, Lanes& l) {
  using Memory = typename Form<s>::Memory;
  using Lane = typename Form<s>::Lane;
  if (l.none(i)) return;
  const Lane* __restrict a = l.at<Lane>(i.a);
  const std::uint8_t* lanes = l.lanes_of(i);
  if (is_local(i, l)) {
    const ArraySlot& slot = l.program.arrays[static_cast<std::size_t>(access_of(i, l).array)];
    const std::int64_t* offsets = l.at<std::int64_t>(access_of(i, l).offsets);
    return for_active(l, lanes, [&](int k) { *local_at<Lane>(i, l, slot, offsets, k) = a[k]; });
  }
  const Elements elements(i, l, lanes);
  if (lanes == nullptr && elements.offsets == nullptr && elements.distance == sizeof(Memory)) {
    Memory* __restrict y = elements.at<Memory>(0);
    for (int k = 0; k < l.count; ++k) y[k] = Form<s>::store(a[k]);
  } else {
    for_active(l, lanes, [&](int k) { *elements.at<Memory>(k) = Form<s>::store(a[k]); });
  }
}

/// element = f(element, a, b) one lane after the other; out = the element before.
template <ScalarType s, class F>
void atomic(const Instruction& i, Lanes& l) {
  using Memory = typename Form<s>::Memory;
  using Lane = typename Form<s>::Lane;
  if (l.none(i)) return;
  Lane* out = l.at<Lane>(i.out);
  const Lane* a = l.at<Lane>(i.a);
  const Lane* b = i.b == no_register ? a : l.at<Lane>(i.b);
  const std::uint8_t* lanes = l.lanes_of(i);
  if (is_local(i, l)) {
    const ArraySlot& slot = l.program.arrays[static_cast<std::size_t>(access_of(i, l).array)];
    const std::int64_t* offsets = l.at<std::int64_t>(access_of(i, l).offsets);
    return for_active(l, lanes, [&](int k) {
      Lane* at = local_at<Lane>(i, l, slot, offsets, k);
      out[k] = *at;
      *at = Form<s>::round(F{}(out[k], a[k], b[k]));
    });
  }
  const Elements elements(i, l, lanes);
  for_active(l, lanes, [&](int k) {
    Memory* at = elements.at<Memory>(k);
    out[k] = Form<s>::load(*at);
    *at = Form<s>::store(Form<s>::round(F{}(out[k], a[k], b[k])));
  });
}

template <ScalarType s>
Execute atomic_of(Builtin builtin) {
  using T = typename Form<s>::Lane;
  const auto of = []<class F>(F) -> Execute { return atomic<s, F>; };
  using enum Builtin;
  // clang-format off
  if constexpr (s != ScalarType::bool_) {
    constexpr bool real = is_float(s);
    switch (builtin) {
      case add: case atomic_add:
        return of([](T x, T a, T) { if constexpr (real) return x + a; else return static_cast<T>(std::uint64_t(x) + std::uint64_t(a)); });
      case sub: case atomic_sub:
        return of([](T x, T a, T) { if constexpr (real) return x - a; else return static_cast<T>(std::uint64_t(x) - std::uint64_t(a)); });
      case atomic_min: return of([](T x, T a, T) { return x != x ? a : a != a || x < a ? x : a; });
      case atomic_max: return of([](T x, T a, T) { return x != x ? a : a != a || a < x ? x : a; });
      case atomic_exch: return of([](T, T a, T) { return a; });
      case atomic_cas: return of([](T x, T a, T b) { return x == a ? b : x; });
      default: break;
    }
    if constexpr (!real) {
      switch (builtin) {
        case bit_and: case atomic_and: return of([](T x, T a, T) { return static_cast<T>(x & a); });
        case bit_or: case atomic_or: return of([](T x, T a, T) { return static_cast<T>(x | a); });
        case bit_xor: case atomic_xor: return of([](T x, T a, T) { return static_cast<T>(x ^ a); });
        default: break;
      }
    }
  }
  // clang-format on
  return nullptr;
}

}  // namespace

Execute offset_instruction(ScalarType index, bool first, bool wraps) {
  const auto of = [&]<class T>(T) -> Execute {
    if (wraps) return first ? offset<T, true, true> : offset<T, false, true>;
    return first ? offset<T, true, false> : offset<T, false, false>;
  };
  return index == ScalarType::i32 ? of(std::int32_t{}) : of(std::int64_t{});
}
Execute pattern_instruction() { return find_pattern; }
Execute load_instruction(ScalarType type) {
  return visit_scalar(type, []<ScalarType s>() -> Execute { return load<s>; });
}
Execute store_instruction(ScalarType type) {
  return visit_scalar(type, []<ScalarType s>() -> Execute { return store<s>; });
}
Execute atomic_instruction(Builtin builtin, ScalarType type) {
  return visit_scalar(type, [&]<ScalarType s>() { return atomic_of<s>(builtin); });
}

}  // namespace ferrite::kernel
