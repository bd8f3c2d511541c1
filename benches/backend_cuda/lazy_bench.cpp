// Chains of ops as one kernel: Lazy<Cuda>. Rows "lazy/..." stand beside PyTorch op by op, rows "compiled/..."
// beside torch.compile. Bytes are those of one read and one write, so that the share of the copy rate is what
// fusion leaves.
#include "suite.hpp"

namespace ferrite::bench {
namespace {

/// Eight ops, one tensor. benches/peers/torch_rows.py has the same.
template <class B>
Tensor<B> chain8(const Inputs<B>& in) {
  const Tensor<B>& x = in[0];
  return -minimum(relu(abs(x * 1.1 + 0.3) - 0.2) * x, 3);
}
/// A row is broadcast over a matrix.
template <class B>
Tensor<B> bias_gelu(const Inputs<B>& in) {
  return gelu(in[0] + in[1]) * 0.5 + in[0];
}
/// A sum takes its chain in.
template <class B>
Tensor<B> sum_of_squares(const Inputs<B>& in) {
  return sum(square(in[0] * 1.1 + 0.3), {1});
}

/// f, fused, against itself op by op in f64.
template <class Make, class F>
Measurement measure(const Make& make, const F& f) {
  Lazy<Cuda> lazy;
  Rng rng(1);
  const auto in = make(lazy, rng);
  Tensor<Lazy<Cuda>> y = f(in);
  lazy.flush();
  Measurement m = time_calls(lazy.inner(), [&] {
    y = f(in);
    lazy.flush();
  });
  m.bytes = static_cast<double>(y.meta().bytes());
  for (const auto& x : in) m.bytes += static_cast<double>(x.meta().bytes());

  const auto plain = [&](const Tensor<Lazy<Cuda>>& x) {
    return cast(Tensor<Cuda>(lazy.inner(), lazy.settled(x.primitive())), DType::f64);
  };
  Inputs<Cuda> wide;
  for (const auto& x : in) wide.push_back(plain(x));
  const Tensor<Cuda> exact = f(wide);
  const auto norm = [](const Tensor<Cuda>& x) {
    return global_norm(std::vector<Tensor<Cuda>>{x}).template item<double>();
  };
  m.error = norm(plain(y) - exact) / norm(exact);
  return m;
}

}  // namespace

void add_lazy(Suite& suite) {
  const auto add = [&](const std::string& name, const auto& make, const auto& f) {
    suite.add("lazy/" + name, [=] { return measure(make, f); });
    // torch.compile rounds once where ops of bf16 round each: another result, which is not compared.
    if (name.find("bf16") == std::string::npos)
      suite.add("compiled/" + name, [=] { return measure(make, f); });
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    add(
        row_name("chain8", to_string(dtype), "256M"),
        [=](auto& b, Rng& rng) { return std::vector{randn(b, {1 << 28}, rng, 0, 1, dtype)}; },
        [](const auto& in) { return chain8(in); });
    add(
        row_name("bias_gelu", to_string(dtype), "65536x768"),
        [=](auto& b, Rng& rng) {
          return std::vector{randn(b, {65536, 768}, rng, 0, 1, dtype), randn(b, {768}, rng, 0, 1, dtype)};
        },
        [](const auto& in) { return bias_gelu(in); });
    add(
        row_name("sum_of_squares", to_string(dtype), "65536x768"),
        [=](auto& b, Rng& rng) {
          return std::vector{randn(b, {65536, 768}, rng, 0, 1, dtype)};
        },
        [](const auto& in) { return sum_of_squares(in); });
  }
}

}  // namespace ferrite::bench
