// AnyBackend: a backend chosen at run time, by a name or by an object. Tensors, gradients, layers, optimisers
// and trainers work on it as on any other backend, so a program with a flag --backend is compiled once:
//
//   Autodiff<AnyBackend> b("cuda");
//
// Compared with the backend itself, an op costs one extra call through a table.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "ferrite/backend/aside.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/cuda.hpp"
#include "ferrite/backend/handle.hpp"
#include "ferrite/backend/late_copies.hpp"
#include "ferrite/backend/record.hpp"
#include "ferrite/backend/reference.hpp"
#include "ferrite/decorators/lazy.hpp"
#include "ferrite/decorators/parity.hpp"
#include "ferrite/decorators/profiled.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite {

namespace detail {
/// For a stack that the library does not compile: include ferrite/backend/own_table.hpp.
template <class B>
struct OwnTable;

/// One of the stacks has a kernel for the op.
template <class Op, class... Stacks>
consteval bool runs_on_one_of(StackList<Stacks...>) {
  return (Runs<Stacks, Op> || ...);
}
[[noreturn]] FERRITE_API void throw_no_kernel(std::string_view op, const std::string& backend);
}  // namespace detail

/// A handle: copies are the same backend. Two objects are the same if the backends they hold are.
class FERRITE_API AnyBackend {
 public:
  using Primitive = Array;
  using Handle = AnyBackend;

  /// By name; see names(). "auto" is the first GPU if there is one, else the CPU. The name of a GPU may end
  /// in its index: "cuda:1", "lazy-cuda:1". Throws ValueError for an unknown name, and whatever the backend's
  /// constructor throws: DeviceError says why there is no GPU.
  explicit AnyBackend(std::string_view name = "auto");
  /// A backend of any type. Unless the library compiles its ops (backend/compiled.hpp), they are compiled
  /// here, which needs backend/own_table.hpp.
  template <RunsKernels B>
  requires(!std::same_as<B, AnyBackend>) explicit AnyBackend(B backend)
      : model_(std::make_shared<ModelOf<B>>(std::move(backend))) {}
  friend bool operator==(const AnyBackend& a, const AnyBackend& b) {
    return a.model_ == b.model_ || a.model_->is_one_with(*b.model_);
  }

  /// All names, each with a short description.
  static std::vector<std::pair<std::string, std::string>> names();
  /// The name that "auto" stands for on this machine: "cuda" or "cpu".
  static std::string_view automatic_name();

  /// The backend that it holds, if that is a B: `any.get_if<Cuda>()`; nullptr otherwise.
  template <class B>
  B* get_if() {
    return model_->type() == typeid(B) ? static_cast<B*>(model_->held()) : nullptr;
  }
  /// The measurements of Profiled; nothing if it holds another backend.
  std::optional<Profile> profile() const { return model_->profile(); }
  /// The table of Parity, Lazy or a profile, to print at the end. Empty for other backends.
  std::string report() const { return model_->report(); }

  Array allocate(const Meta& meta) { return allocate(meta, "allocate"); }
  Array allocate(const Meta& meta, std::string_view op) { return model_->allocate(meta, op); }
  void copy_from_host(const Array& array, const void* source) { model_->copy_from_host(array, source); }
  void copy_to_host(const Array& array, void* target) { model_->copy_to_host(array, target); }
  void synchronize() { model_->synchronize(); }
  Device device() const { return model_->device(); }
  MemoryStats memory_stats() const { return model_->memory_stats(); }
  std::string describe() const { return model_->describe(); }
  Array settled(const Array& array) { return model_->settled(array); }
  /// A copy of an array of a GPU that does not pass through the host. Undefined if it holds a backend that
  /// cannot make one.
  Array copy_between_gpus(const Array& array) { return model_->copy_between_gpus(array); }

  // As backend/record.hpp has them, if the backend that it holds can.
  bool can_record() const { return model_->can_record(); }
  std::unique_ptr<RecordedStep> record(const std::function<void()>& step,
                                       const RecordedStep* beside = nullptr) {
    return model_->record(step, beside);
  }
  /// As backend/late_copies.hpp has it.
  std::unique_ptr<LateCopies> late_copies() { return model_->late_copies(); }
  /// As backend/aside.hpp has it.
  std::unique_ptr<Aside> aside() { return model_->aside(); }
  /// Work is being recorded and does not run yet.
  bool is_capturing() const { return model_->is_capturing(); }

  /// Any op. One of the list goes through the table of the backend. Another is compiled for every backend
  /// that has a name, so that its kernels are found; on a backend of another type it is composed.
  template <class Op>
  Primitives<AnyBackend> evaluate(const Op& op, Ins in) {
    if constexpr (LibraryOp<Op>)
      return model_->evaluate(OpPlace<Op>::value, &op, in);
    else
      return evaluate_unlisted(op, in);
  }
  template <class Op>
  requires LibraryOp<Op>
  void evaluate_in_place(const Op& op, Ins in, Outs out) {
    model_->evaluate_in_place(OpPlace<Op>::value, &op, in, out);
  }
  /// True if it has a kernel that adds to outputs and accepts these inputs.
  template <class Op>
  bool adds(const Op& op, MetaSpan in) const {
    return model_->adds(OpPlace<Op>::value, &op, in);
  }

  // Ops of the list. An op for which the backend has no kernel is refused at run time.
  template <class Op>
  requires LibraryOp<Op>
  friend bool accepts(const AnyBackend& b, const Op& op, MetaSpan in) {
    return b.model_->accepts(OpPlace<Op>::value, &op, in);
  }
  template <class Op>
  requires(LibraryOp<Op> && !ViewOp<Op>) friend void run(AnyBackend& b, const Op& op, Ins in, Outs out,
                                                         Accumulate mask = Accumulate::none) {
    b.model_->run(OpPlace<Op>::value, &op, in, out, mask);
  }
  // Other ops, for decorators around it: the kernel of a backend that has a name.
  template <class Op>
  requires(!LibraryOp<Op> &&
           detail::runs_on_one_of<Op>(NamedStacks{})) friend bool accepts(const AnyBackend& b, const Op& op,
                                                                          MetaSpan in) {
    bool accepted = false;
    b.with_kernels_of<Op>([&](auto& named) { accepted = detail::kernel_accepts(named, op, in); });
    return accepted;
  }
  template <class Op>
  requires(!LibraryOp<Op> && detail::runs_on_one_of<Op>(NamedStacks{})) friend void run(AnyBackend& b,
                                                                                        const Op& op, Ins in,
                                                                                        Outs out) {
    const bool found = b.with_kernels_of<Op>([&](auto& named) { detail::call_kernel(named, op, in, out); });
    if (!found) detail::throw_no_kernel(op_name(op), b.describe());
  }

 private:
  /// A backend with its type erased. Ops are given by their place in the list.
  class Model {
   public:
    virtual ~Model() = default;
    virtual const std::type_info& type() const = 0;
    virtual void* held() = 0;
    virtual bool is_one_with(Model& other) = 0;
    virtual Array allocate(const Meta& meta, std::string_view op) = 0;
    virtual void copy_from_host(const Array& array, const void* source) = 0;
    virtual void copy_to_host(const Array& array, void* target) = 0;
    virtual void synchronize() = 0;
    virtual Device device() const = 0;
    virtual MemoryStats memory_stats() const = 0;
    virtual std::string describe() const = 0;
    virtual std::optional<Profile> profile() const = 0;
    virtual std::string report() const = 0;
    virtual Array settled(const Array& array) = 0;
    virtual Array copy_between_gpus(const Array& array) = 0;
    virtual bool can_record() const = 0;
    virtual std::unique_ptr<RecordedStep> record(const std::function<void()>& step,
                                                 const RecordedStep* beside) = 0;
    virtual std::unique_ptr<LateCopies> late_copies() = 0;
    virtual std::unique_ptr<Aside> aside() = 0;
    virtual bool is_capturing() const = 0;
    virtual Primitives<AnyBackend> evaluate(std::size_t index, const void* op, Ins in) = 0;
    virtual void evaluate_in_place(std::size_t index, const void* op, Ins in, Outs out) = 0;
    virtual bool accepts(std::size_t index, const void* op, MetaSpan in) const = 0;
    virtual bool adds(std::size_t index, const void* op, MetaSpan in) const = 0;
    virtual void run(std::size_t index, const void* op, Ins in, Outs out, Accumulate mask) = 0;
  };
  template <class B>
  class ModelOf;

  template <class Op>
  Primitives<AnyBackend> evaluate_unlisted(const Op& op, Ins in);
  /// Calls use(B&) if it holds a B that has a name and a kernel for the op; false if it does not.
  template <class Op, class Use>
  bool with_kernels_of(const Use& use) const {
    bool found = false;
    NamedStacks::for_each([&]<class B>() {
      if constexpr (Runs<B, Op>) {
        if (model_->type() != typeid(B)) return;
        found = true;
        use(*static_cast<B*>(model_->held()));
      }
    });
    return found;
  }

  std::shared_ptr<Model> model_;
};

template <class B>
class AnyBackend::ModelOf final : public Model {
 public:
  explicit ModelOf(B backend) : b_(std::move(backend)) {}

  const std::type_info& type() const override { return typeid(B); }
  void* held() override { return &b_; }
  bool is_one_with(Model& other) override {
    return other.type() == typeid(B) && same_backend(b_, *static_cast<B*>(other.held()));
  }
  Array allocate(const Meta& meta, std::string_view op) override {
    return detail::allocate_for(b_, op, meta);
  }
  void copy_from_host(const Array& array, const void* source) override { b_.copy_from_host(array, source); }
  void copy_to_host(const Array& array, void* target) override { b_.copy_to_host(array, target); }
  void synchronize() override { b_.synchronize(); }
  Device device() const override { return b_.device(); }
  MemoryStats memory_stats() const override { return b_.memory_stats(); }
  std::string describe() const override { return b_.describe(); }
  std::optional<Profile> profile() const override {
    if constexpr (requires { b_.profile(); })
      return b_.profile();
    else
      return {};
  }
  std::string report() const override {
    if constexpr (requires { b_.table(); })
      return b_.table();
    else if constexpr (requires { table(b_.profile()); })
      return table(b_.profile());
    else if constexpr (requires { table(b_.fusion_report()); })
      return table(b_.fusion_report());
    else
      return {};
  }
  Array settled(const Array& array) override { return detail::array_in_memory(b_, array); }
  Array copy_between_gpus(const Array& array) override { return detail::copy_between_gpus(b_, array); }
  bool can_record() const override { return ferrite::can_record(b_); }
  std::unique_ptr<RecordedStep> record(const std::function<void()>& step,
                                       const RecordedStep* beside) override {
    return ferrite::record(b_, step, beside);
  }
  std::unique_ptr<LateCopies> late_copies() override { return ferrite::late_copies(b_); }
  std::unique_ptr<Aside> aside() override { return ferrite::aside(b_); }
  bool is_capturing() const override {
    if constexpr (requires { b_.is_capturing(); })
      return b_.is_capturing();
    else
      return false;
  }

  Primitives<AnyBackend> evaluate(std::size_t index, const void* op, Ins in) override {
    return entry(index).evaluate(b_, op, in);
  }
  void evaluate_in_place(std::size_t index, const void* op, Ins in, Outs out) override {
    entry(index).evaluate_in_place(b_, op, in, out);
  }
  bool accepts(std::size_t index, const void* op, MetaSpan in) const override {
    return entry(index).runs(b_, op, in);
  }
  bool adds(std::size_t index, const void* op, MetaSpan in) const override {
    const OpEntry<B>& e = entry(index);
    return e.adds && e.adds(b_, op, in);
  }
  void run(std::size_t index, const void* op, Ins in, Outs out, Accumulate mask) override {
    const OpEntry<B>& e = entry(index);
    if (mask == Accumulate::none)
      e.run(b_, op, in, out);
    else
      e.run_adding(b_, op, in, out, mask);
  }

 private:
  static const OpEntry<B>& entry(std::size_t index) {
    if constexpr (CompiledStack<B>)
      return op_table<B>()[index];
    else
      return detail::OwnTable<B>::entries()[index];
  }

  B b_;
};

template <class Op>
Primitives<AnyBackend> AnyBackend::evaluate_unlisted(const Op& op, Ins in) {
  std::optional<Primitives<AnyBackend>> out;
  NamedStacks::for_each([&]<class B>() {
    if (out) return;
    if (B* const b = get_if<B>()) out = ferrite::evaluate(*b, op, in);
  });
  static constexpr OpEntry<AnyBackend> entry = detail::make_kernel_entry<AnyBackend, Op>();
  return out ? std::move(*out) : entry.evaluate(*this, &op, in);
}

}  // namespace ferrite
