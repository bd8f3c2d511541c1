// Arrays of any layout as rows, and back.
#include "ferrite/cpu/rows.hpp"

#include <unistd.h>

#include "ferrite/ops/copy.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ferrite::cpu {

#if defined(__SSE2__) && defined(_SC_LEVEL2_CACHE_SIZE)
// Where each op of a chain reads what the one before it wrote, stores around the caches lose at twice the
// size of all second-level caches and gain at four times (docs/performance.md).
bool exceeds_caches(std::int64_t bytes) {
  static const std::int64_t of_core = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return of_core > 0 && bytes > 3 * of_core * num_threads();
}
void Streamed::order_stores() { _mm_sfence(); }
#else
bool exceeds_caches(std::int64_t) { return false; }
void Streamed::order_stores() {}
#endif

void copy_into(Cpu& cpu, const Array& from, const Array& to, bool add) {
  const Array* in[] = {&from};
  Array out[] = {to};
  run(cpu, op::Copy{to.dtype()}, Ins(in, 1), Outs(out), add ? Accumulate::first : Accumulate::none);
}

Array dense(Cpu& cpu, const Array& x, DType dtype) {
  if (x.dtype() == dtype && x.layout().is_contiguous()) return x;
  const Array copy = cpu.allocate({x.shape(), dtype});
  copy_into(cpu, x, copy);
  return copy;
}

Array axis_last(const Array& x, int axis) {
  Layout layout = x.layout();
  const std::int64_t extent = layout.shape[axis], stride = layout.strides[axis];
  layout.shape.erase(axis);
  layout.strides.erase(axis);
  layout.shape.push_back(extent);
  layout.strides.push_back(stride);
  return x.with_layout(layout);
}

std::optional<Rows> rows_in_place(const Array& x) {
  const std::int64_t length = x.shape().back();
  std::int64_t count = 1;
  for (int i = 0; i + 1 < x.shape().rank(); ++i) count *= x.shape()[i];
  const auto view = x.layout().reshape({count, length});
  if (!view || (length > 1 && view->strides[1] != 1)) return std::nullopt;
  return Rows{x, count, length, view->strides[0]};
}

Rows rows_of(Cpu& cpu, const Array& x) {
  const auto rows = rows_in_place(x);
  return rows ? *rows : *rows_in_place(dense(cpu, x));
}

Destination::Destination(Cpu& cpu, const Array& out, bool add)
    : cpu_(cpu), out_(out), add_(add), temporary_(!out.layout().is_contiguous()) {
  dense_ = temporary_ ? cpu.allocate(out.meta()) : out;
}

void Destination::commit() {
  if (temporary_) copy_into(cpu_, dense_, out_, add_);
}

}  // namespace ferrite::cpu
