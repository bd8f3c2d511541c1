// The cache of compiled code: it finds what it kept, and whatever happens to its files is no error.
#include "kernel/compile/binary_cache.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/parse.hpp"
#include "kernel/compile/nvrtc.hpp"

namespace ferrite::kernel {

namespace {

namespace fs = std::filesystem;

struct BinaryCacheTest : testing::Test {
  fs::path folder = fs::temp_directory_path() / ("ferrite_binary_cache_" + std::to_string(::getpid()));
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override {
    fs::permissions(folder, fs::perms::owner_all, ignored);
    fs::remove_all(folder, ignored);
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> list;
    for (const auto& entry : fs::directory_iterator(folder)) list.push_back(entry.path());
    return list;
  }
  static std::string text_of(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::error_code ignored;
};

}  // namespace

TEST_F(BinaryCacheTest, FindsWhatItKept) {
  const std::string code("\0\1binary\n", 9);
  const BinaryCache cache(folder);
  EXPECT_EQ(cache.find("a"), std::nullopt);
  cache.keep("a", code);
  cache.keep("b", "other");
  EXPECT_EQ(cache.find("a"), code);
  EXPECT_EQ(BinaryCache(folder).find("b"), "other");
  EXPECT_EQ(cache.find("c"), std::nullopt);
}

TEST_F(BinaryCacheTest, AFileThatWasChangedOrCutIsAsGoodAsNone) {
  const BinaryCache cache(folder);
  cache.keep("key", "some code");
  const fs::path file = files().at(0);
  const auto whole = fs::file_size(file);
  for (std::uintmax_t size = 0; size < whole; ++size) {
    cache.keep("key", "some code");
    fs::resize_file(file, size);
    EXPECT_EQ(cache.find("key"), std::nullopt) << size;
  }
  cache.keep("key", "some code");
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end).put('X');
  EXPECT_EQ(cache.find("key"), std::nullopt);
  cache.keep("key", "some code");
  EXPECT_EQ(cache.find("key"), "some code");
}

TEST_F(BinaryCacheTest, StaysBelowItsSizeAndDropsWhatWasUsedLongestAgo) {
  const BinaryCache cache(folder, 10'000);
  const std::string code(1000, 'x');
  for (int i = 0; i < 30; ++i) {
    const std::string key = std::to_string(i);
    cache.keep(key, code);
    for (const fs::path& file : files())  // files of one tick of the clock have no order
      fs::last_write_time(file, fs::last_write_time(file) - std::chrono::seconds(1));
    EXPECT_EQ(cache.find("0"), code) << "used all the time";
    std::uintmax_t total = 0;
    for (const fs::path& file : files()) total += fs::file_size(file);
    EXPECT_LE(total, 10'000u);
  }
  EXPECT_EQ(cache.find("1"), std::nullopt);
  EXPECT_EQ(cache.find("29"), code);
}

TEST_F(BinaryCacheTest, AFolderThatCannotBeWrittenIsNoError) {
  std::ofstream(folder) << "a file where the folder should be";
  BinaryCache(folder).keep("key", "code");
  EXPECT_EQ(BinaryCache(folder).find("key"), std::nullopt);
  BinaryCache("/proc/no/such/folder").keep("key", "code");
  BinaryCache({}).keep("key", "code");
  EXPECT_EQ(BinaryCache({}).find("key"), std::nullopt);
}

TEST_F(BinaryCacheTest, SparesNvrtcTheSecondTime) {
  const BinaryCache cache(folder);
  const Module module =
      parse("import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[float]):\n    x[wp.tid()] = 1.0\n");
  const std::string source = emit_cuda(module);
  std::string code;
  try {
    code = cached_cubin(source, 90, cache);
  } catch (const BackendError& e) {
    GTEST_SKIP() << e.what();
  }
  EXPECT_EQ(code.substr(0, 4), "\177ELF");
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(cached_cubin(source, 90, cache), code);
  cached_cubin(source, 80, cache);
  EXPECT_EQ(files().size(), 2u) << "another architecture is another key";
  for (const fs::path& file : files())
    EXPECT_NE(text_of(file).find("--std=c++17"), std::string::npos) << "the options are a part of the key";
  EXPECT_THROW(cached_cubin(source, 10, cache), ValueError);
}

}  // namespace ferrite::kernel
