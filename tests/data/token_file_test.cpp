// Token files: formats built byte by byte, what the writer writes, and files that are damaged or hostile.
#include "ferrite/data/token_file.hpp"

#include <signal.h>
#include <sys/resource.h>

#include <numeric>

#include "io/io_test.hpp"

namespace ferrite::data {
namespace {

using testing::expect_error;
using testing::le;
using testing::ScratchFolder;
using testing::slurp;
using testing::spill;

using Ids = std::vector<std::int32_t>;

Ids all_of(const TokenFile& file) {
  Ids ids(static_cast<std::size_t>(file.size()));
  file.copy(0, ids);
  return ids;
}

template <class T>
std::string bare(std::initializer_list<T> tokens) {
  std::string out;
  for (const T token : tokens) out += le(token);
  return out;
}

std::string bin_header(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::string header = le(magic) + le(version) + le(count);
  header.resize(1024, '\0');
  return header;
}

/// As numpy.save writes it; `gap` is the number of spaces at the end of the header.
std::string npy(const std::string& descr, const std::string& shape, const std::string& data, char version = 1,
                std::size_t gap = 1) {
  const std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }" +
                           std::string(gap, ' ') + "\n";
  std::string out = std::string("\x93NUMPY") + version + '\0';
  out += version == 1 ? le(static_cast<std::uint16_t>(dict.size()))
                      : le(static_cast<std::uint32_t>(dict.size()));
  return out + dict + data;
}

const std::string u16_tokens = bare<std::uint16_t>({15496, 995, 50256, 65535});
const Ids u16_ids{15496, 995, 50256, 65535};

TEST(TokenFile, ReadsTheFilesOfLlmC) {
  const ScratchFolder folder;
  spill(folder / "gpt2.bin", bin_header(20240520, 1, 4) + u16_tokens);
  const TokenFile small = TokenFile::open(folder / "gpt2.bin");
  EXPECT_EQ(small.size(), 4);
  EXPECT_EQ(small.dtype(), DType::u16);
  EXPECT_EQ(small.path(), folder / "gpt2.bin");
  EXPECT_EQ(all_of(small), u16_ids);
  spill(folder / "llama3.bin", bin_header(20240801, 7, 3) + bare<std::uint32_t>({128000, 1, 70000}));
  const TokenFile large = TokenFile::open(folder / "llama3.bin");
  EXPECT_EQ(large.dtype(), DType::u32);
  EXPECT_EQ(all_of(large), (Ids{128000, 1, 70000}));
}

TEST(TokenFile, ReadsNpyOfEveryVersionAndAtAnyByte) {
  const ScratchFolder folder;
  for (const char version : {1, 2, 3})
    for (const std::size_t gap : {1, 2, 3, 4}) {  // the tokens begin at odd bytes too
      spill(folder / "t.npy", npy("<u2", "(4,)", u16_tokens, version, gap));
      EXPECT_EQ(all_of(TokenFile::open(folder / "t.npy")), u16_ids) << int{version} << " " << gap;
    }
  spill(folder / "t.npy", npy("<u4", "(2,)", bare<std::uint32_t>({7, 100000})));
  EXPECT_EQ(all_of(TokenFile::open(folder / "t.npy")), (Ids{7, 100000}));
  spill(folder / "t.npy", npy("<i4", "(2,)", bare<std::int32_t>({8, 99})));
  EXPECT_EQ(TokenFile::open(folder / "t.npy").dtype(), DType::i32);
  EXPECT_EQ(all_of(TokenFile::open(folder / "t.npy")), (Ids{8, 99}));
}

TEST(TokenFile, ReadsBareTokensOnlyOfANamedDtype) {
  const ScratchFolder folder;
  spill(folder / "train.bin", u16_tokens);
  EXPECT_EQ(all_of(TokenFile::open(folder / "train.bin", DType::u16)), u16_ids);
  EXPECT_EQ(TokenFile::open(folder / "train.bin", DType::u32).size(), 2);
  spill(folder / "wide.bin", bare<std::uint32_t>({100000, 2}));
  EXPECT_EQ(all_of(TokenFile::open(folder / "wide.bin", DType::u32)), (Ids{100000, 2}));
  expect_error<ParseError>([&] { TokenFile::open(folder / "train.bin"); },
                           {"[token file]", "train.bin", "begins with \"\\x88<\\xe3\\x03", "20240520",
                            "20240801", ".npy of u16, u32 or i32", "with_dtype"});
  expect_error<DTypeError>([&] { TokenFile::open(folder / "train.bin", DType::i64); },
                           {"train.bin", "i64", "u16 or u32"});
  spill(folder / "odd.bin", u16_tokens + "x");
  expect_error<ParseError>([&] { TokenFile::open(folder / "odd.bin", DType::u16); },
                           {"odd.bin", "9 bytes", "multiple of 2"});
}

TEST(TokenFile, ADtypeDoesNotHideAHeader) {
  const ScratchFolder folder;
  spill(folder / "a.bin", bin_header(20240520, 1, 4) + u16_tokens);
  expect_error<ParseError>([&] { TokenFile::open(folder / "a.bin", DType::u16); },
                           {"a.bin", "a header of llm.c", "leave the dtype out"});
  spill(folder / "a.npy", npy("<u2", "(4,)", u16_tokens));
  expect_error<ParseError>([&] { TokenFile::open(folder / "a.npy", DType::u16); }, {"a header of .npy"});
  spill(folder / "b.bin", le(20240520) + le(2) + u16_tokens);  // the magic alone is two ordinary tokens
  EXPECT_EQ(TokenFile::open(folder / "b.bin", DType::u16).size(), 8);
}

TEST(TokenFile, SaysWhatIsWrongWithADamagedFile) {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& content, std::initializer_list<std::string_view> parts) {
    spill(folder / "bad.bin", content);
    expect_error<ParseError>([&] { TokenFile::open(folder / "bad.bin"); }, {"[token file]", "bad.bin"});
    expect_error<ParseError>([&] { TokenFile::open(folder / "bad.bin"); }, parts);
  };
  refused("", {"the file is empty"});
  refused("abc", {"begins with \"abc\""});
  refused("once upon a time", {"begins with \"once upo\"", "ferrite gpt tokens"});
  refused(le(20240520) + le(1), {"8 bytes", "needs 1024", "cut short"});
  refused(bin_header(20240520, 1, 4).substr(0, 1023), {"1023 bytes", "needs 1024"});
  refused(bin_header(20240520, 1, 5) + u16_tokens,
          {"5 tokens of 2 bytes", "1034 bytes", "has 1032", "cut short"});
  refused(bin_header(20240520, 1, 3) + u16_tokens, {"something follows the tokens"});
  refused(bin_header(20240801, 7, 4) + u16_tokens, {"4 tokens of 4 bytes", "cut short"});
  refused(bin_header(20240801, 7, 0x7fffffff) + u16_tokens, {"2147483647 tokens", "cut short"});
  refused(bin_header(20240520, 1, -1) + u16_tokens, {"-1 tokens", "must not be negative"});
  refused(bin_header(20240520, 2, 4) + u16_tokens, {"version 2", "version 1 is known"});
  refused(bin_header(20240801, 1, 4) + u16_tokens, {"version 1", "version 7 is known"});
  expect_error<IoError>([&] { TokenFile::open(folder / "none.bin"); }, {"none.bin", "No such file"});
}

TEST(TokenFile, RefusesAFileThatIsCutAnywhere) {
  const ScratchFolder folder;
  for (const std::string& whole : {bin_header(20240520, 1, 4) + u16_tokens, npy("<u2", "(4,)", u16_tokens),
                                   npy("<u2", "(4,)", u16_tokens, 3)}) {
    spill(folder / "cut", whole);
    EXPECT_EQ(all_of(TokenFile::open(folder / "cut")), u16_ids);
    for (std::size_t size = whole.size(); size-- > 0;) {
      std::filesystem::resize_file(folder / "cut", size);
      EXPECT_THROW(TokenFile::open(folder / "cut"), ParseError) << size;
    }
  }
}

TEST(TokenFile, SaysWhatIsWrongWithAnNpyFile) {
  const ScratchFolder folder;
  const auto refused = [&](const std::string& content, std::initializer_list<std::string_view> parts) {
    spill(folder / "bad.npy", content);
    expect_error<ParseError>([&] { TokenFile::open(folder / "bad.npy"); }, parts);
  };
  refused(npy("<u2", "(5,)", u16_tokens), {"bad.npy", "5 tokens of u16"});
  refused(npy("<u2", "(3,)", u16_tokens), {"3 tokens of u16"});
  refused(npy("<u2", "(2, 2)", u16_tokens), {"one axis", "reshape(-1)"});
  refused(npy("<i8", "(1,)", u16_tokens), {"tokens of i64", "astype(numpy.uint16)"});
  refused(npy(">u2", "(4,)", u16_tokens), {"big-endian"});
  refused(npy("<u2", "(9223372036854775807,)", u16_tokens), {"bad.npy"});
  refused(npy("<u2", "(4,)", u16_tokens).substr(0, 40), {"bad.npy", "header"});
  refused("\x93NUMPY", {"bad.npy", "header"});
}

TEST(TokenFile, ChecksIdsWhileItCopies) {
  const ScratchFolder folder;
  spill(folder / "a.bin", bin_header(20240520, 1, 4) + u16_tokens);
  const TokenFile file = TokenFile::open(folder / "a.bin");
  Ids out(2);
  file.copy(1, out, 50257);
  EXPECT_EQ(out, (Ids{995, 50256}));
  expect_error<ValueError>([&] { file.copy(1, out, 50256); },
                           {"a.bin, token 2: id 50256", "0 to 50255", "another tokenizer"});
  expect_error<ValueError>([&] { file.copy(3, out); }, {"a.bin", "2 tokens from number 3 on", "there are 4"});
  expect_error<ValueError>([&] { file.copy(-1, out); }, {"from number -1"});
  spill(folder / "b.npy", npy("<i4", "(2,)", bare<std::int32_t>({3, -5})));
  expect_error<ValueError>([&] { TokenFile::open(folder / "b.npy").copy(0, out); }, {"token 1: id -5"});
  spill(folder / "c.bin", bin_header(20240801, 7, 2) + bare<std::uint32_t>({0xffffffff, 1}));
  expect_error<ValueError>([&] { TokenFile::open(folder / "c.bin").copy(0, out); },
                           {"token 0: id 4294967295", "0 to 2147483647"});
}

TEST(TokenFileWriter, WritesTheFilesOfLlmC) {
  const ScratchFolder folder;
  TokenFileWriter out(folder / "a.bin", DType::u16);
  out.write(Ids{15496, 995});
  out.write(Ids{});
  out.write(Ids{50256, 65535});
  EXPECT_EQ(out.size(), 4);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.bin"));
  out.commit();
  EXPECT_EQ(slurp(folder / "a.bin"), bin_header(20240520, 1, 4) + u16_tokens);
  TokenFileWriter wide(folder / "b.bin", DType::u32);
  wide.write(Ids{128000, 1});
  wide.commit();
  EXPECT_EQ(slurp(folder / "b.bin"), bin_header(20240801, 7, 2) + bare<std::uint32_t>({128000, 1}));
  EXPECT_EQ(folder.file_count(), 2u);
}

TEST(TokenFileWriter, WritesMoreThanItsBuffer) {
  const ScratchFolder folder;
  Ids ids(1'500'001);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 7919 % 50257);
  TokenFileWriter out(folder / "a.bin", DType::u16);
  const std::span<const std::int32_t> all(ids);
  for (std::size_t at = 0; at < all.size(); at += 70'001)
    out.write(all.subspan(at, std::min<std::size_t>(70'001, all.size() - at)));
  out.commit();
  EXPECT_EQ(all_of(TokenFile::open(folder / "a.bin")), ids);
}

TEST(TokenFileWriter, RefusesWhatTheFormatCannotHold) {
  const ScratchFolder folder;
  TokenFileWriter out(folder / "a.bin", DType::u16);
  out.write(Ids{1});
  expect_error<ValueError>(
      [&] {
        out.write(Ids{2, 65536});
      },
      {"a.bin, token 2: id 65536", "u16 holds 0 to 65535"});
  expect_error<ValueError>([&] { out.write(Ids{-1}); }, {"token 1: id -1"});
  out.write(Ids{3});
  out.commit();
  EXPECT_EQ(all_of(TokenFile::open(folder / "a.bin")), (Ids{1, 3}));
  expect_error<DTypeError>([&] { TokenFileWriter(folder / "b.bin", DType::i32); }, {"b.bin", "u16 or u32"});
  EXPECT_EQ(token_dtype(65536), DType::u16);
  EXPECT_EQ(token_dtype(65537), DType::u32);
  expect_error<ValueError>([] { token_dtype(0); }, {"vocabulary 0"});
}

TEST(TokenFileWriter, AFullDiskLeavesNothingBehind) {
  const ScratchFolder folder;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{10'000, before.rlim_max};  // writes beyond it fail, as on a full disk
  ::setrlimit(RLIMIT_FSIZE, &limit);
  {
    TokenFileWriter out(folder / "a.bin", DType::u16);
    out.write(Ids(10'000, 5));
    expect_error<IoError>([&] { out.commit(); }, {"a.bin", "cannot write it"});
    EXPECT_EQ(folder.file_count(), 0u);
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(folder.file_count(), 0u);
  { TokenFileWriter(folder / "b.bin", DType::u16).write(Ids{1}); }  // never committed
  EXPECT_EQ(folder.file_count(), 0u);
}

}  // namespace
}  // namespace ferrite::data
