// 16-bit floats for emitted C++, which has none of its own.
#pragma once

#include <string>

namespace ferrite::kernel {

/// struct half: IEEE half precision, stored in 16 bits, computed as float and rounded to the nearest even.
std::string half_of_cpp();
/// struct bfloat16, the same way.
std::string bfloat16_of_cpp();

}  // namespace ferrite::kernel
