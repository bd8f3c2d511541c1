// random: elements made from their index alone, in dense memory.
#include "backend_cuda/kit/random.cuh"
#include "ferrite/ops/random.hpp"
#include "ferrite/ops/standard_math.hpp"

namespace ferrite {
namespace cuda {
namespace {

using op::RandomFn;

template <class T>
struct RandomArgs {
  T* out;
  std::int64_t count;
  Sequence sequence;
  double low, high;
  std::int64_t integer_low;
  std::uint64_t integer_range;
  bool aligned;
};

/// The tag by which core/rng.hpp knows a device type.
template <class T>
using RandomTag = std::conditional_t<std::is_same_v<T, __half>, Half,
                                     std::conditional_t<std::is_same_v<T, __nv_bfloat16>, BFloat16, T>>;

/// u in [0, 1) stretched to [low, high), rounded once; a value that rounds up to `high` becomes `low`.
template <class T>
__device__ __forceinline__ T uniform_between(double low, double high, double u) {
  const T value = convert_to<T>(multiply_then_add(u, high - low, low));
  return convert_to<double>(value) < high ? value : convert_to<T>(low);
}

/// Box-Muller as in core/rng.hpp normals_from_words, with one reduction of the angle for sine and cosine.
__device__ __forceinline__ NormalPair<float> normals(std::uint32_t w0, std::uint32_t w1) {
  const float u = static_cast<float>(std::uint64_t{w0} + 1) * 0x1p-32f;
  const float theta = static_cast<float>(w1) * static_cast<float>(6.283185307179586476925 * 0x1p-32);
  const float r = sqrtf(-2.0f * logf(u));
  float sine, cosine;
  sincosf(theta, &sine, &cosine);
  return {r * cosine, r * sine};
}

/// The group's elements; `i` is the first one's number.
template <RandomFn fn, class T>
__device__ __forceinline__ Group<T> draw(const RandomArgs<T>& args, std::uint64_t i) {
  constexpr int n = group_size<T>;
  constexpr bool is_wide = fn == RandomFn::integer || (fn == RandomFn::uniform && std::is_same_v<T, double>);
  const Words<is_wide ? 2 * n : n> words(args.sequence.key(), is_wide ? 2 * i : i);
  Group<T> y;
  if constexpr (fn == RandomFn::normal) {
#pragma unroll
    for (int j = 0; j < n; j += 2) {
      double even, odd;
      if constexpr (std::is_same_v<T, double>) {
        const NormalPair<double> pair = normals_from_words<double>(words.word[j], words.word[j + 1]);
        even = pair.even, odd = pair.odd;
      } else {
        const NormalPair<float> pair = normals(words.word[j], words.word[j + 1]);
        even = pair.even, odd = pair.odd;
      }
      y.lane[j] = convert_to<T>(multiply_then_add(args.high, even, args.low));
      y.lane[j + 1] = convert_to<T>(multiply_then_add(args.high, odd, args.low));
    }
  } else {
    const bool is_unit = args.low == 0 && args.high == 1;
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if constexpr (fn == RandomFn::bernoulli) {
        y.lane[j] = convert_to<T>(uniform_from_word<float>(words.word[j]) < static_cast<float>(args.low));
      } else if constexpr (fn == RandomFn::integer) {
        const std::uint64_t above = __umul64hi(words.wide(j), args.integer_range);
        y.lane[j] = convert_to<T>(
            formulas::Standard<std::int64_t>{}.add(args.integer_low, static_cast<std::int64_t>(above)));
      } else if constexpr (is_wide) {
        const double u = uniform_from_wide_word(words.wide(j));
        y.lane[j] = is_unit ? u : uniform_between<T>(args.low, args.high, u);
      } else {
        const float u = uniform_from_word<RandomTag<T>>(words.word[j]);
        y.lane[j] = is_unit ? convert_to<T>(u) : uniform_between<T>(args.low, args.high, u);
      }
    }
  }
  return y;
}

template <RandomFn fn, class T>
__global__ void __launch_bounds__(block_threads) random_kernel(const __grid_constant__ RandomArgs<T> args) {
  const std::int64_t first = group_start<T>();
  if (first >= args.count) return;
  store_group(args.out, first, args.count, args.aligned, draw<fn>(args, static_cast<std::uint64_t>(first)));
}

/// Integers have no uniforms and normals: the op's rule excludes them.
template <class T>
void (*random_kernel_for(RandomFn fn))(RandomArgs<T>) {
  if constexpr (!std::is_integral_v<T>) {
    if (fn == RandomFn::uniform) return random_kernel<RandomFn::uniform, T>;
    if (fn == RandomFn::normal) return random_kernel<RandomFn::normal, T>;
  }
  return fn == RandomFn::bernoulli ? random_kernel<RandomFn::bernoulli, T>
                                   : random_kernel<RandomFn::integer, T>;
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::Random& op, Ins, Outs out) {
  const Call call(cuda, op_name(op));
  Destination target(cuda, out[0], false);
  const std::int64_t count = out[0].shape().numel();
  const auto low = convert<std::int64_t>(op.low), high = convert<std::int64_t>(op.high);
  visit_device_type(out[0].dtype(), [&]<class T>() {
    T* const data = target.array().data<T>();
    const RandomArgs<T> args{data,
                             count,
                             Sequence(call, {op.seed, op.stream}),
                             op.low,
                             op.high,
                             low,
                             static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low),
                             is_group_aligned<T>(data)};
    if (count > 0) launch(call, random_kernel_for<T>(op.fn), group_blocks<T>(count), args);
  });
  target.commit();
  call.finish();
}

}  // namespace ferrite
