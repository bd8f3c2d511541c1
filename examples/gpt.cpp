// A small GPT reads Shakespeare and goes on in that manner. The files of tokens and of the tokenizer were
// made by `ferrite gpt tokens` and `ferrite gpt tokenizer train`; docs/gpt.md has a larger model.
#include "common.hpp"
#include "ferrite/ferrite.hpp"
#include "ferrite/text/bpe.hpp"

using namespace ferrite;
using B = examples::Backend;

void learn(B& backend, const examples::Options& options) {
  const auto tokenizer = text::BytePairTokenizer::load(examples::data_file("shakespeare.bpe"));
  const auto config = nn::GptConfig{}
                          .with_vocab(tokenizer.vocabulary_size())
                          .with_context(64)
                          .with_layers(2)
                          .with_heads(4)
                          .with_dim(64);
  Rng rng(options.seed);
  nn::Gpt<B> model(backend, config, rng);
  optim::AdamW<B> optimizer(model.parameters(), optim::AdamWConfig{}
                                                    .with_betas(0.9, 0.95)
                                                    .with_weight_decay(0.1)
                                                    .with_no_decay(optim::biases_and_norms)
                                                    .with_clip_norm(1));
  data::TokenLoader loader(std::vector<std::filesystem::path>{examples::data_file("shakespeare.bin")},
                           data::TokenLoaderConfig{}.with_batch(8, 64).with_vocab(config.vocab));
  const auto schedule = optim::Schedule::cosine(5e-3, options.steps, 5e-4);
  train::Trainer<B> trainer(model, optimizer, loader, train::language_model(model),
                            train::TrainerConfig{}
                                .with_steps(options.steps)
                                .with_schedule(schedule)
                                .with_capture(train::Capture::if_possible));
  train::ProgressBar bar;
  trainer.add_observer(bar);
  trainer.fit();

  const std::string prompt = "ROMEO:\n";
  const auto texts = nn::generate(model, {tokenizer.encode(prompt)},
                                  nn::GenerateConfig{}.with_tokens(40).with_temperature(0.8).with_top_k(40));
  std::printf("%s%s\n", prompt.c_str(), tokenizer.decode(texts[0].tokens).c_str());
}

int main(int argc, char** argv) {
  examples::Options options;
  options.steps = 200;
  return examples::run(argc, argv, "A small GPT reads Shakespeare", options, learn);
}
