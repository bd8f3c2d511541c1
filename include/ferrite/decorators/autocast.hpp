// Autocast<B>: mixed precision. Products (matmul, linear, attention, convolutions, embeddings) get their
// inputs in bf16 or f16; everything else gets them as they come. Parameters stay f32, in the model, in its
// files and for the optimiser:
//
//   Autodiff<Autocast<Cuda>> gpu;     // a model that is built on it trains in mixed precision
//
// Below Autodiff, so that gradients are computed the same way: products of 16-bit operands, summed in f32.
// Gradients have the dtype of their parameter; those of matmul, linear, conv2d and embedding are not rounded
// to 16 bits on the way.
#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "ferrite/core/config.hpp"
#include "ferrite/decorators/decorator.hpp"

namespace ferrite {

struct AutocastConfig {
  /// bf16 or f16. f16 has a smaller range: small gradients become 0 unless the loss is scaled
  /// (optim/loss_scaler.hpp; a Trainer does it).
  DType dtype = DType::bf16;

  AutocastConfig with_dtype(DType value) const { return detail::with(*this, &AutocastConfig::dtype, value); }
};

namespace detail {

/// The 16-bit copies of parameters. A copy is made again when the parameter has been written to since.
class FERRITE_API LoweredParameters {
 public:
  struct Copy {
    std::weak_ptr<Buffer> master;
    Array array;  // defined once it was needed
    std::uint32_t version = 0;
    bool in_graph = false;  // launches of a graph change the parameter without a new version
    bool is_kept = false;   // the optimiser writes the copy along with the parameter
  };

  explicit LoweredParameters(const AutocastConfig& config);
  DType dtype() const { return dtype_; }
  /// How many FixedParameters there are.
  std::atomic<int>& fixed() { return fixed_; }
  /// From now on a copy of this parameter is kept.
  void adopt(const Array& parameter);
  /// Calls use(copy, parameter buffer) for every copy.
  template <class Use>
  void for_each(Use&& use) {
    const std::lock_guard guard(mutex_);
    for (auto& [buffer, copy] : copies_)
      if (const std::shared_ptr<Buffer> master = copy.master.lock()) use(copy, master);
  }
  /// Calls use(copy) for the parameter that x shows; false if x shows none.
  template <class Use>
  bool with_copy(const Array& x, Use&& use) {
    const std::lock_guard guard(mutex_);
    const auto found = copies_.find(x.buffer().get());
    if (found == copies_.end() || found->second.master.lock() != x.buffer()) return false;
    use(found->second);
    return true;
  }

 private:
  DType dtype_;
  std::atomic<int> fixed_ = 0;
  std::mutex mutex_;
  std::unordered_map<const Buffer*, Copy> copies_;
};

}  // namespace detail

template <class B>
class Autocast : public Decorator<Autocast<B>, B, AutocastConfig, detail::LoweredParameters> {
  using Base = Decorator<Autocast, B, AutocastConfig, detail::LoweredParameters>;

 public:
  using Base::Base;
  using Base::inner;

  /// "autocast(bf16) over cpu (x86-64-v4, 2 threads)"
  std::string describe() const {
    return "autocast(" + std::string(to_string(lowered_dtype())) + ") over " + inner().describe();
  }
  /// bf16 or f16.
  DType lowered_dtype() const { return Base::state().dtype(); }

  /// x in 16 bits, if it is f32. For views of a parameter it is the same view of the copy.
  Array lower(const Array& x) {
    const DType dtype = lowered_dtype();
    if (x.dtype() != DType::f32) return x;
    Array result;
    const bool is_parameter = Base::state().with_copy(x, [&](auto& copy) {
      const auto elements = static_cast<std::int64_t>(x.buffer()->bytes() / size_of(DType::f32));
      const bool made = copy.array.defined();
      if (!made) copy.array = inner().allocate({{elements}, dtype});
      const bool fixed = copy.is_kept || Base::state().fixed() > 0;
      if (!fixed) copy.in_graph = copy.in_graph || is_capturing();
      if (copy.is_kept) copy.in_graph = false;
      if (!made || (copy.in_graph && !fixed) || copy.version != x.buffer()->version()) {
        round_into(x.with_layout(Layout::contiguous({elements})), copy.array);
        copy.version = x.buffer()->version();
      }
      result = copy.array.with_layout(x.layout());
    });
    if (is_parameter) return result;
    result = inner().allocate({x.shape(), dtype});
    round_into(x, result);
    return result;
  }
  void adopt(const Array& parameter) {
    if (parameter.dtype() == DType::f32) Base::state().adopt(parameter);
  }

  /// For optimisers: the 16-bit copy of a dense parameter, where it has one that products have used; an array
  /// that is not defined otherwise. Whoever writes to the parameter may write its rounded values there, and
  /// then calls set_copy_is_current. From then on products use the copy without a cast, inside graphs too,
  /// so that a captured step must keep doing both.
  Array copy_of(const Array& parameter) {
    Array result;
    if (parameter.dtype() != DType::f32 || !parameter.layout().is_contiguous()) return result;
    Base::state().with_copy(parameter, [&](auto& copy) {
      if (copy.array.defined()) result = copy.array.with_layout(parameter.layout());
    });
    return result;
  }
  void set_copy_is_current(const Array& parameter) {
    Base::state().with_copy(parameter, [&](auto& copy) {
      copy.is_kept = true;
      copy.in_graph = false;
      copy.version = parameter.buffer()->version();
    });
  }
  /// Makes the copies again of parameters that something else has written to (loading a state). Products do
  /// so themselves; before a captured step runs again, it is up to the caller.
  void refresh() {
    Base::state().for_each([&](auto& copy, const std::shared_ptr<Buffer>& master) {
      if (copy.array.defined() && copy.version != master->version()) renew(copy, master);
    });
  }
  /// See FixedParameters (backend/record.hpp).
  void begin_fixed() {
    Base::state().for_each([&](auto& copy, const std::shared_ptr<Buffer>& master) {
      if (copy.array.defined() && copy.in_graph) renew(copy, master);
    });
    ++Base::state().fixed();
  }
  void end_fixed() { --Base::state().fixed(); }

 private:
  /// A graph must make the copies itself: the parameters change from one launch to the next.
  bool is_capturing() const {
    if constexpr (requires { inner().is_capturing(); })
      return inner().is_capturing();
    else
      return false;
  }
  void renew(detail::LoweredParameters::Copy& copy, const std::shared_ptr<Buffer>& master) {
    const auto elements = static_cast<std::int64_t>(master->bytes() / size_of(DType::f32));
    round_into(Array(master, Layout::contiguous({elements}), DType::f32), copy.array);
    copy.version = master->version();
  }
  void round_into(const Array& x, Array& to) {
    const Array* in[] = {&x};
    detail::run_kernel(inner(), op::Copy{to.dtype()}, Ins(in, 1), Outs(&to, 1));
  }
};

}  // namespace ferrite
