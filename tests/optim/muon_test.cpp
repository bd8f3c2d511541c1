// Muon against its definition, written plainly in double, and what its steps are like.
#include "ferrite/optim/muon.hpp"

#include "ferrite/decorators/autocast.hpp"
#include "ferrite/nn/linear.hpp"
#include "ferrite/ops/svd.hpp"
#include "ferrite/optim/adam.hpp"
#include "nn/nn_test.hpp"

namespace ferrite::optim {
namespace {

using testing::expect_error;
using testing::expect_values;
using testing::tensor_of;

struct Matrix {
  std::size_t rows, columns;
  std::vector<double> values;
  double& at(std::size_t r, std::size_t c) { return values[r * columns + c]; }
  double at(std::size_t r, std::size_t c) const { return values[r * columns + c]; }
  Shape shape() const { return {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}; }
};
Matrix transposed(const Matrix& x) {
  Matrix y{x.columns, x.rows, std::vector<double>(x.values.size())};
  for (std::size_t r = 0; r < x.rows; ++r)
    for (std::size_t c = 0; c < x.columns; ++c) y.at(c, r) = x.at(r, c);
  return y;
}
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix y{a.rows, b.columns, std::vector<double>(a.rows * b.columns)};
  for (std::size_t r = 0; r < a.rows; ++r)
    for (std::size_t c = 0; c < b.columns; ++c)
      for (std::size_t k = 0; k < a.columns; ++k) y.at(r, c) += a.at(r, k) * b.at(k, c);
  return y;
}
/// a x + b y
Matrix mixed(double a, const Matrix& x, double b, const Matrix& y) {
  Matrix z = x;
  for (std::size_t i = 0; i < z.values.size(); ++i) z.values[i] = a * x.values[i] + b * y.values[i];
  return z;
}
Matrix newton_schulz(const Matrix& given) {
  if (given.rows > given.columns) return transposed(newton_schulz(transposed(given)));
  double squares = 0;
  for (const double v : given.values) squares += v * v;
  Matrix x = mixed(1 / std::max(std::sqrt(squares), 1e-7), given, 0, given);
  for (int i = 0; i < 5; ++i) {
    const Matrix a = product(x, transposed(x));
    x = mixed(3.4445, x, 1, product(mixed(-4.7750, a, 2.0315, product(a, a)), x));
  }
  return x;
}
Matrix drawn(std::size_t rows, std::size_t columns, std::uint64_t seed) {
  Reference host;
  Rng rng(seed);
  Matrix x{rows, columns, {}};
  x.values = randn(host, x.shape(), rng, 0, 1, DType::f64).to_vector<double>();
  return x;
}

class Muons : public testing::OnBackends {
 protected:
  nn::NamedParameter<B> leaf(std::string name, const Matrix& x, DType dtype = DType::f64) {
    return {name, parameter(tensor_of(backend, x.values, x.shape(), dtype), name)};
  }
  using Given = std::vector<std::pair<nn::NamedParameter<B>, Matrix>>;
  /// Gradients of our choice: the derivative of sum(p g) in p is g.
  Gradients<typename B::Inner> gradients(const Given& given) {
    Gradients<typename B::Inner> grads;
    for (const auto& [p, g] : given)
      backward(sum(p.tensor * tensor_of(backend, g.values, p.tensor.shape(), p.tensor.dtype())), grads);
    return grads;
  }
};
INSTANTIATE_TEST_SUITE_P(Names, Muons, ::testing::Values("reference", "cpu"), testing::name_of);

TEST_P(Muons, FollowsItsDefinition) {
  for (const auto nesterov : {Nesterov::no, Nesterov::yes}) {
    for (const auto scale : {MuonScale::aspect, MuonScale::adam}) {
      // Two of one shape, a tall one, a wide one.
      std::vector<Matrix> expected = {drawn(4, 6, 1), drawn(4, 6, 2), drawn(7, 3, 3), drawn(2, 9, 4)};
      std::vector<nn::NamedParameter<B>> leaves;
      std::vector<Matrix> momenta;
      for (const Matrix& x : expected) {
        leaves.push_back(leaf("p" + std::to_string(leaves.size()), x));
        momenta.push_back(mixed(0, x, 0, x));
      }
      Muon<B> muon(leaves, MuonConfig{}
                               .with_lr(0.1)
                               .with_weight_decay(0.5)
                               .with_momentum(0.8)
                               .with_nesterov(nesterov)
                               .with_scale(scale));
      for (std::uint64_t step = 0; step < 3; ++step) {
        Given given;
        for (std::size_t i = 0; i < 4; ++i)
          given.emplace_back(leaves[i], drawn(expected[i].rows, expected[i].columns, 10 + 7 * step + i));
        muon.step(gradients(given));
        for (std::size_t i = 0; i < 4; ++i) {
          const Matrix& g = given[i].second;
          momenta[i] = mixed(0.8, momenta[i], 1, g);
          const Matrix u =
              newton_schulz(nesterov == Nesterov::yes ? mixed(1, g, 0.8, momenta[i]) : momenta[i]);
          const auto rows = static_cast<double>(g.rows), columns = static_cast<double>(g.columns);
          const double s = scale == MuonScale::aspect ? std::sqrt(std::max(1.0, rows / columns))
                                                      : 0.2 * std::sqrt(std::max(rows, columns));
          expected[i] = mixed(1 - 0.1 * 0.5, expected[i], -0.1 * s, u);
          expect_values(leaves[i].tensor, expected[i].values, 1e-12);
        }
      }
    }
  }
}

TEST_P(Muons, OtherParametersAreAdamWs) {
  const Matrix bias = drawn(1, 5, 1), table = drawn(3, 5, 2), weight = drawn(5, 5, 3);
  const auto flat = [&](const char* name) {
    return nn::NamedParameter<B>{name, parameter(tensor_of(backend, bias.values, {5}), name)};
  };
  const auto a = flat("bias"), b = flat("bias");
  const auto c = leaf("table", table), d = leaf("table", table), w = leaf("blocks.0.weight", weight);
  Muon<B> muon({a, c, w}, MuonConfig{}
                              .with_lr(0.1)
                              .with_adam_lr_scale(0.2)
                              .with_betas(0.8, 0.9)
                              .with_weight_decay(0.3)
                              .with_matrices(under("blocks")));
  AdamW<B> adamw({b, d}, AdamWConfig{}.with_lr(0.02).with_betas(0.8, 0.9).with_weight_decay(0.3));
  for (std::uint64_t step = 0; step < 3; ++step) {
    const Matrix g = drawn(1, 5, 10 + step), h = drawn(3, 5, 20 + step);
    muon.step(gradients({{a, g}, {c, h}, {w, weight}}));
    adamw.step(gradients({{b, g}, {d, h}}));
  }
  expect_values(a.tensor, b.tensor.to_vector<double>(), 1e-14);
  expect_values(c.tensor, d.tensor.to_vector<double>(), 1e-14);
  const NamedTensors state = muon.state();
  EXPECT_EQ(state.size(), 7u);  // lr, steps, two moments each, a momentum
  EXPECT_TRUE(state.contains("blocks.0.weight.momentum"));
  EXPECT_TRUE(state.contains("table.exp_avg_sq"));
}

TEST_P(Muons, AStepHasSingularValuesNearOne) {
  for (const auto& [rows, columns] : {std::pair{8, 8}, std::pair{24, 6}, std::pair{5, 40}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      const Matrix x = drawn(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns), 7);
      const auto stack = tensor_of(backend, x.values, {1, rows, columns}, dtype);
      const auto values =
          svd(select(cast(orthogonalized(stack), DType::f32), 0, 0)).s.template to_vector<double>();
      ASSERT_EQ(values.size(), static_cast<std::size_t>(std::min(rows, columns)));
      for (const double v : values) {
        EXPECT_GT(v, 0.6);
        EXPECT_LT(v, 1.25);
      }
    }
  }
}

TEST_P(Muons, PoorMatricesGiveFiniteSteps) {
  Matrix line = drawn(6, 4, 1);
  for (std::size_t r = 0; r < 6; ++r)
    for (std::size_t c = 0; c < 4; ++c) line.at(r, c) = static_cast<double>(r + 1) * (c == 2 ? -1 : 1);
  const Matrix none = mixed(0, line, 0, line), faint = mixed(1e-30, line, 0, line),
               huge = mixed(1e30, line, 0, line), start = drawn(6, 4, 2);
  for (const Matrix& g : {line, none, faint, huge}) {
    const auto p = leaf("p", start, DType::f32), q = leaf("q", transposed(start), DType::f32);
    Muon<B> muon({p, q}, MuonConfig{}.with_lr(0.1).with_weight_decay(0).with_scale(MuonScale::adam));
    for (int step = 0; step < 3; ++step) muon.step(gradients({{p, g}, {q, transposed(g)}}));
    EXPECT_TRUE(all(isfinite(p.tensor)).item() != 0);
    // A matrix on its side moves as it does upright.
    expect_values(transpose(q.tensor, 0, 1), p.tensor.to_vector<double>(), 1e-5);
    if (g.values == none.values) expect_values(p.tensor, start.values, 1e-6);
  }
  // A step along one line has one singular value.
  const auto p = leaf("p", none, DType::f32);
  Muon<B> muon({p}, MuonConfig{}.with_lr(1).with_weight_decay(0));
  muon.step(gradients({{p, line}}));
  const auto values = svd(p.tensor.detach()).s.template to_vector<double>();
  EXPECT_NEAR(values[0] / std::sqrt(1.5), 1, 0.35);
  EXPECT_LT(values[1], 1e-3);
}

TEST_P(Muons, ClippingAndDivisorsComeFirst) {
  const Matrix start = drawn(3, 3, 1), g = drawn(3, 3, 2);
  const auto p = leaf("p", start), q = leaf("q", start);
  const auto config = MuonConfig{}.with_lr(0.1);
  Muon<B> clipped({p}, config.with_clip_norm(0.01)), plain({q}, config);
  clipped.step(gradients({{p, g}}), 2);
  plain.step(gradients({{q, g}}));
  EXPECT_GT(clipped.gradient_norm(), 0.1);
  expect_values(p.tensor, q.tensor.to_vector<double>(), 1e-10);  // only the direction matters
  const NamedTensors state = clipped.state();
  double length = 0;
  for (const double v : state.at("p.momentum").as<double>()) length += v * v;
  EXPECT_NEAR(std::sqrt(length), 0.01, 1e-6);
}

TEST_P(Muons, WithoutMomentumOnlyTheGradientCounts) {
  const Matrix start = drawn(3, 4, 1), g = drawn(3, 4, 2);
  const auto p = leaf("p", start);
  Muon<B> muon({p},
               MuonConfig{}.with_lr(0.1).with_weight_decay(0).with_momentum(0).with_nesterov(Nesterov::no));
  muon.step(gradients({{p, drawn(3, 4, 3)}}));
  const Matrix before{3, 4, p.tensor.to_vector<double>()};
  muon.step(gradients({{p, g}}));
  expect_values(p.tensor, mixed(1, before, -0.1, newton_schulz(g)).values, 1e-12);
}

TEST_P(Muons, ParametersWithoutGradientStay) {
  const Matrix start = drawn(3, 3, 1), g = drawn(3, 3, 2);
  const auto p = leaf("p", start), q = leaf("q", start);
  Muon<B> muon({p, q}, MuonConfig{}.with_lr(0.1));
  muon.step(gradients({{p, g}}));
  expect_values(q.tensor, start.values, 1e-15);
  muon.step(gradients({{p, g}, {q, g}}));
  EXPECT_GT(max(abs(q.tensor - tensor_of(backend, start.values, {3, 3}))).item(), 0.01);
}

TEST_P(Muons, AStateContinuesBitForBitAndTheScheduleMayBeOnTheDevice) {
  const auto run = [&](int interrupt_at, bool on_device) {
    const auto p = leaf("p", drawn(4, 6, 1), DType::f32);
    const nn::NamedParameter<B> bias{"b", parameter(ones(backend, {3}), "b")};
    const auto make = [&] { return std::make_unique<Muon<B>>(std::vector{p, bias}, MuonConfig{}); };
    auto muon = make();
    for (int t = 1; t <= 5; ++t) {
      if (t == interrupt_at) {
        const NamedTensors state = muon->state();
        muon = make();
        muon->load_state(state);
      }
      if (t == 3 && on_device) muon->keep_schedule_on_device();
      muon->set_learning_rate(0.1 / t);
      const auto seed = static_cast<std::uint64_t>(t);
      muon->step(gradients({{p, drawn(4, 6, seed)}, {bias, drawn(1, 3, seed)}}));
    }
    auto values = p.tensor.to_vector<double>();
    for (const double v : bias.tensor.template to_vector<double>()) values.push_back(v);
    return values;
  };
  const auto whole = run(0, false);
  EXPECT_EQ(run(4, false), whole);
  const auto device = run(4, true);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(device[i], whole[i], 1e-6);
}

TEST_P(Muons, AnOverflowOfScaledLossesChangesNothing) {
  const Matrix start = drawn(3, 4, 1), g = drawn(3, 4, 2);
  Matrix bad = g;
  bad.values[5] = std::numeric_limits<double>::infinity();
  const auto p = leaf("p", start, DType::f32);
  Muon<B> muon({p}, MuonConfig{}.with_lr(0.1));
  muon.scale_losses(LossScalerConfig{}.with_initial(2));
  muon.step(gradients({{p, g}}));
  const auto before = p.tensor.to_vector<double>();
  const NamedTensors state = muon.state();
  muon.step(gradients({{p, bad}}));
  EXPECT_EQ(p.tensor.to_vector<double>(), before);
  testing::expect_equal(muon.state().at("p.momentum"), state.at("p.momentum"));
  EXPECT_EQ(muon.loss_scale(), 1);
}

TEST_P(Muons, SettingsOutsideTheirDomainAreRefused) {
  const auto p = leaf("p", drawn(2, 2, 1));
  const auto refused = [&](const MuonConfig& config, std::initializer_list<std::string_view> parts) {
    expect_error<ValueError>([&] { Muon<B>({p}, config); }, parts);
  };
  refused(MuonConfig{}.with_lr(-1), {"[muon] learning rate -1"});
  refused(MuonConfig{}.with_momentum(1), {"[muon] momentum 1"});
  refused(MuonConfig{}.with_momentum(0), {"[muon] nesterov"});
  refused(MuonConfig{}.with_iterations(0), {"[muon] 0 iterations"});
  refused(MuonConfig{}.with_dtype(DType::i32), {"[muon] dtype i32"});
  refused(MuonConfig{}.with_adam_lr_scale(-1), {"AdamW's learning rate"});
  refused(MuonConfig{}.with_betas(2, 0.9), {"[muon] beta1 2"});
}

TEST(Muon, WritesTheCopiesOfMixedPrecisionAndComputesInSinglePrecision) {
  using B = Autodiff<Autocast<Cpu>>;
  B backend;
  Autodiff<Cpu> plain;
  Rng rng(1), same(1);
  nn::Linear<B> layer(backend, {6, 8}, rng);
  nn::Linear<Autodiff<Cpu>> twin(plain, {6, 8}, same);
  const auto config = MuonConfig{}.with_lr(0.1).with_nesterov(Nesterov::no);
  Muon<B> muon(layer.parameters(), config);
  Muon<Autodiff<Cpu>> exact(twin.parameters(), config);
  for (int step = 0; step < 3; ++step) {
    // The inputs are powers of two, and the gradient of a sum is exact in 16 bits too.
    muon.step(sum(layer.forward(full(backend, {1, 6}, 0.5f))).backward());
    exact.step(sum(twin.forward(full(plain, {1, 6}, 0.5f))).backward());
    for (const auto& p : layer.parameters()) {
      const Array master = p.tensor.primitive().value, copy = backend.inner().copy_of(master);
      ASSERT_TRUE(copy.defined());
      const Tensor<Autocast<Cpu>> want(backend.inner(), master), got(backend.inner(), copy);
      EXPECT_EQ(got.to_vector<float>(), cast(want, DType::bf16).to_vector<float>());
    }
    EXPECT_EQ(layer.weight.to_vector(), twin.weight.to_vector());
  }
}

}  // namespace
}  // namespace ferrite::optim
