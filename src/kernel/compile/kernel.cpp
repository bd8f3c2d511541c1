// Everything that is derived from a kernel once, and kept.
#include "ferrite/kernel/kernel.hpp"

#include <atomic>
#include <mutex>
#include <optional>

#include "kernel/ir/array_use.hpp"

namespace ferrite::kernel {

namespace {

/// A value made by the first caller; if making it failed, the next caller tries again.
template <class T>
class Lazily {
 public:
  template <class Make>
  const T& get(Make make) {
    std::call_once(once_, [&] { value_.emplace(make()); });
    return *value_;
  }

 private:
  std::once_flag once_;
  std::optional<T> value_;
};

bool looks_at_blocks(const Function& f) {
  bool found = false;
  for_each_stmt(f.body, [&](const Stmt& s) { found |= s.kind == StmtKind::declare_array && s.shared; });
  for_each_expr(f.body, [&](const Expr& e) {
    found |=
        e.kind == ExprKind::apply && (e.builtin == Builtin::block_dim || e.builtin == Builtin::sync_threads);
  });
  return found;
}

}  // namespace

/// Shared by all kernels of a module.
struct Kernel::Shared {
  Module module;
  EmitOptions options;
  Lazily<std::string> cuda_sources[2];
};

struct Kernel::State {
  std::shared_ptr<Shared> shared;  // of this kernel alone unless it came from all()
  const Function* function = nullptr;
  bool together = false;  // compiled with the other kernels of the module
  std::uint64_t id = 0;
  std::vector<ArrayUse> uses;
  bool sees_blocks = false, is_adjoint = false;
  Lazily<BlockProgram> program;
  Lazily<Kernel> adjoint;

  State(std::shared_ptr<Shared> module_of_it, const Function& kernel, bool with_others)
      : shared(std::move(module_of_it)), function(&kernel), together(with_others) {
    static std::atomic<std::uint64_t> next{1};
    id = next++;
    uses = array_uses(shared->module, kernel);
    sees_blocks = looks_at_blocks(kernel);
    for (const Function& f : shared->module.functions) sees_blocks |= looks_at_blocks(f);
  }
};

Kernel::Kernel(std::shared_ptr<State> state) : state_(std::move(state)) {}

Kernel Kernel::from_source(std::string_view text, std::string_view name, std::string_view file,
                           const Bindings& bindings) {
  return Kernel(parse_for(name, text, file, bindings), name);
}

Kernel::Kernel(Module module, std::string_view name, const EmitOptions& options) {
  auto shared = std::make_shared<Shared>();
  shared->options = options;
  shared->module = std::move(module);
  const Function& function = shared->module.kernel(name);
  state_ = std::make_shared<State>(std::move(shared), function, false);
}

std::vector<Kernel> Kernel::all(Module module) {
  auto shared = std::make_shared<Shared>();
  shared->module = std::move(module);
  std::vector<Kernel> kernels;
  for (const Function& f : shared->module.kernels)
    kernels.push_back(Kernel(std::make_shared<State>(shared, f, true)));
  return kernels;
}

std::uint64_t Kernel::id() const { return state_->id; }
const Module& Kernel::module() const { return state_->shared->module; }
const Function& Kernel::function() const { return *state_->function; }
const std::vector<ArrayUse>& Kernel::uses() const { return state_->uses; }
bool Kernel::sees_blocks() const { return state_->sees_blocks; }

const BlockProgram& Kernel::program() const {
  return state_->program.get([&] { return BlockProgram(module(), function()); });
}

const Kernel& Kernel::adjoint() const {
  return state_->adjoint.get([&] {
    if (!function().enable_backward)
      throw KernelError(module().source.get(), function().place,
                        "kernel '" + function().name + "' was declared with enable_backward=False");
    Kernel made(kernel::adjoint(module(), function()));
    made.state_->is_adjoint = true;
    return made;
  });
}

bool Kernel::is_adjoint() const { return state_->is_adjoint; }

const std::string& Kernel::cuda_source(int block_dim) const {
  EmitOptions options = state_->shared->options;
  options.block_dim = block_dim <= 256 ? 256 : 1024;
  return state_->shared->cuda_sources[block_dim <= 256 ? 0 : 1].get([&] {
    return state_->together ? emit_cuda(module(), options) : emit_cuda(module(), function(), options);
  });
}

}  // namespace ferrite::kernel
