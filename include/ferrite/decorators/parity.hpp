// Parity<B, Ref>: runs every op on two backends and compares. A program uses it as its backend type, and
// Autodiff<Parity<B, Ref>> checks the backward ops too, because those are ordinary ops of the inner backend.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/core/config.hpp"
#include "ferrite/decorators/decorator.hpp"
#include "ferrite/tensor/backend_name.hpp"
#include "ferrite/tensor/comparison.hpp"

namespace ferrite {

/// resync: Ref gets a copy of B's inputs before every op, so that a report isolates the op.
/// free_running: every buffer has a shadow on Ref, which computes from its own earlier results, so drift
/// shows.
enum class ParityMode : std::uint8_t { resync, free_running };

struct FERRITE_API ParityConfig {
  ParityMode mode = ParityMode::resync;
  /// Every n-th call of each op is compared, the first one always.
  std::int64_t every = 1;
  /// Where replay files go; made when the first is written.
  std::filesystem::path directory = "parity-reports";
  /// At most this many files, and no more once they hold this many bytes; reports go on without files.
  std::int64_t max_files = 20, max_bytes = std::int64_t{32} << 20;
  /// Throw at the first mismatch, or collect reports. By default resync throws and free_running collects.
  enum class Throw : std::uint8_t { by_mode, yes, no } throws = Throw::by_mode;

  ParityConfig with_mode(ParityMode value) const { return detail::with(*this, &ParityConfig::mode, value); }
  /// Throws ValueError unless n >= 1.
  ParityConfig with_every(std::int64_t n) const;
  ParityConfig with_directory(std::filesystem::path value) const {
    return detail::with(*this, &ParityConfig::directory, std::move(value));
  }
  /// Throws ValueError for negative numbers; 0 files writes none.
  ParityConfig with_files(std::int64_t count, std::int64_t bytes) const;
  ParityConfig with_throw(bool value) const {
    return detail::with(*this, &ParityConfig::throws, value ? Throw::yes : Throw::no);
  }
};

/// One mismatch.
struct FERRITE_API ParityReport {
  std::string op;          // "softmax"
  std::string attributes;  // {"axis":-1}
  std::string backend, reference;
  std::vector<Meta> inputs, outputs;
  std::size_t output = 0;  // which output differs, and where most
  Shape place;
  Comparison comparison;
  bool accumulated = false;
  /// The value in float64 and the distance of both backends from it.
  double exact = 0, backend_error = 0, reference_error = 0;
  std::filesystem::path file;
  std::string file_error;  // why there is no file
  /// True for an op or a backend that is not the library's: only a Replayer that knows it
  /// (ferrite/stacks/replay.hpp) can replay the file.
  bool own = false;

  /// A few lines; the last says how to replay the file.
  std::string message() const;
};

/// The state of Parity: counters, reports, files. Everything except the copies and the kernels.
class FERRITE_API ParityMonitor {
 public:
  static constexpr std::size_t max_reports = 100;

  ParityMonitor(ParityConfig config, std::string backend, std::string reference);
  ~ParityMonitor();

  const ParityConfig& config() const { return config_; }
  /// Counts a call; true if it is one to compare.
  bool begin(std::string_view op);
  /// Compares; if the outputs differ, throws BackendError or keeps a report. `layouts` are the inputs'.
  void check(const detail::ComparedCall& call, std::span<const Layout> layouts);

  std::vector<ParityReport> reports() const;
  std::int64_t files_left_out() const;
  std::string table() const;
  void reset();

 private:
  struct State;
  ParityReport describe(const detail::ComparedCall& call, std::size_t output,
                        const Comparison& comparison) const;
  void write(ParityReport& report, const detail::ComparedCall& call, std::span<const Layout> layouts) const;
  bool has_room_for_a_file() const;

  ParityConfig config_;
  std::string backend_, reference_;
  std::unique_ptr<State> state_;
};

namespace detail {
/// The bytes that an array spans, as a dense u8 array of the same buffer, and its layout inside a copy of
/// them.
struct ByteSpan {
  Array bytes;
  Layout layout;
};
FERRITE_API ByteSpan byte_span(const Array& array);

template <class B, class Ref>
struct ParityState {
  ParityState(const ParityConfig& config, const B& inner)
      : monitor(config, backend_name(inner), backend_name(reference)) {}
  Ref reference;
  ParityMonitor monitor;
};
}  // namespace detail

/// A handle: copies share both backends and the reports, and tensors keep them alive.
template <class B, class Ref>
class Parity : public Decorator<Parity<B, Ref>, B, ParityConfig, detail::ParityState<B, Ref>> {
  using Base = Decorator<Parity, B, ParityConfig, detail::ParityState<B, Ref>>;

 public:
  using Base::Base;
  using Base::inner;
  Ref& reference() { return Base::state().reference; }
  const Ref& reference() const { return Base::state().reference; }

  /// The mismatches kept so far, at most ParityMonitor::max_reports.
  std::vector<ParityReport> reports() const { return monitor().reports(); }
  /// Mismatches without a replay file because of ParityConfig::with_files.
  std::int64_t files_left_out() const { return monitor().files_left_out(); }
  /// Per op: calls, comparisons, mismatches, worst error as a multiple of the allowed error.
  std::string table() const { return monitor().table(); }
  void reset() { monitor().reset(); }

  Array allocate(const Meta& meta, std::string_view op = "allocate") {
    Array array = Base::allocate(meta, op);
    if (free_running()) array.buffer()->shadow = reference().allocate(meta).buffer();
    return array;
  }
  void copy_from_host(const Array& array, const void* source) {
    inner().copy_from_host(array, source);
    if (free_running()) reference().copy_from_host(shadow_of(array), source);
  }
  std::string describe() const {
    return "parity of " + inner().describe() + " with " + reference().describe();
  }

  template <class Op>
  void call(const Op& op, Ins in, Outs out, Accumulate mask) {
    follow(ErasedCall::of(op), in, out, mask);
  }

 private:
  using Arrays = SmallVector<Array, 6>;

  /// An op on both backends with its type erased, so that `follow` is compiled once, not once per op.
  struct ErasedCall : detail::ErasedOp {
    const OpEntry<B>& tested;
    const OpEntry<Ref>& trusted;

    template <class Op>
    static ErasedCall of(const Op& op) {
      return {detail::ErasedOp::of(op), op_entry<B, Op>(), op_entry<Ref, Op>()};
    }
    void run(B& b, Ins in, Outs out, Accumulate mask) const {
      if (mask == Accumulate::none)
        tested.run(b, op, in, out);
      else
        tested.run_adding(b, op, in, out, mask);
    }
  };

  bool free_running() const { return monitor().config().mode == ParityMode::free_running; }

  void follow(const ErasedCall& op, Ins in, Outs out, Accumulate mask) {
    const bool compared = monitor().begin(op.name());
    if (!compared && !free_running()) return op.run(inner(), in, out, mask);

    // Copies come first: an output may be an input, and an accumulating one has earlier contents.
    Arrays copies, shadows, before;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (compared) copies.push_back(copy_to_reference(in[i]));
      if (free_running()) shadows.push_back(shadow_of(in[i]));
    }
    for (std::size_t k = 0; k < out.size(); ++k)
      before.push_back(accumulates(mask, k) ? copy_of_old(out[k]) : Array());
    op.run(inner(), in, out, mask);

    Arrays expected = evaluate_on_reference(op, free_running() ? shadows : copies);
    for (std::size_t k = 0; k < out.size(); ++k)
      if (before[k].defined()) expected[k] = sum_on_reference(before[k], expected[k]);
    if (compared) compare(op, mask, in, copies, before, out, expected);
    for (std::size_t k = 0; free_running() && k < out.size(); ++k)
      copy_on_reference(op.info->type_name == op::Random::type_name ? copy_to_reference(out[k]) : expected[k],
                        shadow_of(out[k]));
  }

  void compare(const ErasedCall& op, Accumulate mask, Ins in, const Arrays& copies, const Arrays& before,
               Outs out, const Arrays& expected) {
    detail::ComparedCall call{op, mask, {}, {}, {}, {}};
    std::vector<Layout> layouts;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      call.inputs.push_back(to_host(copies[i]));
      layouts.push_back(in[i].layout());
    }
    for (std::size_t k = 0; k < out.size(); ++k) {
      call.before.push_back(before[k].defined() ? to_host(before[k]) : HostTensor());
      call.outputs.push_back(to_host(copy_to_reference(out[k])));
      call.expected.push_back(to_host(expected[k]));
    }
    monitor().check(call, layouts);
  }

  /// A composition rounds every intermediate to 16 bits where a kernel rounds once. Computed from f32 inputs
  /// it is a fair oracle. The comparison still allows what the narrow dtype allows.
  Arrays evaluate_on_reference(const ErasedCall& op, Arrays inputs) {
    Metas metas;
    for (const Array& x : inputs) metas.push_back(x.meta());
    const bool widen = !op.trusted.runs(reference(), op.op, metas);
    SmallVector<const Array*, 6> refs;
    for (Array& x : inputs) {
      if (widen && (x.dtype() == DType::f16 || x.dtype() == DType::bf16)) {
        Array wide = reference().allocate({x.shape(), DType::f32});
        copy_on_reference(x, wide);
        x = wide;
      }
      refs.push_back(&x);
    }
    Arrays results;
    for (Array& y : op.trusted.evaluate(reference(), op.op, Ins(refs.data(), refs.size())))
      results.push_back(std::move(y));
    return results;
  }

  /// The array on Ref: a copy of the same bytes in the same layout, so that no kernel of B is involved.
  Array copy_to_reference(const Array& array) {
    const detail::ByteSpan span = detail::byte_span(array);
    std::vector<std::byte> bytes(span.bytes.meta().bytes());
    inner().synchronize();
    inner().copy_to_host(span.bytes, bytes.data());
    const Array copy = reference().allocate(span.bytes.meta());
    reference().copy_from_host(copy, bytes.data());
    return {copy.buffer(), span.layout, array.dtype()};
  }
  Array copy_of_old(const Array& out) {
    if (!free_running()) return copy_to_reference(out);
    Array copy = reference().allocate(out.meta());
    copy_on_reference(shadow_of(out), copy);
    return copy;
  }
  /// The same view of the buffer's shadow. A buffer that came from elsewhere gets its shadow now.
  Array shadow_of(const Array& array) {
    std::shared_ptr<Buffer>& shadow = array.buffer()->shadow;
    if (!shadow) {
      const auto bytes = static_cast<std::int64_t>(array.buffer()->bytes());
      shadow = copy_to_reference({array.buffer(), Layout::contiguous({bytes}), DType::u8}).buffer();
    }
    return {shadow, array.layout(), array.dtype()};
  }
  void copy_on_reference(const Array& source, Array target) {
    const Array* in[] = {&source};
    detail::run_kernel(reference(), op::Copy{target.dtype()}, Ins(in, 1), Outs(&target, 1));
  }
  Array sum_on_reference(const Array& a, const Array& b) {
    const Array* in[] = {&a, &b};
    return ferrite::evaluate(reference(), op::Binary{op::BinaryFn::add}, Ins(in, 2))[0];
  }
  HostTensor to_host(const Array& array) {
    return HostTensor::make(array.dtype(), array.shape(), [&](std::span<std::byte> bytes) {
      reference().copy_to_host(array, bytes.data());
    });
  }

  ParityMonitor& monitor() const { return Base::state().monitor; }
};

}  // namespace ferrite
