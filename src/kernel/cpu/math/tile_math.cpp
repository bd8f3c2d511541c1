// Elementary functions of tiles: those of the Cpu backend, compiled as they are there.
#include <cmath>

#include "kernel/cpu/tile/code.hpp"
#include "math/fast_math.hpp"

namespace ferrite::kernel {

namespace {

template <class F, class Index = Vectors>
struct Map;
/// The tile goes through memory, so that the loop is one over all its elements.
template <class F, std::size_t... k>
struct Map<F, std::index_sequence<k...>> {
  static void run(const TileInstruction* i, const TileFrame* f, std::int64_t at, FloatsAt<k>... v) {
    float x[tile_size];
    (store_floats(x + k * vector_size, v), ...);
    F::of(x);
    return i[1].run(i + 1, f, at, load_floats(x + k * vector_size)...);
  }
};

template <auto f>
struct Each {
  FERRITE_INLINE static void of(float* x) {
    for (int i = 0; i < tile_size; ++i) x[i] = f(x[i]);
  }
};
/// Beyond the limit of the vector version, and for infinity and NaN, by the standard library.
template <auto quick, auto exact>
struct Angle {
  FERRITE_INLINE static void of(float* x) {
    float y[tile_size];
    bool far = false;
    for (int i = 0; i < tile_size; ++i) {
      y[i] = quick(x[i]);
      far |= !(std::fabs(x[i]) <= fast::trig_limit);
    }
    for (int i = 0; far && i < tile_size; ++i)
      if (!(std::fabs(x[i]) <= fast::trig_limit)) y[i] = exact(x[i]);
    std::memcpy(x, y, sizeof y);
  }
};

}  // namespace

TileInstruction tile_math(Builtin builtin) {
  // clang-format off
  switch (builtin) {
    case Builtin::exp: return {Map<Each<[](float x) { return fast::exp(x); }>>::run};
    case Builtin::log: return {Map<Each<[](float x) { return fast::log(x); }>>::run};
    case Builtin::tanh: return {Map<Each<[](float x) { return fast::tanh(x); }>>::run};
    case Builtin::erf: return {Map<Each<[](float x) { return fast::erf(x); }>>::run};
    case Builtin::sin:
      return {Map<Angle<[](float x) { return static_cast<float>(fast::sincos(x).sin); },
                        [](float x) { return std::sin(x); }>>::run};
    case Builtin::cos:
      return {Map<Angle<[](float x) { return static_cast<float>(fast::sincos(x).cos); },
                        [](float x) { return std::cos(x); }>>::run};
    default: return {};
  }
  // clang-format on
}

}  // namespace ferrite::kernel
