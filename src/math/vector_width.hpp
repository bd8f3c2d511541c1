// How wide the vectors are of the machine that a file is compiled for.
#pragma once

namespace ferrite {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
inline constexpr const char* instruction_set = "AVX-512";
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
inline constexpr const char* instruction_set = "AVX";
#else
inline constexpr int vector_bytes = 16;
inline constexpr const char* instruction_set = "128-bit vectors";
#endif

}  // namespace ferrite
