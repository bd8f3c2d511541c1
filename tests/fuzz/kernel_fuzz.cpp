// Any text either parses or gives errors; what parses prints and reads back.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ferrite/kernel/parse.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ferrite::kernel;
  const Parsed parsed = parse_all({reinterpret_cast<const char*>(data), size}, "fuzz.py");
  if (!(parse(print(parsed.module)) == parsed.module)) std::abort();
  return 0;
}
