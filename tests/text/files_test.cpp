// The three formats: round trips, what other programs write, hostile and damaged files.
#include "text_test.hpp"

namespace ferrite::text {
namespace {

using testing::expect_error;
using testing::expect_same_ids;
using testing::gpt2;
using testing::gpt2_merges;
using testing::ScratchFolder;
using testing::slurp;
using testing::spill;

void expect_rejected(std::string_view content, std::initializer_list<std::string_view> parts) {
  expect_error<ParseError>([&] { BytePairTokenizer::parse(content, "bad"); }, parts);
  expect_error<ParseError>([&] { BytePairTokenizer::parse(content, "bad"); }, {"[read_tokenizer] bad, "});
}

TEST(BpeFiles, MergesRoundTripByteForByte) {
  const ScratchFolder folder;
  gpt2().save(folder / "vocab.bpe");
  EXPECT_EQ(slurp(folder / "vocab.bpe"), gpt2_merges());
  expect_same_ids(BytePairTokenizer::load(folder / "vocab.bpe"), gpt2());
}

TEST(BpeFiles, EveryFormatLeadsToEveryOther) {
  const ScratchFolder folder;
  gpt2().save(folder / "gpt2.tiktoken");
  gpt2().save(folder / "tokenizer.json");
  for (const char* name : {"gpt2.tiktoken", "tokenizer.json"}) {
    const auto tokenizer = BytePairTokenizer::load(folder / name);
    expect_same_ids(tokenizer, gpt2());
    tokenizer.save(folder / "merges.txt");
    EXPECT_EQ(slurp(folder / "merges.txt"), gpt2_merges()) << name;
    tokenizer.save(folder / "again.tiktoken");
    EXPECT_EQ(slurp(folder / "again.tiktoken"), slurp(folder / "gpt2.tiktoken")) << name;
    tokenizer.save(folder / "again.json");
    expect_same_ids(BytePairTokenizer::load(folder / "again.json"), gpt2());
    tokenizer.save(folder / "AGAIN.TIKTOKEN");
    EXPECT_EQ(slurp(folder / "AGAIN.TIKTOKEN"), slurp(folder / "gpt2.tiktoken")) << name;
  }
}

TEST(BpeFiles, MergesMayHaveNoHeaderAndOtherLineEnds) {
  const auto plain = BytePairTokenizer::parse("a b\nab c\n", "x", {});
  EXPECT_EQ(plain.vocabulary_size(), 258);
  EXPECT_EQ(plain.encode("abcab"), (std::vector<Token>{257, 256}));
  expect_same_ids(plain, BytePairTokenizer::parse("#version: 0.2\r\na b\r\nab c\r\n", "x", {}));
}

TEST(BpeFiles, AMergeMayLeadToATokenThatThereIs) {
  const ScratchFolder folder;
  const auto tokenizer = BytePairTokenizer::parse("a b\nb c\nab c\na bc\nabc d\n", "x", {});
  EXPECT_EQ(tokenizer.vocabulary_size(), 260);
  tokenizer.save(folder / "x.bpe");
  EXPECT_EQ(slurp(folder / "x.bpe"), "#version: 0.2\na b\nb c\nab c\na bc\nabc d\n");
  expect_error<ValueError>([&] { tokenizer.save(folder / "x.tiktoken"); }, {"order of the merges", ".json"});
  tokenizer.save(folder / "x.json");
  expect_same_ids(BytePairTokenizer::load(folder / "x.json"), tokenizer);
}

TEST(BpeFiles, RejectsBadMerges) {
  expect_rejected("", {"0 bytes", "empty"});
  expect_rejected("#version: 0.2\na b\nab", {"line 3", "cut short"});
  expect_rejected("#version: 0.2\na b\nabc d\n", {"line 3", "\"abc\" is not a token"});
  expect_rejected("a b\nab\n", {"line 2, \"ab\"", "two fields"});
  expect_rejected("a b\n\nab c\n", {"line 2, \"\"", "two fields"});
  expect_rejected("a b c\n", {"line 1", "two fields"});
  expect_rejected(" a\n", {"line 1", "two fields"});
  expect_rejected("a \n", {"line 1", "two fields"});
  expect_rejected("\u4f60 a\n", {"line 1", "is not a token"});
  expect_rejected("\xFF a\n", {"line 1", "\\xff"});
}

/// The ranks of the bytes, and then these lines.
std::string ranks(std::string_view lines = "") {
  const ScratchFolder folder;
  BytePairTokenizer::parse("#version: 0.2\n", "x").save(folder / "x.tiktoken");
  return slurp(folder / "x.tiktoken") + std::string(lines);
}

TEST(BpeFiles, RanksMergeWhateverFormsAToken) {
  // "YWI=" is ab, "YmM=" bc, "YWJj" abc, "YWJjZA==" abcd.
  const auto tokenizer = BytePairTokenizer::parse(ranks("YmM= 256\nYWI= 257\nYWJj 258\n"), "x", {});
  EXPECT_EQ(tokenizer.encode("abc"), (std::vector<Token>{258}));
  EXPECT_EQ(tokenizer.decode(std::vector<Token>{257, 256}), "abbc");
  // No merges lead to abcd, but the word is a token.
  const auto whole = BytePairTokenizer::parse(ranks("YWJjZA== 256\n"), "x", {});
  EXPECT_EQ(whole.encode("abcd"), (std::vector<Token>{256}));
  EXPECT_EQ(whole.encode("abcde").size(), 5u);
}

TEST(BpeFiles, SpecialTokensFillHolesOfRanks) {
  const auto tokenizer = BytePairTokenizer::parse(ranks("YWI= 258\n"), "x", {"<end>"});
  EXPECT_EQ(tokenizer.special_token("<end>"), 256);
  EXPECT_EQ(tokenizer.vocabulary_size(), 259);
  expect_error<ValueError>([&] { tokenizer.decode(std::vector<Token>{257}); },
                           {"id 257", "no token of this id"});
}

TEST(BpeFiles, RejectsBadRanks) {
  expect_rejected(ranks("YWI= 256"), {"line 257", "cut short"});
  expect_rejected(ranks("YWI 256\n"), {"line 257, \"YWI\"", "base64"});
  expect_rejected(ranks("YW*= 256\n"), {"line 257", "base64"});
  expect_rejected(ranks("YWI= x\n"), {"line 257, rank \"x\"", "a number"});
  expect_rejected(ranks("YWI= -1\n"), {"line 257, rank \"-1\"", "a number"});
  expect_rejected(ranks("YWI= 255\n"), {"line 257, id 255", "another token"});
  expect_rejected(ranks("YQ== 256\n"), {"line 257", "are the token"});
  expect_rejected(ranks("YWI= 4000000000\n"), {"id 4000000000", "must be below 1514"});
  expect_rejected(ranks().substr(0, 1000), {"cut short"});
  expect_rejected("YWI= 0\n", {"byte 0x00", "needs a token"});
}

std::string json_file(std::string_view from, std::string_view to) {
  const ScratchFolder folder;
  BytePairTokenizer::parse("a b\nab c\n", "x").save(folder / "x.json");
  std::string content = slurp(folder / "x.json");
  const std::size_t at = content.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return content.replace(at, from.size(), to);
}

TEST(BpeFiles, ReadsBothFormsOfMergesAndAddedTokens) {
  const auto expected = BytePairTokenizer::parse("a b\nab c\n", "x");
  expect_same_ids(BytePairTokenizer::parse(json_file("", ""), "x"), expected);
  expect_same_ids(BytePairTokenizer::parse(json_file(R"(["a","b"],["ab","c"])", R"("a b","ab c")"), "x"),
                  expected);
  // An added token may be missing in the vocabulary.
  expect_same_ids(BytePairTokenizer::parse(json_file(R"(,"<|endoftext|>":258)", ""), "x"), expected);
}

TEST(BpeFiles, RefusesPartsOfTokenizersThatItDoesNotHave) {
  const auto refuse = [](std::string_view from, std::string_view to,
                         std::initializer_list<std::string_view> parts) {
    expect_rejected(json_file(from, to), parts);
  };
  refuse(R"("normalizer":null)", R"("normalizer":{"type":"NFC"})", {"normalizer", "only null is"});
  refuse(R"("truncation":null)", R"("truncation":{"max_length":8})", {"truncation", "only null is"});
  refuse(R"("type":"ByteLevel")", R"("type":"Whitespace")", {"pre_tokenizer", "\"Whitespace\"", "ByteLevel"});
  refuse(R"("add_prefix_space":false)", R"("add_prefix_space":true)", {"add_prefix_space", "only false"});
  refuse(R"("use_regex":true)", R"("use_regex":false)", {"pre_tokenizer.use_regex"});
  refuse(R"("type":"BPE")", R"("type":"WordPiece")", {"model.type", "\"BPE\""});
  refuse(R"("dropout":null)", R"("dropout":0.1)", {"model.dropout"});
  refuse(R"("byte_fallback":false)", R"("byte_fallback":true)", {"model.byte_fallback"});
  refuse(R"("lstrip":false)", R"("lstrip":true)", {"added_tokens[0].lstrip"});
}

TEST(BpeFiles, RejectsBadTokenizers) {
  const auto refuse = [](std::string_view from, std::string_view to,
                         std::initializer_list<std::string_view> parts) {
    expect_rejected(json_file(from, to), parts);
  };
  expect_rejected("{", {"byte", "must be JSON"});
  expect_rejected("{}", {"pre_tokenizer"});
  expect_rejected(std::string_view("{}\0", 3), {"byte 2", "zero byte"});
  refuse(R"("model":{)", R"("model":1,"other":{)", {"model", "an object"});
  refuse(R"("vocab":{)", R"("vocab":[],"other":{)", {"model.vocab", "an object"});
  refuse(R"("merges":[)", R"("merges":{},"other":[)", {"model.merges", "an array"});
  refuse(R"(["a","b"])", R"(["a","zz"])", {"model.merges[0]", "\"zz\" is not a token"});
  refuse(R"(["a","b"])", R"(["a","c"])", {"model.merges[0]", "\"ac\" is not a token"});
  refuse(R"(["a","b"])", R"(["a"])", {"model.merges[0]", "left right"});
  refuse(R"(["a","b"])", R"("ab")", {"model.merges[0]", "left right"});
  refuse(R"("ab":256)", R"("ab":2560000)", {"\"ab\", id 2560000", "must be below"});
  refuse(R"("ab":256)", R"("ab":-1)", {"\"ab\"", "a number"});
  refuse(R"("ab":256)", R"("ab":257)", {"another token"});
  refuse(R"("ab":256)", R"("a b":256)", {"\"a b\"", "letters of byte-level"});
  refuse(R"("<|endoftext|>":258)", R"("<|endoftext|>":259)", {"added_tokens gives it the id 258"});
  refuse(R"("id":258)", R"("id":"258")", {"added_tokens[0].id"});
  refuse(R"("!":0,)", "", {"byte 0x21", "needs a token"});
}

TEST(BpeFiles, NamesFilesThatCannotBeRead) {
  const ScratchFolder folder;
  expect_error<IoError>([&] { BytePairTokenizer::load(folder / "none.bpe"); }, {"none.bpe", "No such file"});
  spill(folder / "half.bpe", "#version: 0.2\na");
  expect_error<ParseError>([&] { BytePairTokenizer::load(folder / "half.bpe"); }, {"half.bpe, line 2"});
}

TEST(BpeFiles, RefusesBadSpecialTokens) {
  const auto refuse = [](const std::vector<std::string>& special,
                         std::initializer_list<std::string_view> parts) {
    expect_error<ValueError>([&] { BytePairTokenizer::parse("a b\n", "x", special); }, parts);
  };
  refuse({""}, {"must not be empty"});
  refuse({"<x>", "<x>"}, {"\"<x>\"", "twice"});
  refuse({"ab"}, {"\"ab\"", "already"});
}

}  // namespace
}  // namespace ferrite::text
