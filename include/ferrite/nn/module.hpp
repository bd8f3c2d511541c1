// Module: a part of a model with parameters. A module lists its parts in `visit`; names, counts, states and
// modes all come from that list.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/nn/state.hpp"
#include "ferrite/nn/visit_path.hpp"
#include "ferrite/tensor/host.hpp"

namespace ferrite::nn {

/// training: dropout drops and batch norm uses the batch's statistics. inference: neither.
enum class Mode : std::uint8_t { training, inference };

template <class B>
class Module;
template <class B>
class ModeScope;

/// Sees the parts of one module tree, each under its full name ("block0.attn.qkv.weight"). Two parts with the
/// same name are a ValueError that names them.
template <class B>
class Visitor {
 public:
  virtual ~Visitor() = default;

  /// A tensor that an optimiser changes. Undefined tensors (a layer without bias) are skipped.
  void parameter(std::string_view name, Tensor<B>& tensor) {
    if (tensor.defined()) on_parameter(path_.claim(name), tensor);
  }
  /// A tensor that a state holds beside the parameters (running statistics).
  void buffer(std::string_view name, Tensor<B>& tensor) {
    if (tensor.defined()) on_buffer(path_.claim(name), tensor);
  }
  /// A generator the module draws from; checkpoints store its position.
  void rng(std::string_view name, Rng& generator) { on_rng(path_.claim(name), generator); }
  void child(std::string_view name, Module<B>& part) {
    const VisitPath::Scope scope(path_, name);
    on_module(part);
    part.visit(*this);
  }

 protected:
  virtual void on_parameter(const std::string&, Tensor<B>&) {}
  virtual void on_buffer(const std::string&, Tensor<B>&) {}
  virtual void on_rng(const std::string&, Rng&) {}
  virtual void on_module(Module<B>&) {}

 private:
  VisitPath path_;
};

/// What an optimiser takes: a parameter and its full name.
template <class B>
struct NamedParameter {
  std::string name;
  Tensor<B> tensor;
};

/// Whether gradients are collected for a tensor. A frozen parameter has none.
template <class B>
bool is_trainable(const Tensor<B>& tensor) {
  if constexpr (is_autodiff<B>)
    return tensor.primitive().node && tensor.primitive().node->is_leaf();
  else
    return false;
}

/// A module is a struct of layers and parameters that lists them:
///
///     template <class B>
///     struct Scale final : nn::Layer<B> {
///       Tensor<B> factor;
///       Scale(B& backend, std::int64_t dim) : factor(parameter(ones(backend, {dim}), "factor")) {}
///       void visit(nn::Visitor<B>& v) override { v.parameter("factor", factor); }
///       Tensor<B> forward(const Tensor<B>& x) override { return x * factor; }
///     };
///
/// Parameters keep their buffers for life: optimisers and load_state write into them, so everyone who holds
/// the tensor sees the new values. A copy of a module shares its parameters.
template <class B>
class Module {
 public:
  virtual ~Module() = default;

  /// Lists every parameter, buffer, generator and child, always in the same order. A part that is not listed
  /// is neither trained nor saved. If the first gradients of an optimiser reach such a parameter, the
  /// optimiser names it.
  virtual void visit(Visitor<B>& visitor) = 0;

  /// All parameters under their full names, which their leaves take on. A tensor that is listed twice (tied
  /// weights) appears once, under its first name; likewise in states. Two leaves made from one tensor are a
  /// ValueError.
  std::vector<NamedParameter<B>> parameters() {
    Collector c;
    c.refuses_two_leaves = true;
    visit(c);
    for (const auto& [name, tensor] : c.parameters) rename_parameter(tensor, name);
    return std::move(c.parameters);
  }
  std::int64_t parameter_count() {
    Collector c;
    visit(c);
    std::int64_t count = 0;
    for (const auto& p : c.parameters) count += p.tensor.numel();
    return count;
  }

  /// Freezes all parameters of this module and its children: they keep their values and names, no gradient is
  /// computed for them, and optimisers made from now on skip them. A tied weight stays trainable where
  /// another module lists it. No effect on backends that do not differentiate.
  void freeze() {
    struct Freezer final : Visitor<B> {
      void on_parameter(const std::string&, Tensor<B>& t) override { t = t.detach(); }
    } freezer;
    visit(freezer);
  }
  /// Undoes freeze(). An optimiser made while they were frozen does not know them: make a new one. A tied
  /// weight is to be unfrozen through a module that lists both places, or they get two leaves.
  void unfreeze() {
    struct Thawer final : Visitor<B> {
      std::map<detail::Place, Tensor<B>> leaves;  // one for all modules that list a tied weight
      void on_parameter(const std::string& name, Tensor<B>& t) override {
        Tensor<B>& leaf = leaves[detail::place_of(t)];
        if (!leaf.defined()) leaf = is_trainable(t) ? t : parameter(t, name);
        t = leaf;
      }
    } thawer;
    visit(thawer);
  }

  /// Parameters and buffers, copied to the host.
  NamedTensors state() {
    NamedTensors result;
    for (const auto& [name, tensor] : stored()) result.emplace(name, to_host(tensor));
    return result;
  }
  /// Loads a state of the same names and shapes (see check_state); nothing changes if it does not fit.
  void load_state(const NamedTensors& state) {
    const auto tensors = stored();
    std::vector<StateEntry> needed;
    for (const auto& [name, tensor] : tensors) needed.push_back({name, tensor.meta()});
    check_state("load_state", needed, state);
    for (const auto& [name, tensor] : tensors) assign(tensor, state.find(name)->second);
  }

  /// Also applies to all modules below this one.
  void set_mode(Mode mode) {
    each([mode](Module& m) { m.mode_ = mode; });
  }
  Mode mode() const { return mode_; }

 private:
  friend class ModeScope<B>;

  /// This module and all below it, always in the same order.
  void each(std::function<void(Module&)> use) {
    struct Modules final : Visitor<B> {
      std::function<void(Module&)> use;
      void on_module(Module& m) override { use(m); }
    } modules;
    modules.use = std::move(use);
    modules.use(*this);
    visit(modules);
  }
  static bool is_same_leaf(const Tensor<B>& a, const Tensor<B>& b) {
    if constexpr (is_autodiff<B>)
      return a.primitive().node == b.primitive().node;
    else
      return true;
  }
  struct Collector final : Visitor<B> {
    std::vector<NamedParameter<B>> parameters, buffers;
    std::set<detail::Place> seen;
    bool refuses_two_leaves = false;  // states have one tensor for both
    void on_parameter(const std::string& name, Tensor<B>& t) override {
      if (add(parameters, name, t) || !refuses_two_leaves || !is_trainable(t)) return;
      for (const auto& p : parameters)
        if (detail::place_of(p.tensor) == detail::place_of(t) && is_trainable(p.tensor) &&
            !is_same_leaf(p.tensor, t))
          detail::throw_two_leaves("parameters", p.name, name);
    }
    void on_buffer(const std::string& name, Tensor<B>& t) override { add(buffers, name, t); }
    /// False for a tensor that is listed already.
    bool add(std::vector<NamedParameter<B>>& list, const std::string& name, const Tensor<B>& t) {
      if (t.numel() > 0 && !seen.insert(detail::place_of(t)).second) return false;
      list.push_back({name, t});
      return true;
    }
  };
  std::vector<NamedParameter<B>> stored() {
    Collector c;
    visit(c);
    for (auto& buffer : c.buffers) c.parameters.push_back(std::move(buffer));
    return std::move(c.parameters);
  }

  Mode mode_ = Mode::training;
};

/// A module from one tensor to one tensor: the layers that Sequential holds.
template <class B>
class Layer : public Module<B> {
 public:
  virtual Tensor<B> forward(const Tensor<B>& x) = 0;
};

/// Puts a module and all below it into a mode. When the scope ends, each has its own mode again; those that
/// were added meanwhile keep theirs.
template <class B>
class ModeScope {
 public:
  ModeScope(Module<B>& module, Mode mode) : module_(module) {
    module_.each([&](Module<B>& m) { before_.emplace(&m, std::exchange(m.mode_, mode)); });
  }
  ~ModeScope() {
    module_.each([this](Module<B>& m) {
      if (const auto found = before_.find(&m); found != before_.end()) m.mode_ = found->second;
    });
  }
  ModeScope(const ModeScope&) = delete;
  ModeScope& operator=(const ModeScope&) = delete;

 private:
  Module<B>& module_;
  std::map<const Module<B>*, Mode> before_;  // one that is listed twice has the mode of its first visit
};

}  // namespace ferrite::nn
