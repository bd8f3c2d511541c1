// The flags that all examples share.
#include "common.hpp"

#include <CLI/CLI.hpp>

namespace examples {

std::optional<int> parse(int argc, char** argv, const std::string& description, Options& options) {
  CLI::App app(description);
  app.add_option(
         "--backend", options.backend,
         "Where ops run; lazy- fuses them; parity checks cpu against reference, cuda-parity cuda against "
         "cpu, lazy-parity and cuda-lazy-parity fused ops against plain ones")
      ->check(CLI::IsMember({"reference", "cpu", "cuda", "lazy-cpu", "lazy-cuda", "parity", "cuda-parity",
                             "lazy-parity", "cuda-lazy-parity"}))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of all random numbers")->capture_default_str();
  app.add_option("--steps", options.steps, "Training steps")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--trace", options.trace, "Write a trace for chrome://tracing (cpu and cuda only)")
      ->type_name("FILE");
  try {
    app.parse(argc, argv);
    if (!options.trace.empty() && options.backend != "cpu" && options.backend != "cuda")
      throw CLI::ValidationError("--trace",
                                 "only the backends cpu and cuda are profiled, not " + options.backend);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  return std::nullopt;
}

std::string data_file(const std::string& name) { return std::string(FERRITE_EXAMPLE_DATA) + "/" + name; }

}  // namespace examples
