// ferrite tokenize as a user runs it: from files to files, with limits on memory and disk.
#include <fstream>
#include <sstream>

#include "cli/cli_test.hpp"
#include "ferrite/io/npy.hpp"
#include "ferrite/models/quantile_tokenizer/shards.hpp"
#include "paths.hpp"

namespace ferrite::testing {
namespace {

struct TokenizeCommand : ::testing::Test {
  ScratchFolder folder;
  std::string at(const std::string& name) { return "'" + (folder / name).string() + "'"; }
  std::string text_of(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(folder / name, std::ios::binary).rdbuf();
    return text.str();
  }
  /// Breast cancer (569 rows, 31 columns), which is part of the repository.
  const std::string data = "'" + test_paths::source_folder() + "/examples/data/breast_cancer.csv'";
};

TEST_F(TokenizeCommand, ExplainsItselfWithExamples) {
  for (const char* command : {"fit", "transform", "inspect", "inverse"}) {
    const Reply help = run_ferrite(std::string("tokenize ") + command + " --help");
    EXPECT_EQ(help.code, 0);
    expect_contains(help.output, std::string("Examples:\n  ferrite tokenize ") + command);
  }
}

TEST_F(TokenizeCommand, GoesFromATableToTokensAndBack) {
  Reply run = run_ferrite("tokenize fit " + data + " --bins 16 --out " + at("fit.safetensors"));
  ASSERT_EQ(run.code, 0) << run.output;
  expect_contains(run.output, "31 columns; tokens are u8, 16 is missing, 17 unknown");
  run = run_ferrite("tokenize transform " + data + " --fit " + at("fit.safetensors") + " --out " +
                    at("tokens") + " --shard-rows 200");
  ASSERT_EQ(run.code, 0) << run.output;
  expect_contains(run.output, "569 rows in 3 shards (0 of an earlier run)");
  run = run_ferrite("tokenize inverse " + at("tokens") + " --fit " + at("fit.safetensors") +
                    " --mean --out " + at("back.csv"));
  ASSERT_EQ(run.code, 0) << run.output;
  // What was made of tokens has these tokens.
  run = run_ferrite("tokenize transform " + at("back.csv") + " --fit " + at("fit.safetensors") + " --out " +
                    at("again") + " --shard-rows 200");
  ASSERT_EQ(run.code, 0) << run.output;
  for (const auto& file : quantile_tokenizer::shard_files(folder / "tokens")) {
    const std::string name = file.filename().string();
    EXPECT_EQ(text_of("tokens/" + name), text_of("again/" + name)) << name;
  }
}

TEST_F(TokenizeCommand, FitsManyFilesAsOne) {
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
  };
  write("all.csv", "a,b\n1,x\n2,y\n3,x\n4,z\n5,x\n");
  write("part-1.csv", "a,b\n1,x\n2,y\n");
  write("part-2.csv", "b,a\nx,3\nz,4\nx,5\n");
  const auto fit = [&](const std::string& inputs, const std::string& name) {
    const Reply run = run_ferrite("tokenize fit " + inputs + " --quiet --bins 3 --out " +
                                  at(name + ".safetensors") + " --tokens " + at(name));
    EXPECT_EQ(run.code, 0) << run.output;
    return text_of(name + "/tokens-00000.npy");
  };
  const std::string tokens = fit(at("all.csv"), "one");
  EXPECT_EQ(fit(at("part-1.csv") + " " + at("part-2.csv"), "two"), tokens);
  EXPECT_EQ(fit(at("part-*.csv"), "pattern"), tokens);
  EXPECT_EQ(text_of("one.safetensors"), text_of("two.safetensors"));
  const Reply transformed = run_ferrite("tokenize transform " + at("part-?.csv") + " --fit " +
                                        at("one.safetensors") + " --quiet --out " + at("again"));
  EXPECT_EQ(transformed.code, 0) << transformed.output;
  EXPECT_EQ(text_of("again/tokens-00000.npy"), tokens);

  write("other.csv", "a,c\n1,2\n");
  const Reply differ =
      run_ferrite("tokenize fit " + at("all.csv") + " " + at("other.csv") + " --out " + at("f"));
  EXPECT_EQ(differ.code, 2);
  expect_contains(differ.output, "other.csv: its columns are not those of");
  const Reply none = run_ferrite("tokenize fit " + at("no*.csv") + " --out " + at("f"));
  EXPECT_EQ(none.code, 2);
  expect_contains(none.output, "no file matches '");
}

TEST_F(TokenizeCommand, KeepsTheRowsOfASingleColumn) {
  std::ofstream(folder / "t.csv") << "a\n1.5\nNA\n2.5\nNA\n";
  const std::string fit = " --quiet --fit " + at("fit.safetensors") + " --out ";
  ASSERT_EQ(run_ferrite("tokenize fit " + at("t.csv") + " --bins 2 --out " + at("fit.safetensors")).code, 0);
  ASSERT_EQ(run_ferrite("tokenize transform " + at("t.csv") + fit + at("tokens")).code, 0);
  ASSERT_EQ(run_ferrite("tokenize inverse " + at("tokens") + fit + at("back.csv")).code, 0);
  ASSERT_EQ(run_ferrite("tokenize transform " + at("back.csv") + fit + at("again")).code, 0);
  EXPECT_EQ(text_of("again/tokens-00000.npy"), text_of("tokens/tokens-00000.npy"));
}

TEST_F(TokenizeCommand, InvertsMeansThatRoundOutOfTheirBin) {
  std::ofstream(folder / "t.csv") << "x\n0\n0\n0\n0.1\n0.1\n0.1\n";
  const std::string fit = " --quiet --fit " + at("fit.safetensors") + " --out ";
  ASSERT_EQ(run_ferrite("tokenize fit " + at("t.csv") + " --bins 2 --out " + at("fit.safetensors")).code, 0);
  ASSERT_EQ(run_ferrite("tokenize transform " + at("t.csv") + fit + at("tokens")).code, 0);
  ASSERT_EQ(run_ferrite("tokenize inverse " + at("tokens") + " --mean" + fit + at("back.csv")).code, 0);
  EXPECT_EQ(text_of("back.csv"), text_of("t.csv"));
}

TEST_F(TokenizeCommand, WarnsOfWhatLooksWrongAndNamesTheOption) {
  std::string text = "x,y\n?,0\n";
  for (int i = 1; i < 400; ++i) text += std::to_string(i * 0.5) + "," + std::to_string(i) + "\n";
  std::ofstream(folder / "t.csv") << text;
  const std::string fit = "tokenize fit " + at("t.csv") + " --quiet --out " + at("fit.safetensors");
  const Reply warned = run_ferrite(fit);
  EXPECT_EQ(warned.code, 0);
  expect_contains(warned.output,
                  "warning: column \"x\" is taken as text: of its first 400 fields 399 are numbers");
  expect_contains(warned.output, "--missing '?'");
  EXPECT_EQ(run_ferrite(fit + " --missing '?'").output, "");
  std::ofstream(folder / "s.csv") << "a;b\n1;2\n3;4\n";
  const std::string semicolons = "tokenize fit " + at("s.csv") + " --quiet --out " + at("fit.safetensors");
  expect_contains(run_ferrite(semicolons).output, "--delimiter ';'");
  EXPECT_EQ(run_ferrite(semicolons + " --delimiter ';'").output, "");
  text = "x\n";
  for (int i = 0; i < 400; ++i) text += i % 10 == 0 ? "1.5\n" : "0.5\n";
  std::ofstream(folder / "r.csv") << text;
  const std::string repeats =
      "tokenize fit " + at("r.csv") + " --bins 8 --quiet --out " + at("fit.safetensors");
  expect_contains(run_ferrite(repeats).output,
                  "warning: column 'x': the values from 0.5 to 1.5 have one token");
  EXPECT_EQ(run_ferrite(repeats + " --duplicates merge").output, "");
  std::ofstream(folder / "d.csv") << "a,a\n1,2\n3,4\n";
  const std::string twice = "tokenize fit " + at("d.csv") + " --quiet --out " + at("fit.safetensors");
  const Reply refused = run_ferrite(twice);
  EXPECT_EQ(refused.code, 2);
  expect_contains(refused.output, "--rename-duplicates");
  EXPECT_EQ(run_ferrite(twice + " --rename-duplicates").output, "");
}

TEST_F(TokenizeCommand, FindsColumnsByName) {
  std::ofstream(folder / "t.csv") << "a,day\n1.5,2024-01-01\n2.5,2024-03-01\n";
  std::ofstream(folder / "other.csv") << "id,day,a\nx,2024-01-01,1.5\ny,2024-03-01,2.5\n";
  std::ofstream(folder / "less.csv") << "id,a\nx,1.5\n";
  const std::string fit = " --fit " + at("fit.safetensors") + " --out ";
  ASSERT_EQ(run_ferrite("tokenize fit " + at("t.csv") + " --bins 2 --out " + at("fit.safetensors")).code, 0);
  ASSERT_EQ(run_ferrite("tokenize transform " + at("t.csv") + fit + at("one")).code, 0);
  ASSERT_EQ(run_ferrite("tokenize transform " + at("other.csv") + fit + at("two")).code, 0);
  EXPECT_EQ(text_of("one/tokens-00000.npy"), text_of("two/tokens-00000.npy"));
  const Reply less = run_ferrite("tokenize transform " + at("less.csv") + fit + at("three"));
  EXPECT_EQ(less.code, 2);
  expect_contains(less.output, "columns id, a: there is no day");
  ASSERT_EQ(run_ferrite("tokenize inverse " + at("one") + fit + at("back.csv")).code, 0);
  expect_contains(text_of("back.csv"), ",2024-01-");
}

TEST_F(TokenizeCommand, TurnsBackOnlyTokensOfTheFit) {
  std::ofstream(folder / "t.csv") << "a,b\n1.5,20.5\n2.5,30.5\n3.5,40.5\n";
  std::ofstream(folder / "u.csv") << "a,b\n100.5,20.5\n200.5,30.5\n300.5,40.5\n";
  std::ofstream(folder / "swapped.csv") << "b,a\n20.5,1.5\n30.5,2.5\n40.5,3.5\n";
  for (const char* name : {"t", "u", "swapped"})
    ASSERT_EQ(run_ferrite("tokenize fit " + at(std::string(name) + ".csv") + " --quiet --bins 2 --out " +
                          at(std::string(name) + ".safetensors") + " --tokens " + at(name))
                  .code,
              0);
  const auto inverse = [&](const std::string& fit) {
    return run_ferrite("tokenize inverse " + at("t") + " --fit " + at(fit) + " --out " + at("back.csv"));
  };
  const Reply other = inverse("u.safetensors"), swapped = inverse("swapped.safetensors");
  EXPECT_EQ(other.code, 2);
  expect_contains(other.output, "of another fit of the same columns; give the fit that made these tokens");
  EXPECT_EQ(swapped.code, 2);
  expect_contains(swapped.output, R"(its columns are ["a","b"], and those of the fit ["b","a"]; give)");
  EXPECT_FALSE(std::filesystem::exists(folder / "back.csv"));
  EXPECT_EQ(inverse("t.safetensors").code, 0);
}

TEST_F(TokenizeCommand, WritesFitAndTokensInOneGo) {
  const Reply run = run_ferrite("tokenize fit " + data + " --like sklearn --bins 10 --out " +
                                at("fit.safetensors") + " --tokens " + at("one"));
  ASSERT_EQ(run.code, 0) << run.output;
  ASSERT_EQ(run_ferrite("tokenize transform " + data + " --quiet --fit " + at("fit.safetensors") + " --out " +
                        at("two"))
                .code,
            0);
  EXPECT_EQ(text_of("one/tokens-00000.npy"), text_of("two/tokens-00000.npy"));
}

TEST_F(TokenizeCommand, KeepsTheFitWhoseShardsItMayNotReplace) {
  std::ofstream(folder / "t.csv") << "a\n1.5\n2.5\n3.5\n4.5\n";
  const std::string fit = "tokenize fit " + at("t.csv") + " --quiet --out " + at("fit.safetensors") +
                          " --tokens " + at("tokens") + " --bins ";
  ASSERT_EQ(run_ferrite(fit + "2").code, 0);
  const std::string before = text_of("fit.safetensors");
  const Reply refused = run_ferrite(fit + "3");
  EXPECT_EQ(refused.code, 2);
  expect_contains(refused.output, "holds shards of another fit");
  EXPECT_EQ(text_of("fit.safetensors"), before);
  EXPECT_EQ(run_ferrite(fit + "3 --overwrite").code, 0);
  EXPECT_NE(text_of("fit.safetensors"), before);
  const Reply inverse = run_ferrite("tokenize inverse " + at("tokens") + " --fit " + at("fit.safetensors") +
                                    " --out " + at("back.csv"));
  EXPECT_EQ(inverse.code, 0) << inverse.output;
}

TEST_F(TokenizeCommand, FindsAFitThatCannotBeWrittenBeforeItReads) {
  std::ofstream(folder / "late.csv") << "a\n1.5\n2.5\noops\n";
  const Reply run = run_ferrite("tokenize fit " + at("late.csv") + " --inspected-rows 2 --out " +
                                at("none/fit.safetensors") + " --tokens " + at("tokens"));
  EXPECT_EQ(run.code, 2);
  expect_contains(run.output, "none/fit.safetensors");
  EXPECT_FALSE(std::filesystem::exists(folder / "tokens"));
}

TEST_F(TokenizeCommand, InspectsAFitAsATableAndAPage) {
  ASSERT_EQ(run_ferrite("tokenize fit " + data + " --quiet --out " + at("fit.safetensors")).code, 0);
  const Reply run = run_ferrite("tokenize inspect " + at("fit.safetensors") + " --html " + at("fit.html"));
  ASSERT_EQ(run.code, 0) << run.output;
  expect_contains(run.output, "integer_category");
  const std::string page = text_of("fit.html");
  for (const char* part : {"<!doctype html>", "<svg", "<rect", "</html>"}) expect_contains(page, part);
  EXPECT_EQ(page.find("http"), std::string::npos);  // self-contained
}

TEST_F(TokenizeCommand, SaysWhatIsWrongAndWritesNothing) {
  std::ofstream(folder / "bad.csv") << "a,b\n1,2\n3\n";
  Reply run = run_ferrite("tokenize fit " + at("bad.csv") + " --out " + at("fit.safetensors"));
  EXPECT_EQ(run.code, 2);
  expect_contains(run.output, "bad.csv:3:1, row of 1 fields: 2 are needed");
  EXPECT_EQ(folder.file_count(), 1u);
  EXPECT_EQ(run_ferrite("tokenize fit " + data + " --bins 1 --out " + at("fit.safetensors")).code, 2);
  EXPECT_EQ(run_ferrite("tokenize fit " + data + " --method best --out " + at("fit.safetensors")).code, 2);
  for (const char* memory : {"-1", "nan", "1e300"})
    EXPECT_EQ(run_ferrite("tokenize fit " + data + " --memory=" + memory + " --out " + at("f")).code, 2);
  run = run_ferrite("tokenize inspect " + data);
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST_F(TokenizeCommand, FitsATableLargerThanItsMemory) {
  constexpr std::int64_t rows = 1'500'000, columns = 12;  // 144 MB as doubles
  write_npy(folder / "x.npy", HostTensor::make(DType::f32, {rows, columns}, [](std::span<std::byte> bytes) {
              auto* x = reinterpret_cast<float*>(bytes.data());
              for (std::int64_t i = 0; i < rows * columns; ++i)
                x[i] = static_cast<float>((i * 2654435761) % 1000003) / 1000;
            }));
  const std::string fit = "tokenize fit " + at("x.npy") + " --quiet --chunk-bytes 4000000 --bins 50 --out ";
  const std::string limit = "ulimit -d 110000; FERRITE_NUM_THREADS=2";
  EXPECT_NE(run_ferrite(fit + at("no.safetensors"), limit).code, 0);  // the limit is one
  const Reply run = run_ferrite(fit + at("streamed.safetensors") + " --memory 0.004", limit);
  ASSERT_EQ(run.code, 0) << run.output;
  ASSERT_EQ(run_ferrite(fit + at("whole.safetensors")).code, 0);
  const auto streamed = quantile_tokenizer::TableTokenizer::load(folder / "streamed.safetensors");
  const auto whole = quantile_tokenizer::TableTokenizer::load(folder / "whole.safetensors");
  for (std::size_t c = 0; c < columns; ++c) {
    EXPECT_EQ(streamed.numeric().columns()[c].edges, whole.numeric().columns()[c].edges) << c;
    EXPECT_EQ(streamed.numeric().columns()[c].bin_counts, whole.numeric().columns()[c].bin_counts) << c;
  }
}

TEST_F(TokenizeCommand, ResumesAfterTheDiskWasFull) {
  std::string text = "a,b\n";
  for (int i = 0; i < 40'000; ++i)
    text += std::to_string(i * 37 % 1009) + ",x" + std::to_string(i % 7) + "\n";
  std::ofstream(folder / "t.csv") << text;
  ASSERT_EQ(run_ferrite("tokenize fit " + at("t.csv") + " --quiet --out " + at("fit.safetensors")).code, 0);
  const std::string transform =
      "tokenize transform " + at("t.csv") + " --fit " + at("fit.safetensors") + " --out ";
  // No file may grow beyond 16 KiB, and the signal about it is ignored: writes fail as on a full disk.
  const Reply full =
      run_ferrite(transform + at("tokens") + " --shard-rows 15000", "trap '' XFSZ; ulimit -f 16;");
  EXPECT_EQ(full.code, 2);
  expect_contains(full.output, "tokens-00000.npy");
  EXPECT_FALSE(std::filesystem::exists(folder / "tokens/tokens-00000.npy"));
  EXPECT_FALSE(std::filesystem::exists(folder / "tokens/index.json"));
  const Reply again = run_ferrite(transform + at("tokens") + " --shard-rows 15000");
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_EQ(quantile_tokenizer::shard_files(folder / "tokens").size(), 3u);
}

}  // namespace
}  // namespace ferrite::testing
