// cuda_bench: times ferrite on the GPU, and where sizes allow on the CPU, as JSON lines. Its rows are timed
// with PyTorch under the same names by benches/peers/torch_gpu.py.
#include <CLI/CLI.hpp>
#include <cmath>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <regex>

#include "ferrite/backend/cuda_device.hpp"
#include "suite.hpp"

namespace ferrite::bench {
namespace {

nlohmann::ordered_json to_json(const Measurement& m) {
  nlohmann::ordered_json json{{"seconds", m.seconds}, {"min_seconds", m.min_seconds}};
  if (m.flops > 0) json["flops"] = m.flops;
  if (m.bytes > 0) json["bytes"] = m.bytes;
  // JSON has no NaN: null says that there was an error to report and that it is no number.
  if (m.error) json["error"] = std::isfinite(*m.error) ? nlohmann::ordered_json(*m.error) : nullptr;
  return json;
}

/// Writes one line per row; a row that throws says why in "failed" and does not stop the others. Returns
/// whether none did.
bool run_rows(const Suite& suite, Reach reach, const std::string& backend, const std::regex& filter,
              std::ostream& out) {
  bool all_ran = true;
  for (const Row& row : suite.rows()) {
    const auto& measure = row.measure[static_cast<std::size_t>(reach)];
    if (!measure || !std::regex_search(row.name, filter)) continue;
    nlohmann::ordered_json line{{"name", row.name}, {"backend", backend}};
    try {
      line.update(to_json(measure()));
      if (reach == Reach::cuda) Cuda().release_cache();
    } catch (const std::exception& e) {
      line["failed"] = e.what();
      all_ran = false;
    }
    out << line.dump() << std::endl;
  }
  return all_ran;
}

int main(int argc, char** argv) {
  CLI::App app("Times ferrite's ops and training steps; one JSON object per row.");
  std::string pattern, file, backend = "cuda";
  bool list = false, fastest = false;
  app.add_option("--filter", pattern, "only rows whose name matches this regular expression");
  app.add_option("--backend", backend, "cuda, cpu, or naive; the CPU takes the rows that are small enough")
      ->check(CLI::IsMember({"cuda", "cpu", "naive"}));
  app.add_option("--out", file, "write the rows to this file instead of the screen");
  app.add_flag("--fastest", fastest, "ops may give other bits on every run (Determinism::fastest)");
  app.add_flag("--list", list, "print the names of the rows and stop");
  CLI11_PARSE(app, argc, argv);

  Suite suite(fastest ? Determinism::fastest : Determinism::same_bits);
  for (const auto add : {add_matmul, add_elementwise, add_lazy, add_reduce, add_row_ops, add_cross_entropy,
                         add_attention, add_convolution, add_optimizer, add_overhead, add_training,
                         add_tokenizer, add_priors, add_launch, add_linear_algebra})
    add(suite);
  const Reach reach = backend == "cuda" ? Reach::cuda : backend == "cpu" ? Reach::cpu : Reach::naive;
  const std::regex filter(pattern);
  if (list) {
    for (const Row& row : suite.rows())
      if (row.measure[static_cast<std::size_t>(reach)] && std::regex_search(row.name, filter))
        std::cout << row.name << '\n';
    return 0;
  }
  if (reach == Reach::cuda && cuda_device_count() == 0) {
    std::cerr << "error: " << cuda_unavailable_reason() << '\n';
    return 1;
  }
  if (file.empty()) return run_rows(suite, reach, backend, filter, std::cout) ? 0 : 1;
  std::ofstream out(file);
  if (!out) {
    std::cerr << "error: cannot write " << file << '\n';
    return 1;
  }
  return run_rows(suite, reach, backend, filter, out) ? 0 : 1;
}

}  // namespace
}  // namespace ferrite::bench

int main(int argc, char** argv) try {
  return ferrite::bench::main(argc, argv);
} catch (const std::exception& e) {
  std::cerr << "error: " << e.what() << '\n';
  return 1;
}
