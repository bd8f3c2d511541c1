// What tests of attention on the GPU share.
#pragma once

#include "backend_cuda/contraction_support.hpp"
#include "ferrite/ops/cross_attention.hpp"
#include "ferrite/ops/self_attention.hpp"

namespace ferrite::testing {

struct CudaAttention : CudaContraction {
  /// The keys of a query that sees none of them get weight 0 everywhere, forward and backward.
  void expect_attention(const Gpu& q, const Gpu& k, const Gpu& v, bool causal, const Gpu& mask = {},
                        std::int64_t window = 0) {
    const op::Attention op{causal, 0.3, window};
    ASSERT_TRUE(mask.defined() || accepts(*cuda, op, std::vector{q.meta(), k.meta(), v.meta()}));
    const Truth tq = truth(q), tk = truth(k), tv = truth(v);
    const Truth tm = mask.defined() ? (mask.dtype() == DType::bool_ ? to(host, mask) : truth(mask)) : Truth();
    const auto got = mask.defined() ? eval_all(op, q, k, v, mask) : eval_all(op, q, k, v);
    const auto want = mask.defined() ? eval_all(op, tq, tk, tv, tm) : eval_all(op, tq, tk, tv);
    const double tolerance = 2 * tolerance_of(q.dtype(), q.size(3) + k.size(2));
    expect_near(got[0], want[0], tolerance);
    expect_near(got[1], want[1], tolerance_of(DType::f32, q.size(3) + k.size(2)));

    const op::AttentionBackward backward{causal, 0.3, window};
    const Gpu grad = random(got[0].shape(), q.dtype());
    const auto backward_of = [&](const auto& g, const auto& a, const auto& b, const auto& c, const auto& o,
                                 const auto& lse, const auto& m) {
      return m.defined() ? eval_all(backward, g, a, b, c, o, lse, m) : eval_all(backward, g, a, b, c, o, lse);
    };
    const auto truths = backward_of(truth(grad), tq, tk, tv, truth(got[0]), truth(got[1]), tm);
    const auto results = backward_of(grad, q, k, v, got[0], got[1], mask);
    for (std::size_t i = 0; i < 3; ++i) {
      SCOPED_TRACE("gradient " + std::to_string(i));
      expect_near(results[i], truths[i], 2 * tolerance, 0.1);  // equal keys leave nothing but rounding
    }
  }
};

}  // namespace ferrite::testing
