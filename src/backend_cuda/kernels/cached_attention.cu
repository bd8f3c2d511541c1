// cached_attention: which calls the kernel takes, and its operands.
#include "backend_cuda/kit/cached_attention.hpp"

#include <algorithm>

#include "backend_cuda/kit/packs.cuh"

namespace ferrite {

using namespace cuda;

namespace {

constexpr std::int64_t most_depth = 256, most_query_rows = 64, most_blocks = 65535;
constexpr std::int64_t most_capacity = std::int64_t{1} << 30;  // what the kernel counts in 32 bits

bool is_plain(const Array& x) {
  const Shape& strides = x.layout().strides;
  const auto lanes = static_cast<std::int64_t>(16 / size_of(x.dtype()));
  return strides[3] == 1 && is_aligned(x.data(), 16) &&
         std::all_of(strides.begin(), strides.begin() + 3, [&](std::int64_t s) { return s % lanes == 0; });
}
/// Memory of its own, where all is aligned.
Array fresh_copy(Cuda& cuda, const Array& x) {
  const Array copy = cuda.allocate(x.meta());
  copy_into(cuda, x, copy);
  return copy;
}
Array plain(Cuda& cuda, const Array& x) { return is_plain(x) ? x : fresh_copy(cuda, x); }

/// The cache that the kernel writes to: the output, with what the input holds.
Array cache_in(Cuda& cuda, const Array& in, const Array& out) {
  if (!is_plain(out)) return fresh_copy(cuda, in);
  const bool is_input = in.data() == out.data() && in.layout().strides == out.layout().strides;
  if (!is_input) copy_into(cuda, in, out);
  return out;
}

}  // namespace

bool accepts(const Cuda&, const op::CachedAttention&, MetaSpan in) {
  const DType q = in[0].dtype, cache = in[3].dtype;
  if (q == DType::f64 || cache == DType::f64 || (q != cache && q != DType::f32)) return false;
  const Shape &shape = in[0].shape, &keys = in[3].shape;
  const auto lanes = static_cast<std::int64_t>(16 / size_of(cache));
  const std::int64_t n = shape[0], heads = shape[1], queries = shape[2], depth = shape[3];
  return n >= 1 && n <= most_blocks && heads >= 1 && heads * queries <= most_blocks &&
         heads / keys[1] * queries <= most_query_rows && depth >= lanes && depth <= most_depth &&
         depth % lanes == 0 && keys[2] <= most_capacity;
}

void run(Cuda& cuda, const op::CachedAttention& op, Ins in, Outs out) {
  const Call call(cuda, op_name(op));
  const Array q = plain(cuda, in[0]), k = plain(cuda, in[1]), v = plain(cuda, in[2]);
  const Array keys = cache_in(cuda, in[3], out[1]), values = cache_in(cuda, in[4], out[2]);
  const Array read = dense(cuda, in[5]);
  Destination o(cuda, out[0], false);
  const Shape& shape = q.shape();
  const std::int64_t groups = keys.shape()[1], capacity = keys.shape()[2];
  const std::int64_t window = op.window == 0 ? capacity : std::min(op.window, capacity);
  visit_floating(keys.dtype(), [&]<class C>() {
    visit_floating(q.dtype(), [&]<class Q>() {
      if constexpr (!std::is_same_v<Q, double> && !std::is_same_v<C, double> &&
                    (std::is_same_v<Q, C> || std::is_same_v<Q, float>)) {
        using cached_attention::Heads;
        const cached_attention::Args<Q, C> args{Heads<const Q>(q),
                                                Heads<const Q>(k),
                                                Heads<const Q>(v),
                                                Heads<C>(keys),
                                                Heads<C>(values),
                                                Heads<Q>(o.array()),
                                                read.data<std::int32_t>(),
                                                shape[0],
                                                groups,
                                                static_cast<int>(shape[2]),
                                                static_cast<int>(shape[1] / groups * shape[2]),
                                                static_cast<int>(shape[3]),
                                                static_cast<int>(capacity),
                                                static_cast<int>(window),
                                                static_cast<float>(op.scale)};
        cached_attention::launch(call, args);
      }
    });
  });
  if (keys.data() != out[1].data()) copy_into(cuda, keys, out[1]);
  if (values.data() != out[2].data()) copy_into(cuda, values, out[2]);
  o.commit();
  call.finish();
}

}  // namespace ferrite
