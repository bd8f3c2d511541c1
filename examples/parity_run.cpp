// A parity run: a transformer block learns to reverse sequences while every op, forward and backward, runs on
// two backends and is compared. The program is the same as without parity; only the name of the backend
// differs.
#include "common.hpp"
#include "ferrite/nn/transformer.hpp"
#include "ferrite/ops/random.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"
#include "ferrite/optim/adam.hpp"

using namespace ferrite;

constexpr std::int64_t letters = 8, length = 6, width = 32;

/// Embeds letters and places, looks around once, and names a letter for every place.
template <class B>
class Reverser final : public nn::Module<B> {
 public:
  Reverser(B& backend, Rng& rng)
      : letter_(backend, {letters, width}, rng),
        place_(backend, {length, width}, rng),
        block_(backend, {width, 4}, rng),
        head_(backend, {width, letters}, rng) {}

  void visit(nn::Visitor<B>& v) override {
    v.child("letter", letter_);
    v.child("place", place_);
    v.child("block", block_);
    v.child("head", head_);
  }
  /// # Shapes: ids [N, length] -> logits [N, length, letters]
  Tensor<B> forward(const Tensor<B>& ids) {
    const auto places = place_.forward(arange(ids.backend(), length));
    return head_.forward(block_.forward(letter_.forward(ids) + places));
  }

 private:
  nn::Embedding<B> letter_, place_;
  nn::TransformerBlock<B> block_;
  nn::Linear<B> head_;
};

template <class B>
void learn(B& backend, const examples::Options& options) {
  Rng rng(options.seed);
  Reverser<B> net(backend, rng);
  optim::AdamW<B> optimizer(net.parameters(), optim::AdamWConfig{}.with_lr(5e-3).with_clip_norm(1));
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    const auto ids = randint(backend, {32, length}, rng, 0, letters);
    const auto loss = softmax_cross_entropy(net.forward(ids), flip(ids, {1}));
    optimizer.step(loss.backward());
    if (step % 10 == 0 || step == options.steps)
      std::printf("step %3lld  loss %.4f\n", static_cast<long long>(step), loss.item());
  }
}

int main(int argc, char** argv) {
  examples::Options options;
  options.backend = "parity";
  options.steps = 30;
  return examples::run(argc, argv, "Every op of a training run on two backends", options,
                       learn<examples::Backend>);
}
