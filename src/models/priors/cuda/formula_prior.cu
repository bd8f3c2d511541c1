// Raw datasets of the Formula prior, millions of small ones: a warp draws the terms of four datasets at once,
// a block of random numbers per lane, and then computes them one after the other. A lane's block gives it
// eight features, so that with four features a row is in registers and is written with one store; with any
// other number y is computed from the x just written. Compiled without contraction: the bits are those of the
// Cpu.
#include <bit>

#include "backend_cuda/kit/packs.cuh"
#include "ferrite/cuda/call.hpp"
#include "ferrite/cuda/launch.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "models/priors/formula.hpp"

namespace ferrite {
namespace cuda {
namespace {

using namespace priors;

constexpr int lanes = 32, warps = block_threads / lanes, datasets_per_warp = 4;

struct FormulaArgs {
  float *x, *y;
  std::uint64_t first;
  std::int64_t count;
  int rows;
  int slot_bits;                    // a dataset has 2^slot_bits slots for the number of terms and the terms
  std::uint32_t round_keys[10][2];  // of Philox, for the seed
  FormulaLaw law;
  bool aligned;
};

/// Philox4x32::block with the keys of its rounds at hand.
__device__ __forceinline__ Philox4x32::Block draw(const FormulaArgs& args, Purpose purpose, std::uint32_t k,
                                                  std::uint64_t dataset) {
  const std::uint64_t base = DatasetKey{0, dataset, 0}.stream(purpose).base;
  std::uint32_t c0 = k, c1 = static_cast<std::uint32_t>(base >> 32), c2 = static_cast<std::uint32_t>(dataset),
                c3 = static_cast<std::uint32_t>(dataset >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ args.round_keys[round][0];
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ args.round_keys[round][1];
    c3 = static_cast<std::uint32_t>(p0);
  }
  return {c0, c1, c2, c3};
}

/// Slot 0 of a dataset holds the number of terms in `kind`, slot k + 1 term k.
struct __align__(16) Slot {
  std::uint16_t kind, feature;
  float c, w, b;
};
__device__ __forceinline__ Slot draw_slot(const FormulaArgs& args, int slot, std::uint64_t dataset) {
  const Philox4x32::Block block =
      draw(args, Purpose::formula_terms, static_cast<std::uint32_t>(slot), dataset);
  if (slot == 0) return {static_cast<std::uint16_t>(formula_terms(args.law, block)), 0, 0, 0, 0};
  const FormulaTerm term = formula_term(args.law, block, slot - 1);
  return {static_cast<std::uint16_t>(term.kind), term.feature, term.c, term.w, term.b};
}

/// A number that is the same in all lanes, in a register of the warp: branches on it cannot diverge. The
/// whole warp calls it.
__device__ __forceinline__ unsigned uniform(unsigned x) { return __reduce_or_sync(~0u, x); }

/// Adds one term to the y of n rows. The kind is that of the whole warp.
template <int n>
__device__ __forceinline__ void add_term(Slot slot, const float (&x)[n], float (&y)[n]) {
  const auto add = [&](auto kind) {
    const FormulaTerm term{kind(), 0, slot.c, slot.w, slot.b};
#pragma unroll
    for (int i = 0; i < n; ++i) y[i] = priors::add_term(term, x[i], y[i]);
  };
  const auto kind = static_cast<int>(uniform(slot.kind));
  if (kind >= static_cast<int>(TermKind::tanh)) {  // two comparisons rather than a table of jumps
    if (kind == static_cast<int>(TermKind::tanh))
      add(std::integral_constant<TermKind, TermKind::tanh>{});
    else
      add(std::integral_constant<TermKind, TermKind::exp>{});
  } else if (kind == static_cast<int>(TermKind::sin)) {
    add(std::integral_constant<TermKind, TermKind::sin>{});
  } else if (kind == static_cast<int>(TermKind::cos)) {
    add(std::integral_constant<TermKind, TermKind::cos>{});
  } else {
    add(std::integral_constant<TermKind, TermKind::linear>{});
  }
}

__device__ __forceinline__ float noise_of(const FormulaArgs& args, std::uint64_t dataset, int row) {
  const Philox4x32::Block w = draw(args, Purpose::noise, static_cast<std::uint32_t>(row / 4), dataset);
  const NormalPair<float> pair = row % 4 < 2 ? portable_normals(w[0], w[1]) : portable_normals(w[2], w[3]);
  return row % 2 == 0 ? pair.even : pair.odd;
}

/// The eight features of lane `l` of a group of 256.
__device__ __forceinline__ void draw_features(const FormulaArgs& args, std::uint64_t dataset, int group,
                                              int lane, float (&x)[8]) {
  const Philox4x32::Block w =
      draw(args, Purpose::formula_values, static_cast<std::uint32_t>(group * feature_blocks + lane), dataset);
#pragma unroll
  for (int i = 0; i < 8; ++i)
    x[i] = feature_from_half(i % 2 == 0 ? w[i / 2] & 0xffffu : w[i / 2] >> 16, args.law.range);
}

/// Rows 64 chunk to 64 chunk + 63 of four features: of a dataset with so many a lane has two.
__device__ __forceinline__ void make_four_features(const FormulaArgs& args, const Slot* slots,
                                                   std::uint64_t dataset, std::int64_t place, int chunk,
                                                   int lane) {
  constexpr int features = 4, lane_rows = 2;
  float drawn[8], y[lane_rows] = {};
  draw_features(args, dataset, chunk, lane, drawn);
  const int terms = static_cast<int>(uniform(slots[0].kind));
#pragma unroll
  for (int k = 0; k < features; ++k)  // the first terms have a feature each
    if (k < terms) add_term(slots[k + 1], {drawn[k], drawn[k + features]}, y);
  for (int k = features; k < terms; ++k) {
    const Slot slot = slots[k + 1];
    float x[lane_rows];
#pragma unroll
    for (int i = 0; i < lane_rows; ++i) {
      const float* row = drawn + i * features;
      const float low = slot.feature & 1 ? row[1] : row[0], high = slot.feature & 1 ? row[3] : row[2];
      x[i] = slot.feature & 2 ? high : low;
    }
    add_term(slot, x, y);
  }
#pragma unroll
  for (int i = 0; i < lane_rows; ++i) {
    const int row = chunk * lane_rows * lanes + i * lanes + lane;
    if (row >= args.rows) continue;
    if (args.law.noise > 0) y[i] = std::fma(args.law.noise, noise_of(args, dataset, row), y[i]);
    const std::int64_t at = place * args.rows + row;
    const float* const x = drawn + i * features;
    reinterpret_cast<float4*>(args.x)[at] = {x[0], x[1], x[2], x[3]};
    args.y[at] = y[i];
  }
}

/// 256 rows of any number of features: whole groups of elements.
__device__ void make_rows(const FormulaArgs& args, const Slot* slots, std::uint64_t dataset,
                          std::int64_t place, int chunk, int lane) {
  const int features = args.law.features, first = chunk * feature_group,
            rows = ::min(feature_group, args.rows - first);
  float* const x = args.x + (place * args.rows + first) * features;
  for (int group = 0; group * feature_group < rows * features; ++group) {
    float drawn[8];
    draw_features(args, dataset, chunk * features + group, lane, drawn);
#pragma unroll
    for (int i = 0; i < 8; i += 4) {
      const int e = group * feature_group + feature_place(lane, i);
      if (args.aligned && e + 4 <= rows * features) {
        *reinterpret_cast<float4*>(x + e) = {drawn[i], drawn[i + 1], drawn[i + 2], drawn[i + 3]};
      } else {
        for (int j = 0; j < 4 && e + j < rows * features; ++j) x[e + j] = drawn[i + j];
      }
    }
  }
  __syncwarp();
  for (int begin = 0; begin < rows; begin += lanes) {  // all lanes take part, as uniform() needs
    const int row = ::min(begin + lane, rows - 1);
    float y[] = {0};
    for (int k = 0; k < slots[0].kind; ++k) {
      const Slot slot = slots[k + 1];
      add_term(slot, {x[row * features + slot.feature]}, y);
    }
    if (args.law.noise > 0) y[0] = std::fma(args.law.noise, noise_of(args, dataset, first + row), y[0]);
    if (begin + lane < rows) args.y[place * args.rows + first + row] = y[0];
  }
}

/// The rows of a dataset go by chunks, one per blockIdx.y.
template <bool four_features>
__global__ void __launch_bounds__(block_threads, 5) formula_kernel(const __grid_constant__ FormulaArgs args) {
  extern __shared__ Slot all_slots[];  // [warps][datasets_per_warp][2^slot_bits]
  const int lane = static_cast<int>(threadIdx.x % lanes), warp = static_cast<int>(threadIdx.x / lanes);
  const std::int64_t first = (std::int64_t{blockIdx.x} * warps + warp) * datasets_per_warp;
  const int chunk = static_cast<int>(blockIdx.y);
  Slot* const slots = all_slots + (warp * datasets_per_warp << args.slot_bits);
  for (int j = lane; j < datasets_per_warp << args.slot_bits; j += lanes) {
    const int slot = j & ((1 << args.slot_bits) - 1);
    if (slot <= args.law.terms_max)
      slots[j] =
          draw_slot(args, slot, args.first + static_cast<std::uint64_t>(first + (j >> args.slot_bits)));
  }
  __syncwarp();
  for (int d = 0; d < datasets_per_warp && first + d < args.count; ++d) {
    const std::uint64_t dataset = args.first + static_cast<std::uint64_t>(first + d);
    const Slot* const own = slots + (d << args.slot_bits);
    if constexpr (four_features)
      make_four_features(args, own, dataset, first + d, chunk, lane);
    else
      make_rows(args, own, dataset, first + d, chunk, lane);
  }
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::FormulaPrior& op, Ins, Outs out) {
  const Call call(cuda, op_name(op));
  Destination x(cuda, out[0], false), y(cuda, out[1], false);
  FormulaArgs args{x.array().data<float>(),
                   y.array().data<float>(),
                   static_cast<std::uint64_t>(op.first),
                   op.count,
                   static_cast<int>(op.rows),
                   static_cast<int>(std::bit_width(static_cast<std::uint64_t>(op.terms_max))),
                   {},
                   formula_law(op.formula(), static_cast<int>(op.features)),
                   false};
  auto k0 = static_cast<std::uint32_t>(op.seed), k1 = static_cast<std::uint32_t>(op.seed >> 32);
  for (auto& keys : args.round_keys) {
    keys[0] = k0;
    keys[1] = k1;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  args.aligned = is_aligned(args.x, 16) && op.rows * op.features % 4 == 0;
  const bool four_features = op.features == 4 && args.aligned;
  const std::int64_t chunk = four_features ? feature_group / 4 : feature_group;
  const std::int64_t slot_bytes = sizeof(Slot) * warps * datasets_per_warp << args.slot_bits;
  launch(call, four_features ? formula_kernel<true> : formula_kernel<false>,
         grid_of(divide_up(op.count, warps * datasets_per_warp), divide_up(op.rows, chunk)),
         {block_threads, slot_bytes}, args);
  x.commit();
  y.commit();
  call.finish();
}

}  // namespace ferrite
