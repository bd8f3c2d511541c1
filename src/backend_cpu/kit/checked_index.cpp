// Indices that are in range.
#include "backend_cpu/kit/checked_index.hpp"

#include <atomic>

#include "ferrite/cpu/rows.hpp"
#include "ops/index_rules.hpp"

namespace ferrite::cpu {

Array checked_index(Cpu& backend, std::string_view name, const Array& given, int axis, std::int64_t length) {
  Layout once = given.layout();
  for (int i = 0; i < once.shape.rank(); ++i) {
    if (once.strides[i] == 0 && once.shape[i] > 1) once.shape[i] = 1;
  }
  Array index = given.with_layout(once);
  if (given.dtype() != DType::i64 || !once.is_contiguous()) {
    const Array dense = backend.allocate({once.shape, DType::i64});
    copy_into(backend, index, dense);
    index = dense;
  }
  const auto* values = index.data<std::int64_t>();
  const auto is_bad = [=](std::int64_t i) { return (values[i] < -length) | (values[i] >= length); };
  const std::int64_t n = once.shape.numel();
  std::atomic<bool> any{false};
  parallel_ranges(n, chunk_size, [&](std::int64_t begin, std::int64_t end) {
    bool bad = false;
    for (std::int64_t i = begin; i < end; ++i) bad |= is_bad(i);
    if (bad) any.store(true, std::memory_order_relaxed);
  });
  if (any) {
    std::int64_t first = 0;
    while (!is_bad(first)) ++first;
    op::throw_out_of_range(name, values[first], first, once.shape, axis, length);
  }
  return index.with_layout(index.layout().expand(given.shape()));
}

}  // namespace ferrite::cpu
