// The settings of a dataset of kernels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/export.hpp"

namespace ferrite::irsynth {

enum class Device : std::uint8_t { cuda, cpu };
/// standalone: C++ that needs no headers. warp: as NVIDIA Warp prints kernels.
enum class Style : std::uint8_t { standalone, warp };
/// Each includes those before it.
///   cpu      round trip through the parser, interpreter in native precision and f64, run on the CPU;
///            gradients against finite differences
///   compile  NVRTC takes the CUDA text
///   gpu      a GPU gives the same outputs
enum class Verify : std::uint8_t { none, cpu, compile, gpu };
enum class Format : std::uint8_t { json, jsonl };

FERRITE_API std::string_view to_string(Device v);
FERRITE_API std::string_view to_string(Style v);
FERRITE_API std::string_view to_string(Verify v);
FERRITE_API std::string_view to_string(Format v);

/// Changes whenever the same config gives different records, or their form changes.
inline constexpr int generator_version = 2;

struct FERRITE_API Config {
  std::vector<std::string> categories;  // none: all
  int lowest_level = 0, highest_level = 7;
  Device device = Device::cuda;
  Style style = Style::standalone;
  Verify verify = Verify::cpu;
  bool backward = false;       // also the kernel of the gradient; level 7 always has it
  bool ptx = false;            // also the PTX that NVRTC makes from the CUDA text
  bool values = false;         // inputs and outputs as numbers, not only as recipes and digests
  int most_per_structure = 8;  // records that differ only in names and numbers
  int architecture = 90;       // of GPUs, for NVRTC
  int gpu = 0;                 // the one that Verify::gpu runs on, which changes no record

  /// Throws ValueError for settings that contradict each other.
  void check() const;
  std::string to_json() const;
};

}  // namespace ferrite::irsynth
