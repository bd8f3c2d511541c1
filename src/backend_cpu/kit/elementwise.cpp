// Two paths: dense operands of the kernel's own dtypes go to it directly, a whole chunk at a time, or in
// blocks whose results go around the caches if these could not hold them; all others are loaded box by box
// into blocks that stay in the cache.
#include <algorithm>
#include <cstring>

#include "backend_cpu/kit/boxes.hpp"
#include "backend_cpu/kit/elementwise.hpp"
#include "backend_cpu/simd/simd.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/cpu/blocks.hpp"

namespace ferrite::cpu {
namespace {

constexpr std::size_t max_sources = 3;

std::byte* at_offset(const Array& x, std::int64_t offset) {
  return x.data() + offset * static_cast<std::int64_t>(size_of(x.dtype()));
}

bool is_dense(const Source& source, const Array& out) {
  if (!source.array) return true;
  return source.array->dtype() == source.dtype && source.array->shape() == out.shape() &&
         source.array->layout().is_contiguous();
}

void apply(const Elementwise& op, const void* const* in, void* out, std::int64_t n) {
  if (op.kernel)
    op.kernel(in, out, n, op.parameter);
  else
    std::memcpy(out, in[0], static_cast<std::size_t>(n) * size_of(op.dtype));
}

/// Elements [begin, end), all operands arrays.
void run_dense_range(const Elementwise& op, std::span<const Source> sources, const Array& out,
                     std::int64_t begin, std::int64_t end) {
  const void* in[max_sources];
  for (std::size_t k = 0; k < sources.size(); ++k) in[k] = at_offset(*sources[k].array, begin);
  apply(op, in, at_offset(out, begin), end - begin);
}

/// A block on its way around the caches to where a cache line starts. Meanwhile as much of the next block of
/// each source is fetched.
void store_block_past_caches(const void* block, std::byte* target, std::int64_t bytes,
                             std::span<const std::byte* const> next) {
  constexpr std::int64_t line = 64;
  const auto* from = static_cast<const std::byte*>(block);
  std::int64_t done = 0;
  for (; done + line <= bytes; done += line) {
    for (const std::byte* source : next) __builtin_prefetch(source + done);
    for (std::int64_t j = done; j < done + line; j += vector_bytes) {
      simd::Vec<float> v;
      std::memcpy(&v, from + j, sizeof v);
      simd::store_past_caches(target + j, v);
    }
  }
  std::memcpy(target + done, from + done, static_cast<std::size_t>(bytes - done));
}

/// Elements [begin, end) in blocks. Values for all elements are spread over a block first.
void run_blocks(const Elementwise& op, std::span<const Source> sources, const Array& out, std::int64_t begin,
                std::int64_t end, bool past_caches) {
  const Streamed streamed(past_caches);
  BlockBuffer values[max_sources], result;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    if (!sources[k].array)
      fill_block(sources[k].dtype, sources[k].value, values[k].bytes, std::min(block_size, end - begin));
  }
  const void* in[max_sources];
  for (std::int64_t i = begin; i < end; i += block_size) {
    const std::int64_t n = std::min(block_size, end - i);
    SmallVector<const std::byte*, max_sources> next;
    for (std::size_t k = 0; k < sources.size(); ++k) {
      in[k] = sources[k].array ? at_offset(*sources[k].array, i) : values[k].bytes;
      if (sources[k].array) next.push_back(at_offset(*sources[k].array, i + n));
    }
    std::byte* const target = at_offset(out, i);
    if (!past_caches) {
      apply(op, in, target, n);
      continue;
    }
    if (op.kernel) op.kernel(in, result.bytes, n, op.parameter);
    store_block_past_caches(op.kernel ? result.bytes : in[0], target,
                            n * static_cast<std::int64_t>(size_of(op.dtype)), next);
  }
}

/// The strided path for one thread: its buffers, and its work on a box.
class BoxRunner {
 public:
  BoxRunner(const Elementwise& op, std::span<const Source> sources, const Array& out, bool accumulate)
      : op_(op), sources_(sources), out_(out), accumulate_(accumulate) {
    for (std::size_t k = 0; k < sources.size(); ++k) {
      if (!sources[k].array) fill_block(sources[k].dtype, sources[k].value, buffers_[k].bytes, block_size);
    }
  }

  void run(const BoxWalk& walk) {
    const void* in[max_sources];
    int operand = 0;
    for (std::size_t k = 0; k < sources_.size(); ++k) {
      in[k] = buffers_[k].bytes;
      const Array* x = sources_[k].array;
      if (!x) continue;
      ++operand;
      in[k] = load_box(walk.box(), x->dtype(), at_offset(*x, walk.offset(operand)),
                       walk.nest().stride[operand], sources_[k].dtype, buffers_[k], scratch_);
    }
    finish(walk.box(), in, at_offset(out_, walk.offset(0)), walk.nest().stride[0]);
  }

 private:
  void finish(const Box& box, const void* const* in, std::byte* target, const std::int64_t* stride) {
    const void* block = in[0];
    const bool in_place = out_.dtype() == op_.dtype && box.is_dense(stride);
    if (op_.kernel) {
      std::byte* result = in_place && !accumulate_ ? target : result_.bytes;
      op_.kernel(in, result, box.numel(), op_.parameter);
      if (result == target) return;
      block = result;
    }
    if (accumulate_) {
      if (in_place) return add_block(op_.dtype, block, target, box.numel());
      load_box(box, out_.dtype(), target, stride, op_.dtype, old_, scratch_);
      add_block(op_.dtype, block, old_.bytes, box.numel());
      block = old_.bytes;
    }
    store_box(box, op_.dtype, block, out_.dtype(), target, stride, scratch_);
  }

  const Elementwise& op_;
  std::span<const Source> sources_;
  const Array& out_;
  bool accumulate_;
  BlockBuffer buffers_[max_sources], scratch_, result_, old_;
};

void run_strided(const Elementwise& op, std::span<const Source> sources, const Array& out, bool accumulate) {
  Layout expanded[max_sources];
  const Layout* layouts[1 + max_sources] = {&out.layout()};
  std::size_t operands = 1;
  for (const Source& source : sources) {
    if (!source.array) continue;
    expanded[operands - 1] = source.array->layout().expand(out.shape());
    layouts[operands] = &expanded[operands - 1];
    ++operands;
  }
  const BoxWalk all(LoopNest(std::span(layouts, operands)));
  const bool plain_copy = !op.kernel && !accumulate && sources[0].array && op.dtype == out.dtype();
  parallel_ranges(all.count(), all.boxes_per_chunk(), [&](std::int64_t begin, std::int64_t end) {
    BoxWalk walk = all;
    walk.seek(begin);
    if (plain_copy) {
      for (std::int64_t i = begin; i < end; ++i, walk.next()) {
        copy_box(size_of(op.dtype), walk.box(), at_offset(*sources[0].array, walk.offset(1)),
                 walk.nest().stride[1], at_offset(out, walk.offset(0)), walk.nest().stride[0]);
      }
      return;
    }
    BoxRunner runner(op, sources, out, accumulate);
    for (std::int64_t i = begin; i < end; ++i, walk.next()) runner.run(walk);
  });
}

}  // namespace

void run_elementwise(const Elementwise& op, std::span<const Source> sources, const Array& out,
                     bool accumulate) {
  if (accumulate && op.dtype != compute_dtype(op.dtype))
    throw BackendError("[elementwise] accumulating truth values: only numbers can be added up");
  const std::int64_t n = out.shape().numel();
  if (n == 0) return;
  bool dense = !accumulate && out.dtype() == op.dtype && out.layout().is_contiguous();
  for (std::size_t k = 0; dense && k < sources.size(); ++k) dense = is_dense(sources[k], out);
  if (!dense) return run_strided(op, sources, out, accumulate);
  const auto is_array = [](const Source& s) { return s.array != nullptr; };
  const auto is_output = [&](const Source& s) { return s.array && s.array->data() == out.data(); };
  const bool past_caches = exceeds_caches(n * static_cast<std::int64_t>(size_of(op.dtype))) &&
                           at_cache_line(out.data()) &&
                           std::none_of(sources.begin(), sources.end(), is_output);
  const bool whole = !past_caches && std::all_of(sources.begin(), sources.end(), is_array);
  parallel_ranges(n, chunk_size, [&](std::int64_t begin, std::int64_t end) {
    if (whole)
      run_dense_range(op, sources, out, begin, end);
    else
      run_blocks(op, sources, out, begin, end, past_caches);
  });
}

}  // namespace ferrite::cpu
