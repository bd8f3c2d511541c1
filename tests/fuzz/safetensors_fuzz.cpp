// Any bytes either read as safetensors or give a ParseError.
#include <cstddef>
#include <cstdint>

#include "ferrite/core/error.hpp"
#include "ferrite/io/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    ferrite::read_safetensors(std::as_bytes(std::span(data, size)), "fuzz.safetensors");
  } catch (const ferrite::ParseError&) {
  }
  return 0;
}
