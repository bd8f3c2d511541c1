// The C++ side of gpt_training_peer.py: what a model gives for tokens, and how its loss falls in training.
//
//     gpt_training_peer MODEL IDS.npy BACKEND PRECISION STEPS RATE OUT.safetensors
//
// MODEL is a model file of ferrite, IDS are integers [steps, rows, length + 1], PRECISION is f32 or bf16. OUT
// gets `logits` and `gradient.NAME` of the first batch, and `losses` of STEPS steps of AdamW
// at that learning RATE.
#include <cstdio>
#include <exception>
#include <string>

#include "ferrite/decorators/autocast.hpp"
#include "ferrite/io/npy.hpp"
#include "ferrite/io/safetensors.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "ferrite/train/stacks.hpp"

namespace {

using namespace ferrite;

template <class B>
void run(B backend, char** argv) {
  nn::Gpt<B> model = train::load_gpt(backend, argv[1]);
  const Tensor<B> ids = from_host(backend, read_npy(argv[2]));
  const std::int64_t length = ids.size(2) - 1, steps = std::stoll(argv[5]);
  const auto loss_of = [&](std::int64_t step) {
    const Tensor<B> batch = select(ids, 0, step);
    return model.loss(slice(batch, 1, 0, length), slice(batch, 1, 1, length + 1));
  };

  SafeTensors out;
  out.tensors["logits"] = to_host(cast(model.logits(slice(select(ids, 0, 0), 1, 0, length)), DType::f32));
  const auto gradients = loss_of(0).backward();
  for (const auto& [name, parameter] : model.parameters())
    out.tensors["gradient." + name] = to_host(gradients.of(parameter));

  optim::AdamW<B> optimizer(model.parameters(), optim::AdamWConfig{}
                                                    .with_lr(std::stod(argv[6]))
                                                    .with_betas(0.9, 0.95)
                                                    .with_weight_decay(0.1)
                                                    .with_no_decay(optim::biases_and_norms));
  std::vector<float> losses;
  for (std::int64_t step = 0; step < steps; ++step) {
    const Tensor<B> loss = loss_of(step % ids.size(0));
    losses.push_back(loss.template item<float>());
    optimizer.step(loss.backward());
  }
  out.tensors["losses"] = HostTensor::from(std::span<const float>(losses), {steps});
  write_safetensors(argv[7], out);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 8) {
    std::fputs("usage: gpt_training_peer MODEL IDS.npy BACKEND f32|bf16 STEPS RATE OUT.safetensors\n",
               stderr);
    return 2;
  }
  const AnyBackend backend{std::string(argv[3])};
  const std::string precision = argv[4];
  if (precision == "bf16")
    run(Autodiff<Autocast<AnyBackend>>(Autocast<AnyBackend>(backend)), argv);
  else if (precision == "f32")
    run(Autodiff<AnyBackend>(backend), argv);
  else
    throw ValueError("[gpt_training_peer] " + precision + ": must be f32 or bf16");
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
