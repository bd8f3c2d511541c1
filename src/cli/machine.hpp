// What the machine is, for `ferrite devices`, `ferrite doctor` and `ferrite bench`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ferrite::cli {

/// "Intel(R) Xeon(R) ...", or the numbers of an Arm part; "unknown" where the system does not say.
std::string cpu_name();
/// Vector instructions of this processor, whatever the kernels were compiled for: "neon", "sve", "avx2", ...
std::vector<std::string> simd();
unsigned cores();
/// The clock of the fastest core now, in MHz; nothing where the system does not say, as in many virtual
/// machines.
std::optional<double> current_mhz();
std::int64_t memory_bytes();
/// What a program could still take.
std::int64_t free_bytes();
/// NVIDIA's driver, "570.86.15"; empty where none is loaded.
std::string driver_version();
/// The path of CUDA's compiler, looked for where the build looks; empty if it is not installed.
std::string nvcc();

}  // namespace ferrite::cli
