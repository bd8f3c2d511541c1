// Muon (Jordan et al., 2024): the step of a matrix is its momentum with all singular values made equal.
#pragma once

#include "ferrite/ops/cat.hpp"
#include "ferrite/optim/optimizer.hpp"

namespace ferrite::optim {

/// The nearest semi-orthogonal matrices, roughly: the singular vectors of x, with singular values between
/// about 0.65 and 1.2 unless they are tiny beside the others. By iterations of Newton and Schulz, which are
/// products alone; zeros stay zeros. Computed in the dtype of x. # Shapes: x [n, rows, columns] -> the same
template <class B>
Tensor<B> orthogonalized(const Tensor<B>& x, int iterations = 5) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;  // steepest at 0, by Jordan
  const bool is_tall = x.size(1) > x.size(2);            // the smaller square is cheaper
  const DType wide = wide_dtype(x.dtype());
  const Tensor<B> length = sqrt(sum(square(cast(x, wide)), {1, 2}, KeepDim::yes));
  Tensor<B> y = cast(cast(x, wide) / maximum(length, 1e-7), x.dtype());
  if (is_tall) y = transpose(y, 1, 2);
  for (int i = 0; i < iterations; ++i) {
    const Tensor<B> squares = matmul(y, transpose(y, 1, 2));
    y = y * a + matmul(squares * b + matmul(squares, squares) * c, y);
  }
  return is_tall ? transpose(y, 1, 2) : y;
}

/// Matrices: v = momentum v + g;  p -= lr (s orthogonalized(u) + decay p), where u is v, or with Nesterov
/// g + momentum v, and s is as MuonScale says. Momenta are f32, f64 for f64 parameters. All other parameters
/// are AdamW's.
///
///     optim::Muon<B> optimizer(model.parameters(),
///                              optim::MuonConfig{}.with_lr(1e-3).with_matrices(optim::under("blocks")));
///
/// Matrices of the same shape are orthogonalised together, in one product after the other. It cannot be
/// sharded, since shards cut matrices.
template <class B>
class Muon final : public Optimizer<B> {
 public:
  explicit Muon(std::vector<nn::NamedParameter<B>> parameters, MuonConfig config = {})
      : Optimizer<B>("muon", std::move(parameters), (config.check(), config),
                     {{"momentum", matrices(config, true)},
                      {"exp_avg", matrices(config, false)},
                      {"exp_avg_sq", matrices(config, false)}},
                     Memory::kept),
        config_(std::move(config)) {}
  std::string_view name() const override { return "muon"; }

 private:
  using Kernels = typename Optimizer<B>::Kernels;

  bool writes_copies() const override { return true; }
  /// Picks the matrices, or all others.
  static Selector matrices(const MuonConfig& config, bool picked) {
    return [selects = config.matrices, picked](std::string_view name, const Shape& shape) {
      return (shape.rank() == 2 && (!selects || selects(name, shape))) == picked;
    };
  }
  /// The backend below mixed precision, which would round the products.
  static auto& exact(Kernels& kernels) {
    if constexpr (requires { kernels.lowered_dtype(); })
      return kernels.inner();
    else
      return kernels;
  }

  void apply(Kernels& kernels, const Update& u, Ins in, Outs out) override {
    if (u.slots & 1) return move_matrices(kernels, u, in, out);
    const op::Adam op{u.lr * config_.adam_lr_scale, config_.beta1, config_.beta2, config_.eps, u.weight_decay,
                      /*decoupled=*/true,           u.step,        u.copies};
    evaluate_in_place(kernels, op, in, out);
  }

  void move_matrices(Kernels& kernels, const Update& u, Ins in, Outs out) {
    const std::size_t n = out.size() / (u.copies ? 3 : 2);
    const Array& clip = in[3 * n];
    std::vector<const Array*> lists;
    for (std::size_t i = 0; i < 3 * n + 1; ++i) lists.push_back(&in[i]);
    const auto run = [&](const op::Sgd& op) {
      evaluate_in_place(kernels, op, Ins(lists.data(), lists.size()), Outs(out.data(), 2 * n));
    };
    run(op::Sgd{0, config_.momentum, false, 0});  // moves the momenta alone

    const std::vector<Array> steps = steps_of(kernels, in, n);
    for (std::size_t i = 0; i < n; ++i) lists[n + i] = &steps[i];
    // The gradients were clipped before. What must change nothing still must not.
    const Tensor<Kernels> factor =
        where(Tensor<Kernels>(kernels, clip) < 0, full(kernels, {}, -1, clip.dtype()), 1);
    lists[3 * n] = &factor.primitive();
    if (in.size() > 3 * n + 1) lists.push_back(&in[3 * n + 1]);
    run(op::Sgd{u.lr, 0, false, u.weight_decay});
    for (std::size_t i = 0; u.copies && i < n; ++i) {
      const Array* master[] = {&in[i]};
      evaluate_in_place(kernels, op::Copy{*u.copies}, Ins(master, 1), Outs(&out[2 * n + i], 1));
    }
  }

  /// What the matrices move along, from their gradients and their new momenta.
  std::vector<Array> steps_of(Kernels& kernels, Ins in, std::size_t n) const {
    auto& backend = exact(kernels);
    using Exact = std::remove_reference_t<decltype(backend)>;
    using Key = std::tuple<std::int64_t, std::int64_t, DType>;
    std::map<Key, std::vector<std::size_t>> alike;
    for (std::size_t i = 0; i < n; ++i)
      alike[{in[i].shape()[0], in[i].shape()[1], in[2 * n + i].dtype()}].push_back(i);

    std::vector<Array> steps(n);
    for (const auto& entry : alike) {
      const std::vector<std::size_t>& members = entry.second;
      const auto [rows, columns, dtype] = entry.first;
      const auto stacked = [&](std::size_t first) {
        std::vector<Tensor<Exact>> list;
        for (const std::size_t i : members) list.push_back(Tensor<Exact>(backend, in[first + i]));
        return stack(list);
      };
      Tensor<Exact> along = stacked(2 * n);
      // Without momentum the step of SGD leaves v as it is, at 0.
      if (config_.nesterov == Nesterov::yes || config_.momentum == 0)
        along = cast(stacked(n), dtype) * Tensor<Exact>(backend, in[3 * n]) + along * config_.momentum;
      const Tensor<Exact> turned =
          orthogonalized(cast(along, config_.dtype.value_or(dtype)), config_.iterations);
      const Tensor<Exact> scaled = contiguous(cast(turned, dtype) * scale_of(rows, columns));
      for (std::size_t k = 0; k < members.size(); ++k)
        steps[members[k]] = select(scaled, 0, static_cast<std::int64_t>(k)).primitive();
    }
    return steps;
  }
  double scale_of(std::int64_t rows, std::int64_t columns) const {
    const auto height = static_cast<double>(rows), width = static_cast<double>(columns);
    return config_.scale == MuonScale::aspect ? std::sqrt(std::max(1.0, height / width))
                                              : 0.2 * std::sqrt(std::max(height, width));
  }

  MuonConfig config_;
};

}  // namespace ferrite::optim
