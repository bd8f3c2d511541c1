// Shared by all examples: the same four flags, and one program text for every backend.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/stacks/any_backend.hpp"

namespace examples {

struct Options {
  std::string backend = "cpu";
  std::uint64_t seed = 0;
  std::int64_t steps = 100;
  std::string trace;
};

/// examples/data/`name`
std::string data_file(const std::string& name);

/// What all examples run on: the backend that --backend names.
using Backend = ferrite::Autodiff<ferrite::AnyBackend>;
using Body = void(Backend& backend, const Options& options);

/// A main function: parses the flags, runs body(backend, options), and turns errors into messages. Cpu and
/// Cuda run under Profiled, so that their profile can be shown and traced.
int run(int argc, char** argv, const std::string& description, Options options, Body* body);

}  // namespace examples
