// A record: a program, its texts, and what was done to verify it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ferrite/models/irsynth/config.hpp"
#include "ferrite/models/irsynth/program.hpp"

namespace ferrite::irsynth {

/// What was done and how it went; empty or false: not done.
struct Checks {
  bool round_trip = false;  // parse(print(ir)) == ir
  bool interpreted = false;
  /// How far native precision is from f64, in roundings of the type at the largest output (at least 1).
  double roundings = 0;
  std::string cpu, compiled, gpu;  // with what
  std::string adjoint;             // "finite differences", or why there is no more to say
};

/// Differences in roundings, as above. A program is taken only if native precision stays this close to f64
/// (accepted), and f64 to itself when inputs move by four roundings (moved); one that is not far below these
/// limits, at three such inputs. Then it is well-conditioned, and every correct way to run it agrees within
/// `parity`.
inline constexpr double accepted_roundings = 16, moved_roundings = 128, parity_roundings = 64;

struct Record {
  std::int64_t index = 0;
  Program program;
  std::string structure;  // hash of the form without names and numbers
  std::string python, forward, backward, ptx;
  std::vector<kernel::Value> inputs, outputs;  // where it was run: all arguments before and after
  Checks checks;
  std::string failure;  // empty, or what went wrong: a bug somewhere in this library

  /// train (90 of 100 structures), validation or test: all records of a structure are in the same.
  std::string_view split() const;
};

/// The record of this number: a function of config, seed and index. Verified up to Verify::cpu if the config
/// asks for it or more.
FERRITE_API Record make_record(const Config& config, std::uint64_t seed, std::int64_t index);

/// Gives the CUDA texts to NVRTC, many at a time, on all threads of the pool. What is refused has a failure.
/// Also fills `ptx` where the config asks for it. Throws BackendError without NVRTC.
FERRITE_API void compile_records(const Config& config, std::span<Record> records);

/// Compiles the CUDA texts for the first GPU, many at a time, runs them there and compares with `outputs`.
/// What is refused or differs has a failure. Throws DeviceError without a GPU.
FERRITE_API void run_records_on_gpu(const Config& config, std::span<Record> records);

/// The hash of a program's structure, 32 hexadecimal digits.
FERRITE_API std::string structure_hash(const Program& program);
/// The largest difference between the arrays of two runs, in roundings; infinite where integers differ.
FERRITE_API double roundings_between(std::span<const kernel::Value> a, std::span<const kernel::Value> b);

enum class Layout : std::uint8_t { line, lines };
/// As JSON, on one line or on many.
FERRITE_API std::string to_json(const Record& record, const Config& config, std::uint64_t seed,
                                Layout layout = Layout::line);

}  // namespace ferrite::irsynth
