// Rows: the units of work of fused memory-bound kernels. Such a kernel is written once for float and once for
// double; this header deals with layouts and 16-bit types.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "ferrite/backend/cpu.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/cpu/blocks.hpp"

namespace ferrite::cpu {

/// Calls f.template operator()<W>() with the type in which rows are computed: double for f64, float for the
/// other floating types.
template <class F>
void visit_wide(DType dtype, F&& f) {
  if (dtype == DType::f64)
    f.template operator()<double>();
  else
    f.template operator()<float>();
}

/// Converts and copies (or adds) between any two layouts of one shape.
FERRITE_API void copy_into(Cpu& cpu, const Array& from, const Array& to, bool add = false);
/// The elements in row-major order and in this dtype: x itself if it is so already, else a copy.
FERRITE_API Array dense(Cpu& cpu, const Array& x, DType dtype);
inline Array dense(Cpu& cpu, const Array& x) { return dense(cpu, x, x.dtype()); }
/// x with `axis` moved to the end: a view.
FERRITE_API Array axis_last(const Array& x, int axis);

/// Equally spaced rows of dense elements.
struct Rows {
  Array array;
  std::int64_t count, length, stride;
};
/// x along its last axis, if those rows are dense and equally spaced.
FERRITE_API std::optional<Rows> rows_in_place(const Array& x);
/// The same; copies only if necessary.
FERRITE_API Rows rows_of(Cpu& cpu, const Array& x);

/// An output as a dense array: the output itself if it is dense, else a temporary that commit() copies into
/// place.
class FERRITE_API Destination {
 public:
  Destination(Cpu& cpu, const Array& out, bool add);

  const Array& array() const { return dense_; }
  /// True if the kernel has to add to the contents of array().
  bool add() const { return add_ && !temporary_; }
  void commit();

 private:
  Cpu& cpu_;
  Array out_, dense_;
  bool add_, temporary_;
};

/// Reads runs of an array's elements as W: in place if they have that type, else converted into a scratch
/// row, which is valid until the next read. One per thread.
template <class W>
class Reader {
 public:
  /// No run is longer than `capacity`.
  Reader(const Array& x, std::int64_t capacity)
      : data_(x.data()), dtype_(x.dtype()), scratch_(dtype_ == dtype_of<W> ? nullptr : allocate(capacity)) {}

  /// n elements from `offset`, counted from the first element of the array.
  const W* operator()(std::int64_t offset, std::int64_t n) {
    const std::byte* from = data_ + offset * static_cast<std::int64_t>(size_of(dtype_));
    if (!scratch_) return reinterpret_cast<const W*>(from);
    convert_block(dtype_, from, dtype_of<W>, scratch_.get(), n);
    return scratch_.get();
  }
  /// What to fetch into the cache while a kernel works on `row`, the last one read: the row `stride` elements
  /// on, or one that is there already if rows are converted.
  const W* ahead(const W* row, std::int64_t stride) const { return scratch_ ? row : row + stride; }
  bool in_place() const { return scratch_ == nullptr; }

  static std::unique_ptr<W[]> allocate(std::int64_t n) {
    return std::make_unique_for_overwrite<W[]>(static_cast<std::size_t>(n));
  }

 private:
  const std::byte* data_;
  DType dtype_;
  std::unique_ptr<W[]> scratch_;
};

/// A row of results on its way to memory. The library's own vector loops store around the caches where
/// `past_caches` says so; common stores to `data` are right as well.
template <class W>
struct OutputRow {
  W* data;
  W* draft;  // room for numbers that are read again: `data`, if what is stored there stays in the cache
  bool past_caches = false;
};

/// The counterpart for outputs: compute into row(offset), or into output(offset), of which large results may
/// go around the caches; then finish(n) rounds or adds it to the array.
template <class W>
class Writer {
 public:
  Writer(const Destination& out, std::int64_t capacity)
      : data_(out.array().data()),
        dtype_(out.array().dtype()),
        add_(out.add()),
        streamed_(!add_ && dtype_ == dtype_of<W> &&
                  exceeds_caches(out.array().shape().numel() * static_cast<std::int64_t>(sizeof(W)))) {
    if (add_ || dtype_ != dtype_of<W>) scratch_ = Reader<W>::allocate(capacity);
    if (add_ && dtype_ != dtype_of<W>) sum_ = Reader<W>::allocate(capacity);
    if (streamed_) capacity_ = capacity;
  }

  W* row(std::int64_t offset) {
    target_ = data_ + offset * static_cast<std::int64_t>(size_of(dtype_));
    return scratch_ ? scratch_.get() : reinterpret_cast<W*>(target_);
  }
  OutputRow<W> output(std::int64_t offset) {
    W* const to = row(offset);
    if (!streamed_ || !at_cache_line(to)) return {to, to};
    if (!draft_) draft_ = Reader<W>::allocate(capacity_);
    return {to, draft_.get(), true};
  }
  /// For a row that has just been read, if it is where the results go.
  OutputRow<W> in_cache(std::int64_t offset) {
    W* const to = row(offset);
    return {to, to};
  }
  void finish(std::int64_t n) {
    if (!scratch_) return;
    if (!add_) return convert_block(dtype_of<W>, scratch_.get(), dtype_, target_, n);
    if (!sum_) return add_block(dtype_, scratch_.get(), target_, n);
    convert_block(dtype_, target_, dtype_of<W>, sum_.get(), n);
    add_block(dtype_of<W>, scratch_.get(), sum_.get(), n);
    convert_block(dtype_of<W>, sum_.get(), dtype_, target_, n);
  }

 private:
  std::byte* data_;
  std::byte* target_ = nullptr;
  DType dtype_;
  bool add_;
  Streamed streamed_;
  std::int64_t capacity_ = 0;
  std::unique_ptr<W[]> scratch_, sum_, draft_;
};

/// Calls f(begin, end) for ranges of rows, about chunk_size elements each.
template <class F>
void for_row_ranges(std::int64_t rows, std::int64_t length, F&& f) {
  parallel_ranges(rows, chunk_size / std::max<std::int64_t>(length, 1), f);
}

/// out = the sum of `count` dense rows of n elements, added in order.
template <class W>
void sum_rows(const W* rows, std::int64_t count, std::int64_t n, const Destination& out) {
  constexpr std::int64_t columns = 512;
  parallel_ranges(n, columns, [&](std::int64_t begin, std::int64_t end) {
    Writer<W> write(out, columns);
    W* const total = write.row(begin);
    std::fill_n(total, end - begin, W{0});
    for (std::int64_t r = 0; r < count; ++r) add_block(dtype_of<W>, rows + r * n + begin, total, end - begin);
    write.finish(end - begin);
  });
}

}  // namespace ferrite::cpu
