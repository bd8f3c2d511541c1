#include "ferrite/ops/optimizer_steps.hpp"
#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

const Shape optimizer_steps_shapes[] = {{3}, {5, 7}, {40, 1000}, {1, 1}, {0, 4}, {33, 65}};

/// One array of every shape; `wide` lists hold the state, f64 for f64 parameters and f32 for the others.
std::vector<Array> list_of(DType dtype, std::uint64_t seed, bool wide, double low = -2, double high = 2) {
  std::vector<Array> list;
  for (const Shape& shape : optimizer_steps_shapes)
    list.push_back(uniform(shape, wide && dtype != DType::f64 ? DType::f32 : dtype, seed++, low, high));
  return list;
}

std::vector<Array> joined(std::initializer_list<std::vector<Array>> lists, const Array& clip) {
  std::vector<Array> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  all.push_back(clip);
  return all;
}

Lists adam_of(const op::Adam& op, const Lists& in) {
  const std::size_t count = (in.size() - 1) / 4;
  Lists out(3 * count);
  const double step = static_cast<double>(op.step);
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < in[k].size(); ++i) {
      const double p = in[k][i];
      const double g = in[count + k][i] * in.back()[0] + (op.decoupled ? 0 : op.weight_decay * p);
      const double m = op.beta1 * in[2 * count + k][i] + (1 - op.beta1) * g;
      const double v = op.beta2 * in[3 * count + k][i] + (1 - op.beta2) * g * g;
      const double update =
          m / (1 - std::pow(op.beta1, step)) / (std::sqrt(v / (1 - std::pow(op.beta2, step))) + op.eps);
      out[k].push_back(p * (op.decoupled ? 1 - op.lr * op.weight_decay : 1) - op.lr * update);
      out[count + k].push_back(m);
      out[2 * count + k].push_back(v);
    }
  }
  return out;
}

Lists sgd_of(const op::Sgd& op, const Lists& in) {
  const std::size_t count = (in.size() - 1) / 3;
  Lists out(2 * count);
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < in[k].size(); ++i) {
      const double p = in[k][i], g = in[count + k][i] * in.back()[0] + op.weight_decay * p;
      const double v = op.momentum * in[2 * count + k][i] + g;
      const double step = op.momentum == 0 ? g : op.nesterov ? g + op.momentum * v : v;
      out[k].push_back(p - op.lr * step);
      out[count + k].push_back(op.momentum == 0 ? in[2 * count + k][i] : v);
    }
  }
  return out;
}

TEST(CpuOptimizer, AdamMatchesTheFormulasInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const bool decoupled : {true, false}) {
      SCOPED_TRACE(to_string(dtype));
      const op::Adam op{0.1, 0.9, 0.99, 1e-6, 0.2, decoupled, 3};
      const auto in = joined({list_of(dtype, 1, false), list_of(dtype, 11, false), list_of(dtype, 21, true),
                              list_of(dtype, 31, true, 0.01, 2)},
                             array_of({}, DType::f32, {0.5}));
      check(op, in, [&](const Lists& lists) { return adam_of(op, lists); });
    }
  }
}

TEST(CpuOptimizer, AdamRoundsItsParametersIntoCopies) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const op::Adam op{0.1, 0.9, 0.99, 1e-6, 0.2, true, 3, dtype};
    const auto in = joined({list_of(DType::f32, 1, false), list_of(DType::f32, 11, false),
                            list_of(DType::f32, 21, true), list_of(DType::f32, 31, true, 0.01, 2)},
                           array_of({}, DType::f32, {0.5}));
    check(op, in, [&](const Lists& lists) {
      Lists out = adam_of(op, lists);
      for (std::size_t k = 0; k < std::size(optimizer_steps_shapes); ++k) out.push_back(out[k]);
      return out;
    });
  }
  const Meta narrow{{3}, DType::bf16}, wide{{3}, DType::f32}, clip{{}, DType::f32};
  op::Adam op;
  op.copies = DType::bf16;
  EXPECT_THROW(op.infer(std::vector{narrow, narrow, wide, wide, clip}), DTypeError);
  op.copies = DType::f32;
  EXPECT_THROW(op.infer(std::vector{wide, wide, wide, wide, clip}), DTypeError);
}

TEST(CpuOptimizer, SgdMatchesTheFormulasInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const op::Sgd& op :
         {op::Sgd{0.1, 0, false, 0.2}, op::Sgd{0.1, 0.9, false, 0}, op::Sgd{0.1, 0.9, true, 0.2}}) {
      SCOPED_TRACE(to_string(dtype));
      const auto in = joined({list_of(dtype, 1, false), list_of(dtype, 11, false), list_of(dtype, 21, true)},
                             array_of({}, DType::f32, {2}));
      check(op, in, [&](const Lists& lists) { return sgd_of(op, lists); });
    }
  }
}

TEST(CpuOptimizer, StepsWorkInPlaceWhateverTheLayout) {
  for (const Storage storage : all_storages) {
    const op::Adam adam{0.1, 0.9, 0.99, 1e-6, 0.2, true, 1};
    const op::Sgd sgd{0.1, 0.5, true, 0.1}, plain{0.1, 0, false, 0};
    const auto test = [&](const auto& op, std::size_t lists, const auto& oracle) {
      std::vector<Array> in;
      for (std::size_t k = 0; k < lists; ++k)
        in.push_back(relaid(uniform({30, 40}, DType::f32, k + 1, 0.1, 2), storage));
      in.push_back(array_of({}, DType::f32, {1}));
      const Lists want = oracle(op, lists_of(in));
      std::vector<Array> out{in[0]};
      for (std::size_t k = 2; k < lists; ++k) out.push_back(in[k]);
      run_into(op, in, out);
      expect_near(out, want, {}, "in place");
    };
    test(adam, 4, adam_of);
    test(sgd, 3, sgd_of);
    test(plain, 3, sgd_of);
  }
}

TEST(CpuOptimizer, GlobalNormMatchesTheSumOfSquares) {
  for (const DType dtype : float_dtypes) {
    check(op::GlobalNorm{}, list_of(dtype, 1, false),
          [&](const Lists& in) {
            double total = 0;
            for (const Values& list : in)
              for (const double v : list) total += v * v;
            return Lists{{std::sqrt(total)}};
          },
          {30, 1});
  }
}

TEST(CpuOptimizer, GlobalNormOfVeryLargeAndVerySmallNumbers) {
  EXPECT_FLOAT_EQ(3e25f, static_cast<float>(values_of(run_list(
                             op::GlobalNorm{}, {array_of({9}, DType::f32, Values(9, 1e25))})[0])[0]));
  EXPECT_FLOAT_EQ(3e-30f, static_cast<float>(values_of(run_list(
                              op::GlobalNorm{}, {array_of({9}, DType::f32, Values(9, 1e-30))})[0])[0]));
  EXPECT_EQ(0, values_of(run_list(op::GlobalNorm{}, {array_of({9}, DType::f32, Values(9, 0.0))})[0])[0]);
  EXPECT_TRUE(std::isnan(values_of(run_list(op::GlobalNorm{}, {array_of({2}, DType::f32, {1, NAN})})[0])[0]));
}

}  // namespace
}  // namespace ferrite::testing
