// Any bytes either read as npy or give a ParseError.
#include <cstddef>
#include <cstdint>

#include "ferrite/core/error.hpp"
#include "ferrite/io/npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    ferrite::read_npy(std::as_bytes(std::span(data, size)), "fuzz.npy");
  } catch (const ferrite::ParseError&) {
  }
  return 0;
}
