// sort: shape rule, and the host implementation for backends without one.
#include "ferrite/ops/sort.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace ferrite::op {

Metas Sort::infer(MetaSpan in) const {
  detail::check_arity(type_name, in.size(), 1, 1);
  normalize_axis(type_name, axis, in[0].shape.rank());
  return {in[0], Meta{in[0].shape, DType::i64}};
}

void Sort::sort_on_host(const Meta& meta, const std::byte* source, std::byte* values,
                        std::int64_t* indices) const {
  const int a = normalize_axis(type_name, axis, meta.shape.rank());
  const std::int64_t n = meta.shape[a];
  std::int64_t stride = 1;
  for (int i = a + 1; i < meta.shape.rank(); ++i) stride *= meta.shape[i];
  const std::int64_t lines = n > 0 ? meta.shape.numel() / n : 0;
  visit_dtype(meta.dtype, [&]<class T>() {
    const T* x = reinterpret_cast<const T*>(source);
    T* y = reinterpret_cast<T*>(values);
    const auto key = [](T v) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        return to_float(v);
      else
        return v;
    };
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    for (std::int64_t line = 0; line < lines; ++line) {
      const std::int64_t base = line / stride * stride * n + line % stride;
      const auto at = [&](std::int64_t i) { return key(x[base + i * stride]); };
      // NaN counts as larger than every number, so it comes last ascending and first descending.
      const auto less = [](auto p, auto q) { return p < q || (q != q && p == p); };
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
        return descending ? less(at(j), at(i)) : less(at(i), at(j));
      });
      for (std::int64_t i = 0; i < n; ++i) {
        y[base + i * stride] = x[base + order[static_cast<std::size_t>(i)] * stride];
        indices[base + i * stride] = order[static_cast<std::size_t>(i)];
      }
    }
  });
}

}  // namespace ferrite::op
