// ferrite gpt tokens and ferrite gpt tokenizer as a user runs them: from text to tokens and back.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cli_test.hpp"
#include "ferrite/data/token_file.hpp"
#include "ferrite/text/bpe.hpp"

namespace ferrite::testing {
namespace {

using Ids = std::vector<std::int32_t>;

struct GptCommand : ::testing::Test {
  ScratchFolder folder;
  std::string books[3];
  Reply trained;

  GptCommand() {
    for (int book = 0; book < 3; ++book) {
      for (int line = 0; line < 150; ++line)
        books[book] += "Chapter " + std::to_string(line * (book + 3)) + ": the cat sat on the mat,\n" +
                       (line % 3 == 0 ? "\n" : "  and it's not the caf\xc3\xa9's cat <|endoftext|>.\n");
      write("book_" + std::to_string(book) + ".txt", books[book]);
    }
    trained = run_ferrite("gpt tokenizer train --text " + at("book_*.txt") + " --vocab 400 --out " +
                          at("mine.bpe"));
  }

  std::string at(const std::string& name) { return "'" + (folder / name).string() + "'"; }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
  }
  Reply tokens(const std::string& arguments) {
    return run_ferrite("gpt tokens --tokenizer " + at("mine.bpe") + " " + arguments);
  }
  Ids ids_of(const std::string& name) {
    const auto file = data::TokenFile::open(folder / name);
    Ids ids(static_cast<std::size_t>(file.size()));
    file.copy(0, ids);
    return ids;
  }
  text::BytePairTokenizer tokenizer() { return text::BytePairTokenizer::load(folder / "mine.bpe"); }
  /// The tokens of all books, with one between them unless it is -1.
  Ids expected(std::int32_t between) {
    Ids all;
    for (const std::string& book : books) {
      if (!all.empty() && between >= 0) all.push_back(between);
      tokenizer().encode_to(book, all);
    }
    return all;
  }
};

TEST_F(GptCommand, ExplainsItselfWithExamples) {
  for (const std::string command : {"tokens", "tokenizer train", "tokenizer encode", "tokenizer decode"}) {
    const Reply help = run_ferrite("gpt " + command + " --help");
    EXPECT_EQ(help.code, 0);
    expect_contains(help.output, "Examples:\n  ferrite gpt " + command);
  }
  expect_contains(run_ferrite("gpt --help").output, "Examples:\n  ferrite gpt");
  expect_contains(run_ferrite("--help").output, "gpt");
}

TEST_F(GptCommand, TrainsATokenizer) {
  ASSERT_EQ(trained.code, 0) << trained.output;
  expect_contains(trained.output, " in 3 files");
  EXPECT_LE(tokenizer().vocabulary_size(), 400);
  EXPECT_GT(tokenizer().vocabulary_size(), 300);
  const Reply small = run_ferrite("gpt tokenizer train --text " + at("book_0.txt") + " --vocab 20000 --out " +
                                  at("other.json"));
  EXPECT_EQ(small.code, 0);
  expect_contains(small.output, "fewer than 20000: no other pair appears 2 times");
  const Reply bad =
      run_ferrite("gpt tokenizer train --text " + at("book_0.txt") + " --vocab 9 --out " + at("x"));
  EXPECT_EQ(bad.code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "x"));
}

TEST_F(GptCommand, EncodesAndDecodesArgumentsAndStandardInput) {
  const std::string with = " --tokenizer " + at("mine.bpe");
  const Ids ids = tokenizer().encode("the cat's mat");
  std::string list;
  for (const auto id : ids) list += (list.empty() ? "" : " ") + std::to_string(id);
  EXPECT_EQ(run_ferrite("gpt tokenizer encode \"the cat's mat\"" + with).output, list + "\n");
  EXPECT_EQ(run_ferrite("gpt tokenizer decode " + list + with).output, "the cat's mat");
  const Reply json = run_ferrite("gpt tokenizer encode --json \"the cat's mat\"" + with);
  EXPECT_EQ(nlohmann::json::parse(json.output).get<Ids>(), ids);
  const Reply round = run_ferrite("gpt tokenizer encode" + with + " < " + at("book_1.txt") + " | " + "'" +
                                  test_paths::program() + "' gpt tokenizer decode" + with);
  EXPECT_EQ(round.output, books[1]);
  const Reply brackets = run_ferrite("gpt tokenizer encode --json '[the, cat]'" + with);
  EXPECT_EQ(nlohmann::json::parse(brackets.output).get<Ids>(), tokenizer().encode("[the, cat]"));
  const auto eot = tokenizer().special_token("<|endoftext|>");
  EXPECT_EQ(run_ferrite("gpt tokenizer encode --special-text '<|endoftext|>'" + with).output,
            std::to_string(eot) + "\n");
  const Reply bad = run_ferrite("gpt tokenizer decode 12 x3" + with);
  EXPECT_EQ(bad.code, 2);
  expect_contains(bad.output, "'x3' is not an id");
  EXPECT_EQ(run_ferrite("gpt tokenizer decode 999999" + with).code, 2);
}

TEST_F(GptCommand, WritesTheTokensOfAllFilesWithOneBetweenThem) {
  const auto eot = tokenizer().special_token("<|endoftext|>");
  const Reply run = tokens("--text " + at("book_*.txt") + " --out " + at("all.bin"));
  ASSERT_EQ(run.code, 0) << run.output;
  EXPECT_EQ(ids_of("all.bin"), expected(eot));
  for (const char* part : {" tokens (u16) from ", " in 3 files", "B/s: "}) expect_contains(run.output, part);
  ASSERT_EQ(tokens("--no-eot --text " + at("book_*.txt") + " --out " + at("plain.bin")).code, 0);
  EXPECT_EQ(ids_of("plain.bin"), expected(-1));
  EXPECT_EQ(tokenizer().decode(ids_of("plain.bin")), books[0] + books[1] + books[2]);
  ASSERT_EQ(tokens("--special-text --text " + at("book_0.txt") + " --out " + at("special.bin")).code, 0);
  EXPECT_EQ(ids_of("special.bin"), tokenizer().encode(books[0], text::SpecialText::recognised));
  EXPECT_NE(ids_of("special.bin"), tokenizer().encode(books[0]));
}

TEST_F(GptCommand, WritesShardsThatTogetherAreTheWhole) {
  const auto eot = tokenizer().special_token("<|endoftext|>");
  const Ids all = expected(eot);
  const Reply run =
      tokens("--json --shard-tokens 1K --text " + at("book_*.txt") + " --out " + at("100%%_%03d.bin"));
  ASSERT_EQ(run.code, 0) << run.output;
  const auto json = nlohmann::json::parse(run.output);
  EXPECT_EQ(json["tokens"], all.size());
  EXPECT_EQ(json["bytes"], books[0].size() + books[1].size() + books[2].size());
  EXPECT_EQ(json["dtype"], "u16");
  EXPECT_GT(json["bytes_per_second"], 0);
  Ids joined;
  const auto names = json["shards"].get<std::vector<std::string>>();
  EXPECT_EQ(names[1], (folder / "100%_001.bin").string());
  for (const std::string& name : names) {
    const Ids part = ids_of(std::filesystem::path(name).filename().string());
    EXPECT_TRUE(name == names.back() ? part.size() > 10 && part.size() <= 1010 : part.size() == 1000u);
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, all);
}

TEST_F(GptCommand, PiecesOfALongTextDoNotShow) {
  std::string text;
  while (text.size() < 9'000'000) text += books[text.size() % 3];  // a piece has 4 MiB
  write("long.txt", text);
  const Reply run = tokens("--text " + at("book_0.txt") + " " + at("long.txt") + " --out " + at("long.bin"));
  ASSERT_EQ(run.code, 0) << run.output;
  Ids all = tokenizer().encode(books[0]);
  all.push_back(tokenizer().special_token("<|endoftext|>"));
  tokenizer().encode_to(text, all);
  EXPECT_TRUE(ids_of("long.bin") == all);  // too long to print
}

TEST_F(GptCommand, AVocabularyAbove65536MakesFilesOfU32) {
  const auto base64 = [](std::string_view bytes) {  // of one or two bytes
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned first = static_cast<unsigned char>(bytes[0]) << 16u;
    const unsigned all = first | (bytes.size() > 1 ? static_cast<unsigned char>(bytes[1]) << 8u : 0u);
    return std::string{digits[all >> 18u], digits[all >> 12u & 63u],
                       bytes.size() > 1 ? digits[all >> 6u & 63u] : '=', '='};
  };
  std::string ranks;
  for (int i = 0; i < 256 + 65536; ++i) {
    const std::string bytes = i < 256 ? std::string(1, static_cast<char>(i))
                                      : std::string{static_cast<char>((i - 256) >> 8), static_cast<char>(i)};
    ranks += base64(bytes) + " " + std::to_string(i) + "\n";
  }
  write("wide.tiktoken", ranks);
  write("a.txt", "ab");
  write("b.txt", "cd");
  const Reply run = run_ferrite("gpt tokens --tokenizer " + at("wide.tiktoken") + " --text " + at("a.txt") +
                                " " + at("b.txt") + " --out " + at("wide.bin"));
  ASSERT_EQ(run.code, 0) << run.output;
  expect_contains(run.output, "3 tokens (u32)");
  EXPECT_EQ(ids_of("wide.bin"), (Ids{256 + 0x6162, 65792, 256 + 0x6364}));
}

TEST_F(GptCommand, AShortRestGoesIntoTheLastShard) {
  std::string text;
  for (int i = 0; i < 1005; ++i) text += "\x01";  // a token each
  write("short.txt", text);
  ASSERT_EQ(tokens("--shard-tokens 500 --text " + at("short.txt") + " --out " + at("s%d.bin")).code, 0);
  EXPECT_EQ(ids_of("s0.bin").size(), 500u);
  EXPECT_EQ(ids_of("s1.bin").size(), 505u);
  EXPECT_FALSE(std::filesystem::exists(folder / "s2.bin"));
}

TEST_F(GptCommand, OverwritesOnlyIfAskedAndLeavesNoOldShard) {
  const std::string to = " --text " + at("book_*.txt") + " --out " + at("s%d.bin");
  ASSERT_EQ(tokens("--shard-tokens 500" + to).code, 0);
  ASSERT_TRUE(std::filesystem::exists(folder / "s4.bin"));
  const Reply again = tokens("--shard-tokens 2K" + to);
  EXPECT_EQ(again.code, 2);
  expect_contains(again.output, "s0.bin: is there already: give another --out, or --overwrite");
  EXPECT_EQ(ids_of("s0.bin").size(), 500u);
  ASSERT_EQ(tokens("--overwrite --shard-tokens 2K" + to).code, 0);
  Ids joined;
  for (int i = 0; std::filesystem::exists(folder / ("s" + std::to_string(i) + ".bin")); ++i) {
    const Ids part = ids_of("s" + std::to_string(i) + ".bin");
    joined.insert(joined.end(), part.begin(), part.end());
  }
  EXPECT_EQ(joined, expected(tokenizer().special_token("<|endoftext|>")));
  const Reply over = tokens("--overwrite --text " + at("book_*.txt") + " --out " + at("book_%d.txt"));
  EXPECT_EQ(over.code, 2);
  expect_contains(over.output, "book_0.txt, which is read");
}

TEST_F(GptCommand, AFailureLeavesNoFiles) {
  const std::string to = "gpt tokens --tokenizer " + at("mine.bpe") + " --text " + at("book_*.txt") +
                         " --shard-tokens 1K --out " + at("s%d.bin");
  const std::size_t before = folder.file_count();
  // No file may grow beyond 2 KiB, and the signal about it is ignored: writes fail as on a full disk.
  const Reply full = run_ferrite(to, "trap '' XFSZ; ulimit -f 2;");
  EXPECT_EQ(full.code, 2) << full.output;
  expect_contains(full.output, "s0.bin: cannot write it: File too large");
  EXPECT_EQ(folder.file_count(), before);
  write("s2.bin", "mine");
  const Reply later = run_ferrite(to);
  EXPECT_EQ(later.code, 2) << later.output;
  expect_contains(later.output, "s2.bin: is there already");
  EXPECT_EQ(folder.file_count(), before + 1);
}

TEST_F(GptCommand, SaysWhatIsWrong) {
  const auto refused = [&](const std::string& arguments, const std::string& part) {
    const Reply run = tokens(arguments);
    EXPECT_EQ(run.code, 2) << run.output;
    expect_contains(run.output, part);
  };
  const std::string text = "--text " + at("book_0.txt");
  const std::size_t before = folder.file_count();
  refused("--text " + at("none_*.txt") + " --out " + at("a.bin"), "no file matches '");
  refused("--text " + at("none.txt") + " --out " + at("a.bin"), "none.txt: cannot be read");
  refused(text + " --shard-tokens 5 --out " + at("a.bin"), "--shard-tokens needs a number in it");
  refused(text + " --shard-tokens 0 --out " + at("a%d.bin"), "--shard-tokens");
  refused(text + " --shard-tokens 5X --out " + at("a%d.bin"), "--shard-tokens");
  for (const char* name : {"a%s.bin", "a%d%d.bin", "a%", "a%0999d"})
    refused(text + " --out " + at(name), "the number of a file is %d or %04d, once");
  refused(text + " --eot '</s>' --out " + at("a.bin"), "--no-eot");
  refused(text + " --out " + at("no/folder/a.bin"), "no/folder/a.bin");
  EXPECT_EQ(folder.file_count(), before);
  write("empty.txt", "");
  refused("--text " + at("empty.txt") + " --out " + at("a.bin"), "all files are empty");
  write("bad.bpe", "what is this\n");
  const Reply bad = run_ferrite("gpt tokens " + text + " --tokenizer " + at("bad.bpe") + " --out " + at("a"));
  EXPECT_EQ(bad.code, 2);
  expect_contains(bad.output, "bad.bpe");
}

}  // namespace
}  // namespace ferrite::testing
