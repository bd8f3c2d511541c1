// What all examples share: the same four flags, and one text for every backend.
#pragma once

#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "ferrite/ferrite.hpp"

namespace examples {

struct Options {
  std::string backend = "cpu";
  std::uint64_t seed = 0;
  std::int64_t steps = 100;
  std::string trace;
};

template <class Backend, class F>
void with_parity(F&& f) {
  ferrite::Autodiff<Backend> backend;
  f(backend);
  std::printf("\n%s", backend.inner().table().c_str());
}
template <class Backend, class F>
void with_profile(const Options& options, F&& f) {
  using namespace ferrite;
  Autodiff<Profiled<Backend>> backend(ProfiledConfig{}.with_trace(!options.trace.empty()));
  f(backend);
  if (!options.trace.empty()) backend.inner().write_trace(options.trace);
}

/// What was fused, at the end.
template <class Backend, class F>
void with_fusion(F&& f) {
  ferrite::Autodiff<ferrite::Lazy<Backend>> backend;
  f(backend);
  std::printf("\n%s", table(backend.inner().fusion_report()).c_str());
}

/// Calls f(backend) with the differentiating backend that --backend names. Cpu and Cuda run under Profiled,
/// so that their profile can be shown and traced.
template <class F>
void with_backend(const Options& options, F&& f) {
  using namespace ferrite;
  if (options.backend == "reference") {
    Autodiff<Reference> backend;
    f(backend);
  } else if (options.backend == "parity") {
    with_parity<CpuParity>(f);
  } else if (options.backend == "cpu") {
    with_profile<Cpu>(options, f);
  } else if (options.backend == "lazy-cpu") {
    with_fusion<Cpu>(f);
  } else if (options.backend == "lazy-parity") {
    with_parity<LazyParity>(f);
  } else {
#if FERRITE_HAS_CUDA
    if (options.backend == "cuda")
      with_profile<Cuda>(options, f);
    else if (options.backend == "lazy-cuda")
      with_fusion<Cuda>(f);
    else if (options.backend == "cuda-lazy-parity")
      with_parity<CudaLazyParity>(f);
    else
      with_parity<CudaParity>(f);
#else
    Cuda backend;  // throws, and says what is missing
#endif
  }
}

/// Reads the flags into options. Returns the exit code if the program is to end at once (--help, bad usage).
std::optional<int> parse(int argc, char** argv, const std::string& description, Options& options);
/// examples/data/`name`
std::string data_file(const std::string& name);

/// A main function: parses the flags, runs body(backend, options), and turns errors into messages.
template <class Body>
int run(int argc, char** argv, const std::string& description, Options options, Body&& body) {
  if (const auto code = parse(argc, argv, description, options)) return *code;
  try {
    with_backend(options, [&](auto& backend) { body(backend, options); });
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

}  // namespace examples
