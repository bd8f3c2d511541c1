// Sequential, and the layers without parameters: Activate, Flatten, Apply, Dropout.
#pragma once

#include <functional>
#include <memory>

#include "ferrite/nn/init.hpp"
#include "ferrite/nn/layer_error.hpp"
#include "ferrite/nn/module.hpp"
#include "ferrite/ops/dropout.hpp"
#include "ferrite/ops/linear.hpp"

namespace ferrite::nn {

/// An activation as a layer.
template <class B>
class Activate final : public Layer<B> {
 public:
  explicit Activate(Activation activation) : activation_(activation) {}
  void visit(Visitor<B>&) override {}
  /// # Shapes: x [...] -> the same
  Tensor<B> forward(const Tensor<B>& x) override {
    return activation_ == Activation::none ? x : eval(op::activation_op(activation_), x);
  }

 private:
  Activation activation_;
};

/// Merges all axes but the first.
template <class B>
class Flatten final : public Layer<B> {
 public:
  void visit(Visitor<B>&) override {}
  /// # Shapes: x [N, ...] -> [N, product of the rest]
  Tensor<B> forward(const Tensor<B>& x) override { return flatten(x, 1); }
};

/// Any function of one tensor as a layer.
template <class B>
class Apply final : public Layer<B> {
 public:
  explicit Apply(std::function<Tensor<B>(const Tensor<B>&)> function) : function_(std::move(function)) {}
  void visit(Visitor<B>&) override {}
  Tensor<B> forward(const Tensor<B>& x) override { return function_(x); }

 private:
  std::function<Tensor<B>(const Tensor<B>&)> function_;
};

/// In training, zeroes elements with probability p and scales the others by 1 / (1 - p). It has its own
/// generator, so a mask depends only on the seed and on how often this layer ran.
template <class B>
class Dropout final : public Layer<B> {
 public:
  Dropout(double p, Rng& rng) : p_(p), rng_(fork(rng)) {
    if (!(p >= 0 && p <= 1)) throw ValueError("[Dropout] p " + std::to_string(p) + ": must lie in [0, 1]");
  }
  void visit(Visitor<B>& v) override { v.rng("rng", rng_); }
  /// # Shapes: x [...] -> the same
  Tensor<B> forward(const Tensor<B>& x) override {
    return this->mode() == Mode::training ? dropout(x, p_, rng_) : x;
  }
  /// False if forward gives x itself: in inference, and with p = 0.
  bool is_active() const { return this->mode() == Mode::training && p_ > 0; }

 private:
  double p_;
  Rng rng_;
};

/// Layers of any types, one after another. They are called "0", "1", ... unless they are given names.
///
///     nn::Sequential<B> net;
///     net.add(nn::Linear<B>(backend, {784, 128}, rng)).add(Activation::relu);
///     net.add("head", nn::Linear<B>(backend, {128, 10}, rng));
template <class B>
class Sequential final : public Layer<B> {
 public:
  Sequential() = default;
  Sequential(Sequential&&) = default;
  Sequential& operator=(Sequential&&) = default;

  template <std::derived_from<Layer<B>> L>
  Sequential& add(std::string name, L layer) {
    for (const Entry& e : entries_)
      if (e.name == name) throw ValueError("[Sequential] '" + name + "': there is a layer of this name");
    layer.set_mode(this->mode());
    entries_.push_back({std::move(name), std::make_unique<L>(std::move(layer))});
    return *this;
  }
  template <std::derived_from<Layer<B>> L>
  Sequential& add(L layer) {
    return add(std::to_string(entries_.size()), std::move(layer));
  }
  Sequential& add(Activation activation) { return add(Activate<B>(activation)); }

  std::size_t size() const { return entries_.size(); }
  /// Throws ValueError if there are fewer layers.
  Layer<B>& operator[](std::size_t i) {
    if (i >= entries_.size())
      throw ValueError("[Sequential] layer " + std::to_string(i) + ": there are " +
                       std::to_string(entries_.size()));
    return *entries_[i].layer;
  }

  void visit(Visitor<B>& v) override {
    for (Entry& e : entries_) v.child(e.name, *e.layer);
  }
  /// # Shapes: the input of the first layer -> the output of the last one. An error of a layer names the
  /// layer and its input.
  Tensor<B> forward(const Tensor<B>& x) override {
    Tensor<B> y = x;
    for (Entry& e : entries_) {
      try {
        y = e.layer->forward(y);
      } catch (const Error&) {
        detail::rethrow_from_layer(e.name, y.meta());
      }
    }
    return y;
  }

 private:
  struct Entry {
    std::string name;
    std::unique_ptr<Layer<B>> layer;
  };
  std::vector<Entry> entries_;
};

}  // namespace ferrite::nn
