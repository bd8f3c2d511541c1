// Every collective against its definition, for the ranks of any group. All ranks call the checks in the same
// order.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/dist/collectives.hpp"
#include "ferrite/ops/views.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::testing {

using dist::Group;
using dist::ReduceOp;

/// Element i of a rank. Sums of the floats depend on their order.
template <class T>
T element(int rank, std::int64_t i) {
  auto h = static_cast<std::uint32_t>(i * 7919 + rank * 104729 + 1) * 2654435761u;
  h ^= h >> 15;
  if constexpr (std::is_same_v<T, bool>)
    return h % 3 == 0;
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(h);
  else
    return convert<T>((static_cast<float>(h % 20011) / 1000 - 10) *
                      std::exp2(static_cast<float>(h / 20011 % 9)));
}
template <class T>
Tensor<Cpu> elements(int rank, const Shape& shape) {
  Cpu b;
  Tensor<Cpu> x = empty(b, shape, dtype_of<T>);
  for (std::int64_t i = 0; i < shape.numel(); ++i) x.primitive().data<T>()[i] = element<T>(rank, i);
  return x;
}

/// The reduction as ReduceOp defines it, one element at a time.
template <class T>
T reduced(ReduceOp op, int ranks, std::int64_t i) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    float sum = to_float(element<T>(0, i)), best = sum;
    for (int r = 1; r < ranks; ++r) {
      const float x = to_float(element<T>(r, i));
      sum = sum + x;
      best = op == ReduceOp::max ? std::max(best, x) : std::min(best, x);
    }
    if (op == ReduceOp::mean) sum = sum / static_cast<float>(ranks);
    return convert<T>(op == ReduceOp::sum || op == ReduceOp::mean ? sum : best);
  } else {
    T sum = element<T>(0, i), best = sum;
    for (int r = 1; r < ranks; ++r) {
      const T x = element<T>(r, i);
      if constexpr (std::is_same_v<T, bool>)
        sum = x;
      else if constexpr (std::is_integral_v<T>)
        sum = static_cast<T>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(x));
      else
        sum = sum + x;
      best = op == ReduceOp::max ? std::max(best, x) : std::min(best, x);
    }
    if constexpr (std::is_floating_point_v<T>)
      if (op == ReduceOp::mean) sum = sum / static_cast<T>(ranks);
    return op == ReduceOp::sum || op == ReduceOp::mean ? sum : best;
  }
}

template <class T>
void expect_bits(const Tensor<Cpu>& x, std::int64_t i, T expected, const char* what) {
  const T got = x.primitive().data<T>()[i];
  if (std::memcmp(&got, &expected, sizeof(T)) != 0)
    ADD_FAILURE() << what << " of " << x.meta() << ", element " << i << ": " << convert<double>(got)
                  << ", not " << convert<double>(expected);
}

template <class T>
void check_reductions(Group& group, std::int64_t n) {
  const int ranks = group.size(), rank = group.rank();
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::mean, ReduceOp::max, ReduceOp::min}) {
    const bool adds = op == ReduceOp::sum || op == ReduceOp::mean;
    if (op == ReduceOp::mean && !is_floating(dtype_of<T>)) continue;
    if (adds && std::is_same_v<T, bool>) continue;
    const Tensor<Cpu> all = dist::all_reduce(group, elements<T>(rank, {n}), op);
    ASSERT_EQ(all.shape(), Shape({n}));
    for (std::int64_t i = 0; i < n; ++i) expect_bits(all, i, reduced<T>(op, ranks, i), "all_reduce");
    Tensor<Cpu> changed = elements<T>(rank, {n});
    dist::all_reduce_in_place(group, changed, op);
    for (std::int64_t i = 0; i < n; ++i) expect_bits(changed, i, reduced<T>(op, ranks, i), "in place");
    const Tensor<Cpu> part = dist::reduce_scatter(group, elements<T>(rank, {n * ranks, 2}), op);
    ASSERT_EQ(part.shape(), Shape({n, 2}));
    for (std::int64_t i = 0; i < 2 * n; ++i)
      expect_bits(part, i, reduced<T>(op, ranks, rank * 2 * n + i), "reduce_scatter");
  }
}

template <class T>
void check_movement(Group& group, std::int64_t n) {
  const int ranks = group.size(), rank = group.rank();
  const Tensor<Cpu> mine = elements<T>(rank, {n, 3});
  const Tensor<Cpu> all = dist::all_gather(group, mine);
  ASSERT_EQ(all.shape(), Shape({ranks * n, 3}));
  for (int r = 0; r < ranks; ++r)
    for (std::int64_t i = 0; i < 3 * n; ++i) {
      const T got = all.primitive().data<T>()[r * 3 * n + i], expected = element<T>(r, i);
      ASSERT_EQ(std::memcmp(&got, &expected, sizeof(T)), 0) << "all_gather of " << mine.meta();
    }
  for (int root = 0; root < ranks; ++root) {
    const Tensor<Cpu> from_root = dist::broadcast(group, mine, root);
    for (std::int64_t i = 0; i < 3 * n; ++i) expect_bits(from_root, i, element<T>(root, i), "broadcast");
  }
  if (ranks == 1) return;
  // Around the ring: rank 0 begins.
  Cpu b;
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  if (rank == 0) dist::send(group, mine, next);
  const Tensor<Cpu> received = dist::recv(group, b, mine.meta(), previous);
  if (rank != 0) dist::send(group, mine, next);
  for (std::int64_t i = 0; i < 3 * n; ++i) expect_bits(received, i, element<T>(previous, i), "recv");
}

inline void check_all_dtypes(Group& group) {
  for (const std::int64_t n : {0, 1, 7, 1037})
    for (const DType dtype : all_dtypes)
      visit_any_dtype(dtype, [&]<class T>() {
        if (!is_storage(dtype)) check_reductions<T>(group, n);
        check_movement<T>(group, n);
      });
  group.barrier();
}

/// Large enough for several slices. A sample of the elements is checked.
inline void check_large(Group& group) {
  const std::int64_t n = 1'500'007 * group.size() - 1;
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<float>(i % 1999 + group.rank());
  for (std::int64_t i = 0; i < n; i += 997)
    values[static_cast<std::size_t>(i)] = element<float>(group.rank(), i);
  Cpu b;
  const Tensor<Cpu> x = from_vector(b, values);
  const Tensor<Cpu> sum = dist::all_reduce(group, x);
  dist::all_reduce_in_place(group, x);
  EXPECT_EQ(to_bytes(x), to_bytes(sum));
  for (std::int64_t i = 0; i < n; i += 997)
    expect_bits(sum, i, reduced<float>(ReduceOp::sum, group.size(), i), "all_reduce");
  const auto last =
      static_cast<float>(group.size() * ((n - 1) % 1999) + group.size() * (group.size() - 1) / 2);
  if ((n - 1) % 997 != 0) {
    EXPECT_EQ(x.primitive().data<float>()[n - 1], last);
  }
}

inline void check_nan_and_zeros(Group& group) {
  Cpu b;
  const float nan = std::nanf("");
  const bool last = group.rank() + 1 == group.size();
  const auto x = from_vector(b, {last ? nan : 1.f, group.rank() == 0 ? -0.f : 0.f});
  for (const ReduceOp op : {ReduceOp::max, ReduceOp::min}) {
    const auto y = dist::all_reduce(group, x, op).to_vector<float>();
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_TRUE(std::signbit(y[1])) << "of equal values, the one of rank 0";
  }
}

inline void check_views(Group& group) {
  Cpu b;
  const auto base = [](int rank) { return elements<float>(rank, {4, 3}); };
  const Tensor<Cpu> view = transpose(base(group.rank()), 0, 1);
  const auto sums = dist::all_reduce(group, view).to_vector<float>();
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 4; ++j)
      EXPECT_EQ(sums[static_cast<std::size_t>(i * 4 + j)],
                reduced<float>(ReduceOp::sum, group.size(), j * 3 + i));
  const Tensor<Cpu> whole = base(group.rank());
  dist::all_reduce_in_place(group, slice(whole, 1, 1, 2));  // the middle column
  for (std::int64_t i = 0; i < 12; ++i)
    EXPECT_EQ(whole.to_vector<float>()[static_cast<std::size_t>(i)],
              i % 3 == 1 ? reduced<float>(ReduceOp::sum, group.size(), i) : element<float>(group.rank(), i));
  dist::broadcast_in_place(group, slice(whole, 0, 1, 3), group.size() - 1);
  EXPECT_EQ(whole.to_vector<float>()[3], element<float>(group.size() - 1, 3));
  EXPECT_EQ(whole.to_vector<float>()[0], element<float>(group.rank(), 0));
  // Scalars.
  const auto s = dist::all_gather(group, scalar(b, group.rank()));
  EXPECT_EQ(s.shape(), Shape({group.size()}));
}

/// What ZeRO does: the part that a rank owns lies in the whole.
inline void check_parts_in_place(Group& group) {
  const std::int64_t n = 5, own = group.rank();
  const Array whole = elements<float>(group.rank(), {n * group.size()}).primitive();
  const Array part = whole.with_layout(whole.layout().slice(0, own * n, n, 1));
  group.reduce_scatter(whole, part);
  group.all_gather(part, whole);
  for (std::int64_t i = 0; i < n * group.size(); ++i)
    EXPECT_EQ(whole.data<float>()[i], reduced<float>(ReduceOp::sum, group.size(), i));
}

inline void check_arguments(Group& group) {
  Cpu b;
  const auto flags = from_vector(b, std::vector<bool>{true});
  EXPECT_THROW(dist::all_reduce(group, flags), DTypeError);
  EXPECT_THROW(dist::all_reduce(group, empty(b, {2}, DType::i8), ReduceOp::max), DTypeError);
  EXPECT_THROW(dist::all_reduce(group, empty(b, {2}, DType::i64), ReduceOp::mean), DTypeError);
  EXPECT_THROW(dist::reduce_scatter(group, scalar(b, 1)), ShapeError);
  if (group.size() > 1) {
    EXPECT_THROW(dist::reduce_scatter(group, empty(b, {group.size() + 1})), ShapeError);
  }
  EXPECT_THROW(dist::broadcast(group, flags, group.size()), ValueError);
  EXPECT_THROW(dist::broadcast(group, flags, -1), ValueError);
  EXPECT_THROW(dist::send(group, flags, group.rank()), ValueError);
  EXPECT_THROW(dist::recv(group, b, flags.meta(), group.rank()), ValueError);
  EXPECT_THROW(group.set_timeout(std::chrono::milliseconds(0)), ValueError);
  const Array wide = empty(b, {4, 4}).primitive(), other = empty(b, {4}).primitive();
  EXPECT_THROW(group.all_reduce(wide, other), ShapeError);
  EXPECT_THROW(group.all_reduce(Array(), other), ValueError);
  EXPECT_THROW(group.broadcast(wide.with_layout(wide.layout().slice(1, 0, 2, 1))), ValueError);
  group.barrier();  // nothing was sent
}

/// All ranks throw, the message names them, and the group goes on.
inline void check_mismatches(Group& group) {
  if (group.size() == 1) return;
  Cpu b;
  const bool odd = group.rank() == 1;
  const auto expect_named = [&](const char* first, const char* second, const auto& call) {
    try {
      call();
      ADD_FAILURE() << "no error";
    } catch (const dist::DistError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(first), std::string::npos) << text;
      EXPECT_NE(text.find(second), std::string::npos) << text;
    }
  };
  expect_named("rank 1 all_reduce(sum) of f32[4]", "all_reduce(sum) of f32[3]",
               [&] { dist::all_reduce(group, ones(b, {odd ? 4 : 3})); });
  expect_named("rank 1 all_reduce(sum) of i32[3]", "all_reduce(sum) of f32[3]",
               [&] { dist::all_reduce(group, ones(b, {3}, odd ? DType::i32 : DType::f32)); });
  expect_named("rank 1 all_reduce(max) of f32[3]", "all_reduce(sum) of f32[3]",
               [&] { dist::all_reduce(group, ones(b, {3}), odd ? ReduceOp::max : ReduceOp::sum); });
  expect_named("rank 1 barrier", "broadcast of f32[3] from rank 0",
               [&] { odd ? group.barrier() : dist::broadcast_in_place(group, ones(b, {3})); });
  if (group.rank() < 2)
    expect_named("rank 0 sends f32[3] to rank 1", "receives f64[3]", [&] {
      if (odd)
        dist::recv(group, b, {{3}, DType::f64}, 0);
      else
        dist::send(group, ones(b, {3}), 1);
    });
  EXPECT_EQ(dist::all_reduce(group, ones(b, {1})).item(), group.size());
}

}  // namespace ferrite::testing
