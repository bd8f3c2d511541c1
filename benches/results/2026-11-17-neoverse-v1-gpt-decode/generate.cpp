// generate MODEL TOKENS [int8|f32] [PROMPT LENGTH]: greedy text on the CPU; the last of three runs counts.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ferrite/nn/generate.hpp"
#include "ferrite/train/gpt_file.hpp"
#include "ferrite/train/stacks.hpp"

using namespace ferrite;
using Clock = std::chrono::steady_clock;

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  AnyBackend backend("cpu");
  auto model = train::load_gpt(backend, argv[1]);
  if (argc > 3 && std::string_view(argv[3]) == "int8") model.quantize();
  const int count = std::atoi(argv[2]);
  std::vector<std::int32_t> prompt = {464, 2068, 7586, 21831};  // The quick brown fox
  if (argc > 4) prompt.resize(static_cast<std::size_t>(std::atoi(argv[4])), 11);
  for (const int tokens : {8, count, count}) {
    const auto start = Clock::now();
    auto first = start;
    nn::generate(model, {prompt}, nn::GenerateConfig{}.with_tokens(tokens).with_temperature(0),
                 [&](std::size_t, std::int32_t) {
                   if (first == start) first = Clock::now();
                   return nn::Next::more;
                 });
    const auto end = Clock::now();
    const double all = std::chrono::duration<double>(end - start).count();
    const double rest = std::chrono::duration<double>(end - first).count();
    std::printf("%d tokens, %.2f s, %.1f tokens/s; without the prompt %.2f ms per token\n", tokens, all,
                tokens / all, 1e3 * rest / (tokens - 1));
  }
}
