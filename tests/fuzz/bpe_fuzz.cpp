// Any bytes either read as a vocabulary or give a ParseError; with one, the text comes back from its tokens,
// whole or token by token.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "ferrite/core/error.hpp"
#include "ferrite/text/bpe.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ferrite::text;
  const std::string_view content(reinterpret_cast<const char*>(data), size);
  try {
    const auto tokenizer = BytePairTokenizer::parse(content, "fuzz.bpe");
    const auto ids = tokenizer.encode(content, SpecialText::recognised);
    if (tokenizer.decode(ids) != content) std::abort();
    TextStream stream(tokenizer);
    std::string shown;
    for (const Token id : ids) shown += stream.push(id);
    if (shown + stream.finish() != content) std::abort();
  } catch (const ferrite::ParseError&) {
  } catch (const ferrite::ValueError&) {  // a special token that the vocabulary has
  }
  return 0;
}
