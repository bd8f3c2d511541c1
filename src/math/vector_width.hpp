// How wide the vectors are of the machine that a file is compiled for.
#pragma once

namespace ferrite {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

}  // namespace ferrite
