// run_snippets NAME: runs a program of the documentation, "training_2" being the second of docs/training.md.
#include <cstdio>
#include <map>

#include "snippets/snippet.hpp"

namespace ferrite::testing {

namespace {
std::map<std::string, Snippet::Main>& all() {
  static std::map<std::string, Snippet::Main> snippets;
  return snippets;
}
}  // namespace

void Snippet::add(std::string name, Main main) { all().emplace(std::move(name), std::move(main)); }

}  // namespace ferrite::testing

int main(int argc, char** argv) {
  const auto& snippets = ferrite::testing::all();
  const auto found = argc > 1 ? snippets.find(argv[1]) : snippets.end();
  if (found != snippets.end()) return found->second(argc - 1, argv + 1);
  std::fprintf(stderr, "run_snippets NAME: one of");
  for (const auto& [name, main] : snippets) std::fprintf(stderr, " %s", name.c_str());
  std::fprintf(stderr, "\n");
  return 2;
}
