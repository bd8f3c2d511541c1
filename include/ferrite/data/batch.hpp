// Batches: some rows of a data set, in host memory and on a backend.
#pragma once

#include <utility>
#include <vector>

#include "ferrite/tensor/host.hpp"

namespace ferrite::data {

/// Features, targets, and further inputs where a model takes several; all have one row per example. A batch
/// unpacks into the first two: const auto [x, y] = batch.
struct HostBatch {
  HostTensor x, y;
  std::vector<HostTensor> more = {};
  std::int64_t size() const { return x.shape()[0]; }
};
/// The same on a backend: what a step function gets.
template <class B>
struct Batch {
  Tensor<B> x, y;
  std::vector<Tensor<B>> more = {};
  std::int64_t size() const { return x.size(0); }
};

/// A copy of a batch on a backend.
template <class B>
Batch<B> to_batch(B& backend, const HostBatch& batch) {
  Batch<B> result{from_host(backend, batch.x), from_host(backend, batch.y)};
  for (const HostTensor& input : batch.more) result.more.push_back(from_host(backend, input));
  return result;
}

template <class T>
concept AnyBatch = requires(T t) {
  t.x;
  t.y;
  t.more;
};
template <std::size_t I, class T>
requires AnyBatch<T>
auto&& get(T&& batch) {
  if constexpr (I == 0)
    return std::forward<T>(batch).x;
  else
    return std::forward<T>(batch).y;
}

}  // namespace ferrite::data

template <>
struct std::tuple_size<ferrite::data::HostBatch> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, ferrite::data::HostBatch> {
  using type = ferrite::HostTensor;
};
template <class B>
struct std::tuple_size<ferrite::data::Batch<B>> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I, class B>
struct std::tuple_element<I, ferrite::data::Batch<B>> {
  using type = ferrite::Tensor<B>;
};
