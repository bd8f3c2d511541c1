// The flags that all examples share, and the backend that the flags name.
#include "common.hpp"

#include <CLI/CLI.hpp>

namespace examples {

using namespace ferrite;

namespace {

/// Cpu and Cuda run under Profiled, so that their profile can be shown and traced.
AnyBackend make_backend(const Options& options) {
  AnyBackend named(options.backend);
  const ProfiledConfig config = ProfiledConfig{}.with_trace(!options.trace.empty());
  if (const Cpu* cpu = named.get_if<Cpu>()) return AnyBackend(Profiled<Cpu>(config, *cpu));
  if (const Cuda* cuda = named.get_if<Cuda>()) return AnyBackend(Profiled<Cuda>(config, *cuda));
  if (!options.trace.empty())
    throw CLI::ValidationError("--trace", "--backend " + options.backend +
                                              " is not traced: take cpu, or cuda (cuda:N for another GPU)");
  return named;
}

void write_trace(AnyBackend& backend, const std::string& path) {
  if (const auto* cpu = backend.get_if<Profiled<Cpu>>()) cpu->write_trace(path);
  if (const auto* cuda = backend.get_if<Profiled<Cuda>>()) cuda->write_trace(path);
}

void add_flags(CLI::App& app, Options& options) {
  app.add_option("--backend", options.backend,
                 "Where ops run: cpu, cuda (cuda:N for another GPU), reference, lazy-cpu (which fuses ops), "
                 "parity (cpu checked against reference), cuda-parity, ... or auto")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Seed of all random numbers")->capture_default_str();
  app.add_option("--steps", options.steps, "Training steps")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--trace", options.trace, "Write a trace for chrome://tracing (cpu and cuda:N only)")
      ->type_name("FILE");
}

}  // namespace

std::string data_file(const std::string& name) { return std::string(FERRITE_EXAMPLE_DATA) + "/" + name; }

int run(int argc, char** argv, const std::string& description, Options options, Body* body) {
  CLI::App app(description);
  add_flags(app, options);
  try {
    app.parse(argc, argv);
    Backend backend(make_backend(options));
    body(backend, options);
    if (!options.trace.empty()) write_trace(backend.inner(), options.trace);
    if (!backend.inner().profile()) std::printf("\n%s", backend.inner().report().c_str());
    return 0;
  } catch (const CLI::ParseError& error) {  // --help is one too
    return app.exit(error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

}  // namespace examples
