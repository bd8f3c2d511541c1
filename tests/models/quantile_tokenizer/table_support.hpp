// What tests of tables share: files of text, fits and tokens of them, errors.
#pragma once

#include <gtest/gtest.h>

#include <fstream>

#include "ferrite/models/quantile_tokenizer/table_tokenizer.hpp"
#include "messages.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {

struct TableTest : ::testing::Test {
  ScratchFolder folder;
  Cpu b;
  quantile_tokenizer::TableEngineOn<Cpu> engine{b};

  std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(folder / name, std::ios::binary) << text;
    return folder / name;
  }
  std::unique_ptr<quantile_tokenizer::TableSource> csv(const std::string& text,
                                                       const quantile_tokenizer::TableConfig& config = {}) {
    return quantile_tokenizer::open_table(write("t.csv", text), config);
  }
  quantile_tokenizer::TableTokenizer fit(const std::string& text,
                                         const quantile_tokenizer::TableConfig& config = {},
                                         const quantile_tokenizer::TableFitConfig& how = {}) {
    const auto source = csv(text, config);
    return quantile_tokenizer::TableTokenizer::fit(*source, engine, how);
  }
  std::vector<int> tokens(const quantile_tokenizer::TableTokenizer& fitted,
                          quantile_tokenizer::TableSource& source) {
    std::vector<int> all;
    source.rewind();
    while (const auto chunk = source.next()) {
      const HostTensor part = fitted.transform(*chunk, engine);
      visit_any_dtype(part.dtype(), [&]<class T>() {
        for (const T t : part.as<T>()) all.push_back(convert<int>(t));
      });
    }
    return all;
  }
  template <class E, class F>
  std::string error(F&& f) {
    return message_of<E>(f);
  }
  std::string csv_error(const std::string& text, const quantile_tokenizer::TableConfig& config = {}) {
    return error<ParseError>([&] {
      const auto source = csv(text, config);
      while (source->next()) continue;
    });
  }
};

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

/// All kinds of columns.
inline std::string mixed_rows(int rows) {
  std::string text = "number,grade,\"city, state\",day,same,nothing\n";
  const char* cities[] = {"Oslo", "\"Lima, Peru\"", "\"say \"\"hi\"\"\"", "\"two\nlines\"", "NA"};
  for (int i = 0; i < rows; ++i) {
    const double u = uniform_at<double>({5, 6}, static_cast<std::uint64_t>(i));
    text += (i % 17 == 3 ? "" : std::to_string(u * 100 - 20)) + "," + std::to_string(i * 7 % 4) + "," +
            cities[i * 3 % 5] + ",2024-01-" + (i % 2 ? "07" : "11") + " 10:00,x,null\n";
  }
  return text;
}

}  // namespace ferrite::testing
