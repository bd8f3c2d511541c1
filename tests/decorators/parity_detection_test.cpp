// No error of a thousandth hides behind the tolerance: a backend that gets one op wrong by 0.1 % is found.
#include <gtest/gtest.h>

#include <cmath>

#include "decorators/random_calls.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {
namespace {

/// Cpu, but the first output of one op is wrong: all of it by a factor, or one element by as much of the root
/// mean square.
class Tampered : public Cpu {
 public:
  enum class How { factor, element };
  inline static std::string op;
  inline static How how = How::factor;
  inline static int calls = 0;

  template <class Op>
  requires Runs<Cpu, Op>
  friend void run(Tampered& b, const Op& o, Ins in, Outs out) {
    run(static_cast<Cpu&>(b), o, in, out);
    spoil(Op::type_name, out);
  }
  template <class Op>
  requires RunsAccumulating<Cpu, Op>
  friend void run(Tampered& b, const Op& o, Ins in, Outs out, Accumulate mask) {
    run(static_cast<Cpu&>(b), o, in, out, mask);
    spoil(Op::type_name, out);
  }

 private:
  static void spoil(std::string_view name, Outs out) {
    if (name != op || out.empty() || out[0].dtype() != DType::f32 || !out[0].layout().is_contiguous()) return;
    float* y = out[0].data<float>();
    const std::int64_t n = out[0].shape().numel();
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) squares += static_cast<double>(y[i]) * y[i];
    if (n == 0 || squares == 0) return;
    ++calls;
    if (how == How::element) {
      y[n / 2] += static_cast<float>(1e-3 * std::sqrt(squares / static_cast<double>(n)));
      return;
    }
    for (std::int64_t i = 0; i < n; ++i) y[i] *= 1.001f;
  }
};

using Checked = Parity<Tampered, Reference>;
using CheckedAutodiff = Autodiff<Checked>;

/// How many calls of the op a wrong kernel spoiled, and how many of them Parity named.
std::pair<int, int> found(const std::string& call, const std::string& op, Tampered::How how) {
  ScratchFolder folder;
  Tampered::op = op;
  Tampered::how = how;
  Tampered::calls = 0;
  int named = 0;
  for (const auto& [name, run] : random_calls<CheckedAutodiff>()) {
    if (name != call) continue;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      CheckedAutodiff b(ParityConfig{}.with_throw(false).with_files(0, 0).with_directory(folder / "reports"));
      run_random_call(b, run, {seed, DType::f32, true});
      named += static_cast<int>(b.inner().reports().size());
    }
  }
  Tampered::op.clear();
  return {Tampered::calls, named};
}

TEST(ParityDetection, FindsAnErrorOfAThousandth) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> table{
      {"softmax", {"softmax", "softmax_backward"}},
      {"log_softmax", {"log_softmax", "log_softmax_backward"}},
      {"layer_norm", {"layer_norm", "layer_norm_backward"}},
      {"rms_norm", {"rms_norm", "rms_norm_backward"}},
      {"batch_norm", {"batch_norm", "batch_norm_backward"}},
      {"matmul", {"matmul"}},
      {"linear", {"linear", "matmul"}},
      {"attention", {"attention", "attention_backward"}},
      {"conv2d", {"conv2d", "conv2d_input_grad", "conv2d_weight_grad"}},
      {"max_pool2d", {"max_pool2d", "max_pool2d_backward"}},
      {"avg_pool2d", {"avg_pool2d", "avg_pool2d_backward"}},
      {"dropout", {"dropout"}},
      {"embedding", {"embedding", "embedding_backward"}},
      {"cross_entropy", {"softmax_cross_entropy_with_gradient"}},
      {"losses", {"pointwise_loss", "pointwise_loss_backward"}},
      {"statistics", {"statistic"}},
      {"reductions", {"reduce"}},
      {"cumsum", {"scan"}},
      {"unary", {"unary", "unary_backward"}},
      {"binary", {"binary"}},
      {"scatter_add", {"scatter_add"}},
  };
  for (const auto& [call, ops] : table) {
    for (const std::string& op : ops) {
      for (const auto how : {Tampered::How::factor, Tampered::How::element}) {
        const auto [spoiled, named] = found(call, op, how);
        EXPECT_GT(spoiled, 0) << op << " of " << call;
        EXPECT_EQ(named, spoiled) << op << " of " << call
                                  << (how == Tampered::How::factor ? ", all" : ", one element");
      }
    }
  }
}

TEST(ParityDetection, CallsADerivedBackendByItsOwnName) {
  EXPECT_EQ(backend_name(Tampered()), "Tampered");
  EXPECT_EQ(backend_name(Cpu()), "cpu");
  EXPECT_EQ(backend_name(Reference()), "reference");
  EXPECT_EQ(backend_name(Lazy<Cpu>()), "lazy-cpu");
  EXPECT_EQ(backend_name(Lazy<Tampered>()), "lazy-Tampered");
}

}  // namespace
}  // namespace ferrite::testing
