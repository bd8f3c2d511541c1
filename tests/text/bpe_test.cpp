// Encoding and decoding with GPT-2's vocabulary: the ids of tiktoken and tokenizers, every code point, every
// byte, long words, special tokens, threads.
#include "ferrite/text/bpe.hpp"

#include <fmt/format.h>

#include <chrono>
#include <random>

#include "ferrite/core/thread_pool.hpp"
#include "text_test.hpp"

namespace ferrite::text {
namespace {

using testing::expect_error;
using testing::gpt2;
using testing::to_utf8;
using testing::vectors;
using Ids = std::vector<Token>;

TEST(BytePairTokenizer, GivesTheIdsOfTiktokenAndTokenizers) {
  for (const auto& vector : vectors()["strings"]) {
    const std::string text = vector["text"];
    EXPECT_EQ(gpt2().encode(text), vector["ids"].get<Ids>()) << text;
    EXPECT_EQ(gpt2().decode(gpt2().encode(text)), text);
  }
}

TEST(BytePairTokenizer, ClassifiesEveryCodePointAsTheyDo) {
  for (char32_t first = 0; first < 0x110000; first += 4096) {
    std::string text;
    for (char32_t c = first; c < first + 4096; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      const std::string point = to_utf8(c);
      text += "a" + point + "1" + point + " " + point + "'s";
    }
    const Ids ids = gpt2().encode(text);
    EXPECT_EQ(gpt2().decode(ids), text);
    std::uint64_t hash = 0xCBF29CE484222325u;
    for (const Token id : ids) hash = (hash ^ static_cast<std::uint64_t>(id)) * 0x100000001B3u;
    EXPECT_EQ(fmt::format("{:016x}", hash), vectors()["code_points"][first / 4096].get<std::string>())
        << "code points from " << static_cast<unsigned>(first);
  }
}

TEST(BytePairTokenizer, AnyBytesRoundTrip) {
  std::mt19937 draw(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(draw() % 300, '\0');
    // Lead and continuation bytes are frequent, so that sequences begin well and are cut.
    for (char& byte : bytes) byte = static_cast<char>(draw() % 2 ? draw() : 0x80 + draw() % 0x80);
    EXPECT_EQ(gpt2().decode(gpt2().encode(bytes)), bytes);
  }
  // A byte that is not UTF-8 is a symbol: it takes the space before it and ends a run of letters.
  EXPECT_EQ(gpt2().encode("a \xFFz").size(), 4u);
}

TEST(BytePairTokenizer, LongWordsDoNotTakeForEver) {
  const auto start = std::chrono::steady_clock::now();
  const std::string same(1 << 20, 'a');
  EXPECT_EQ(gpt2().decode(gpt2().encode(same)), same);
  std::string mixed;
  std::mt19937 draw(1);
  for (int i = 0; i < 1 << 20; ++i) mixed += static_cast<char>('a' + draw() % 4);
  EXPECT_EQ(gpt2().decode(gpt2().encode(mixed)), mixed);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

/// Merges as they are defined, one by one over the whole word.
Ids merge_slowly(std::string_view word) {
  Ids ids;
  for (const char byte : word) ids.push_back(gpt2().encode({&byte, 1})[0]);
  for (;;) {
    Token lowest = 50256;
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      // In GPT-2's vocabulary the order of ids is that of the merges, and every token has one merge.
      const Ids pair =
          gpt2().encode(std::string(gpt2().bytes_of(ids[i])).append(gpt2().bytes_of(ids[i + 1])));
      if (pair.size() == 1 && pair[0] < lowest) lowest = pair[0], at = i;
    }
    if (lowest == 50256) return ids;
    ids[at] = lowest;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(BytePairTokenizer, WordsOfAllLengthsMergeByTheSameRule) {
  std::mt19937 draw(2);
  const std::string_view letters = "etaoinshrdlu";
  for (std::size_t length : {1, 2, 3, 4, 5, 15, 16, 17, 31, 64, 127, 128, 129, 130, 300}) {
    std::string word;
    for (std::size_t i = 0; i < length; ++i) word += letters[draw() % letters.size()];
    EXPECT_EQ(gpt2().encode(word), merge_slowly(word)) << word;
  }
}

TEST(BytePairTokenizer, SpecialTokensAreTextUnlessTheyAreAskedFor) {
  const std::string text = "a<|endoftext|>b<|endoftext|><|endof";
  EXPECT_EQ(gpt2().special_token("<|endoftext|>"), 50256);
  EXPECT_EQ(gpt2().vocabulary_size(), 50257);
  for (const Token id : gpt2().encode(text)) EXPECT_NE(id, 50256);
  Ids expected = gpt2().encode("a");
  expected.push_back(50256);
  gpt2().encode_to("b", expected);
  expected.push_back(50256);
  gpt2().encode_to("<|endof", expected);
  EXPECT_EQ(gpt2().encode(text, SpecialText::recognised), expected);
  EXPECT_EQ(gpt2().decode(expected), text);
  expect_error<ValueError>([] { gpt2().special_token("<pad>"); }, {"\"<pad>\"", "\"<|endoftext|>\""});
}

TEST(BytePairTokenizer, OfSpecialTokensTheLongestIsTaken) {
  const auto tokenizer = BytePairTokenizer::parse("#version: 0.2\n", "x", {"<a>", "<a><b>", "<b>"});
  EXPECT_EQ(tokenizer.encode("<a><b><a><b", SpecialText::recognised),
            (Ids{257, 256, tokenizer.encode("<")[0], tokenizer.encode("b")[0]}));
}

TEST(BytePairTokenizer, ThreadsDoNotChangeTheResult) {
  std::string book;
  while (book.size() < 300'000)
    for (const auto& vector : vectors()["strings"]) book += vector["text"].get<std::string>() + "\n";
  const std::vector<std::string_view> texts = {book, "", "short", std::string_view(book).substr(7, 90'000),
                                               "x"};
  for (const SpecialText special : {SpecialText::ordinary, SpecialText::recognised}) {
    std::vector<Ids> expected;
    for (const std::string_view text : texts) expected.push_back(gpt2().encode(text, special));
    for (const int threads : {1, 2, 5}) {
      const int before = num_threads();
      set_num_threads(threads);
      EXPECT_EQ(gpt2().encode_all(texts, special), expected) << threads;
      set_num_threads(before);
    }
  }
  EXPECT_TRUE(gpt2().encode_all({}).empty());
}

TEST(BytePairTokenizer, RefusesIdsThatAreNoTokens) {
  expect_error<ValueError>([] { gpt2().decode(Ids{50257}); }, {"id 50257", "0 to 50256"});
  expect_error<ValueError>([] { gpt2().decode(Ids{-1}); }, {"id -1"});
}

TEST(TextStream, NeverCutsACharacter) {
  const std::string text = "na\u00efve \u4f60\u597d \U0001F600\U0001F468 end";
  TextStream stream(gpt2());
  std::string shown;
  for (const Token id : gpt2().encode(text)) {
    const std::string part = stream.push(id);
    // A part that begins with a continuation byte, or a part before it that lacks one, would be cut.
    EXPECT_TRUE(part.empty() || (static_cast<unsigned char>(part[0]) & 0xC0) != 0x80);
    shown += part;
  }
  EXPECT_EQ(shown, text);
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, GivesAllBytesInTheEnd) {
  const std::string text = "a\xFF\xE4\xBD z\xF0\x9F\x98";
  TextStream stream(gpt2());
  std::string shown;
  for (const Token id : gpt2().encode(text)) shown += stream.push(id);
  EXPECT_EQ(shown, "a\xFF\xE4\xBD z");
  EXPECT_EQ(stream.finish(), "\xF0\x9F\x98");
  EXPECT_EQ(stream.finish(), "");
}

}  // namespace
}  // namespace ferrite::text
