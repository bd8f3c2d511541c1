// Any bytes either read as npz or give a ParseError.
#include <cstddef>
#include <cstdint>

#include "ferrite/core/error.hpp"
#include "ferrite/io/npz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    ferrite::read_npz(std::as_bytes(std::span(data, size)), "fuzz.npz");
  } catch (const ferrite::ParseError&) {
  }
  return 0;
}
