// The file of a fit: every bit comes back, and what is damaged is refused.
#include <gtest/gtest.h>

#include <fstream>

#include "ferrite/io/safetensors.hpp"
#include "ferrite/models/quantile_tokenizer/quantile_tokenizer.hpp"
#include "models/quantile_tokenizer/nasty_columns.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {
namespace {

using namespace quantile_tokenizer;

struct TokenizerFile : ::testing::Test {
  ScratchFolder folder;
  Cpu b;
  Tensor<Cpu> x = matrix(b, nasty(300, 13), nasty_columns, DType::f64);

  std::string error_of(const std::filesystem::path& path) {
    try {
      QuantileTokenizer::load(path);
    } catch (const ParseError& e) {
      return e.what();
    }
    return "no ParseError";
  }
};

TEST_F(TokenizerFile, HoldsEveryBitOfAFit) {
  const auto config = TokenizerConfig{}
                          .with_bins(20)
                          .with_closed(Closed::right)
                          .with_method(QuantileMethod::averaged_inverted_cdf)
                          .with_duplicates(DuplicateEdges::merge)
                          .with_statistics(true);
  const auto fitted = QuantileTokenizer::fit(x, config);
  fitted.save(folder / "fit.safetensors");
  const auto loaded = QuantileTokenizer::load(folder / "fit.safetensors");
  EXPECT_EQ(loaded.config(), config);
  EXPECT_EQ(loaded.report(), fitted.report());
  for (std::size_t c = 0; c < nasty_columns; ++c) {
    EXPECT_EQ(loaded.columns()[c].edges, fitted.columns()[c].edges);
    EXPECT_EQ(loaded.columns()[c].bin_counts, fitted.columns()[c].bin_counts);
  }
  EXPECT_EQ(loaded.transform(x).to_vector<int>(), fitted.transform(x).to_vector<int>());
}

TEST_F(TokenizerFile, OfTheVersionWithRankErrorsIsRead) {
  const auto path = folder / "fit.safetensors";
  const auto fitted = QuantileTokenizer::fit(x);
  fitted.save(path);
  SafeTensors file = read_safetensors(path);
  file.metadata["version"] = "1";
  std::string& json = file.metadata["tokenizer"];
  json.replace(json.find("\"statistics\""), 0, "\"rank_error\":0.01,");
  const std::vector<double> summary{1, 2, 3};
  file.tensors.emplace("summary_values", HostTensor::from(std::span<const double>(summary), {3}));
  write_safetensors(path, file);
  EXPECT_EQ(QuantileTokenizer::load(path).transform(x).to_vector<int>(),
            fitted.transform(x).to_vector<int>());
}

TEST_F(TokenizerFile, IsRefusedWhenNewerOrDamaged) {
  const auto path = folder / "fit.safetensors";
  QuantileTokenizer::fit(x).save(path);
  const SafeTensors whole = read_safetensors(path);
  const auto expect = [&](const SafeTensors& file, const std::string& part) {
    write_safetensors(path, file);
    EXPECT_NE(error_of(path).find(part), std::string::npos) << error_of(path) << "\nhas no " << part;
  };
  SafeTensors file = whole;
  file.metadata["version"] = "3";
  expect(file, "version 3: this ferrite reads versions up to 2");
  file = whole;
  file.metadata.erase("format");
  expect(file, "is not that of a tokenizer's fit");
  file = whole;
  file.metadata["tokenizer"] = file.metadata["tokenizer"].substr(0, 40);
  expect(file, "is not JSON");
  file = whole;
  file.tensors.erase("edges");
  expect(file, "edges: the tensor is missing");
  file = whole;
  std::vector<double> edges(file.tensors["edges"].as<double>().begin(),
                            file.tensors["edges"].as<double>().end());
  edges.pop_back();
  file.tensors["edges"] =
      HostTensor::from(std::span<const double>(edges), {static_cast<std::int64_t>(edges.size())});
  expect(file, "edges: has fewer elements");
  file = whole;
  edges.push_back(edges.back());
  std::swap(edges.front(), edges[5]);
  file.tensors["edges"] =
      HostTensor::from(std::span<const double>(edges), {static_cast<std::int64_t>(edges.size())});
  expect(file, "edges in order");
  file = whole;
  file.tensors["range"] = HostTensor::make(DType::f64, file.tensors["range"].shape(), [](auto bytes) {
    for (std::byte& byte : bytes) byte = std::byte{0xFF};  // NaN
  });
  expect(file, "ends in order");
  file = whole;
  file.metadata["tokenizer"].replace(file.metadata["tokenizer"].find("\"regular_tokens\":") + 17, 3,
                                     "9223372036854775807");
  expect(file, "tokens beside missing and unknown");
  std::ofstream(path) << "no safetensors at all";
  EXPECT_NE(error_of(path), "no ParseError");
}

}  // namespace
}  // namespace ferrite::testing
