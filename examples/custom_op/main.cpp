// custom_op [--backend NAME] [--steps N]: a net with its own op (mish.hpp), on any backend. It is a
// separate project that builds against an installed ferrite: see CMakeLists.txt.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ferrite/ferrite.hpp>

#include "mish.hpp"

using namespace ferrite;
using B = Autodiff<AnyBackend>;

/// A net that learns |x|.
double learn(B& backend, Rng& rng, int steps) {
  nn::Sequential<B> net;
  net.add(nn::Linear<B>(backend, {1, 16}, rng))
      .add(nn::Apply<B>(mish<B>))
      .add(nn::Linear<B>(backend, {16, 1}, rng));
  optim::Adam<B> optimizer(net.parameters(), optim::AdamConfig{}.with_lr(0.02));
  double loss_value = 0;
  for (int step = 0; step < steps; ++step) {
    const auto inputs = rand(backend, {64, 1}, rng, -2, 2);
    const auto loss = mse_loss(net.forward(inputs), abs(inputs));
    optimizer.step(loss.backward());
    loss_value = loss.item();
  }
  return loss_value;
}

/// How Profiled saw mish on a device: "fused" where the device has a kernel for it.
std::string kind_of_mish(Device device) {
  AnyBackend b("profiled-" + to_string(device));
  Rng rng(1);
  mish(randn(b, {1000}, rng));
  const Profile profile = b.profile().value();
  for (const OpProfile& op : profile.ops)
    if (op.name == Mish::type_name) return std::string(to_string(op.kind));
  return "not there";
}

/// Prints it; false if a kernel is not used.
bool is_mish_as_expected(Device device) {
  const bool has_kernel = device.kind == DeviceKind::cpu ? Runs<Cpu, Mish> : Runs<Cuda, Mish>;
  const std::string kind = kind_of_mish(device);
  std::printf("on %s mish is %s\n", to_string(device).c_str(), kind.c_str());
  return !has_kernel || kind == "fused";
}

int main(int argc, char** argv) {
  std::string name = "cpu";
  int steps = 100;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--backend") == 0) name = argv[i + 1];
    if (std::strcmp(argv[i], "--steps") == 0) steps = std::atoi(argv[i + 1]);
  }
  try {
    B backend(name);
    Rng rng(0);
    const auto x = parameter(randn(backend, {5}, rng, 0, 2, DType::f64), "x");
    std::printf("mish(x)            = %s\n", to_string(mish(x)).c_str());
    std::printf("its own gradient   = %s\n", to_string(sum(mish(x)).backward().of(x)).c_str());
    const auto composed = sum(x * tanh(softplus(x))).backward().of(x);
    std::printf("by the composition = %s\n", to_string(composed).c_str());
    std::printf("mean squared error of a mish net on |x| after %d steps: %.4f\n", steps,
                learn(backend, rng, steps));
    const Device device = backend.inner().device();
    const bool as_expected =
        is_mish_as_expected(Device{}) && (device == Device{} || is_mish_as_expected(device));
    std::printf("%s", backend.inner().report().c_str());
    return as_expected ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
