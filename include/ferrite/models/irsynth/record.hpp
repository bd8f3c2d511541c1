// A record: a program, its texts, and how it was verified.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ferrite/models/irsynth/config.hpp"
#include "ferrite/models/irsynth/program.hpp"

namespace ferrite::irsynth {

/// The checks and their results; empty or false: not done.
struct Checks {
  bool round_trip = false;  // parse(print(ir)) == ir
  bool interpreted = false;
  /// The distance between native precision and f64, in roundings of the type at the largest output (at least
  /// 1).
  double roundings = 0;
  std::string cpu, compiled, gpu;  // with what
  std::string adjoint;             // "finite differences", or why there is no verdict
};

/// Differences in roundings, as above. A program is accepted only if native precision stays this close to f64
/// (accepted), and f64 to itself when inputs move by four roundings (moved). A program that is not far below
/// these limits must keep them for three such inputs. It is then well-conditioned, and every correct way to
/// run it agrees within `parity`.
inline constexpr double accepted_roundings = 16, moved_roundings = 128, parity_roundings = 64;

struct Record {
  std::int64_t index = 0;
  Program program;
  std::string structure;  // hash of the form without names and numbers
  std::string python, forward, backward, ptx;
  std::vector<kernel::Value> inputs, outputs;  // where it was run: all arguments before and after
  Checks checks;
  std::string failure;  // empty, or what went wrong: a bug in this library

  /// train (90 of 100 structures), validation or test: all records of a structure are in the same split.
  std::string_view split() const;
};

/// The record of this number: a function of config, seed and index. Verified up to Verify::cpu if the config
/// asks for at least that.
FERRITE_API Record make_record(const Config& config, std::uint64_t seed, std::int64_t index);

/// Gives the CUDA texts to NVRTC, many at a time, on all threads of the pool. A refused record gets a
/// failure. Also fills `ptx` if the config asks for it. Throws BackendError without NVRTC.
FERRITE_API void compile_records(const Config& config, std::span<Record> records);

/// Compiles the CUDA texts for the GPU of the config, many at a time, runs them there and compares with
/// `outputs`. A record that is refused or differs gets a failure. Throws DeviceError without that GPU.
FERRITE_API void run_records_on_gpu(const Config& config, std::span<Record> records);

/// The hash of a program's structure, 32 hexadecimal digits.
FERRITE_API std::string structure_hash(const Program& program);
/// The largest difference between the arrays of two runs, in roundings; infinite if integers differ.
FERRITE_API double roundings_between(std::span<const kernel::Value> a, std::span<const kernel::Value> b);

enum class Layout : std::uint8_t { line, lines };
/// As JSON, on one line or on many.
FERRITE_API std::string to_json(const Record& record, const Config& config, std::uint64_t seed,
                                Layout layout = Layout::line);

}  // namespace ferrite::irsynth
