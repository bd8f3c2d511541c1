// What the machine is, for `ferrite devices` and `ferrite doctor`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ferrite::cli {

/// "Intel(R) Xeon(R) ...", or the numbers of an Arm part; "unknown" where the system does not say.
std::string cpu_name();
/// Vector instructions of this processor, whatever the kernels were compiled for: "neon", "sve", "avx2", ...
std::vector<std::string> simd();
unsigned cores();
std::int64_t memory_bytes();
/// What a program could still take.
std::int64_t free_bytes();

}  // namespace ferrite::cli
