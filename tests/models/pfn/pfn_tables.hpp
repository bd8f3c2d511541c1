// What tests of encoders share: tables of CSV text, errors, notices.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "ferrite/core/error.hpp"
#include "ferrite/models/pfn/table_encoder.hpp"
#include "messages.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {

inline pfn::Table csv_table(const std::string& text, const pfn::TableConfig& config = {}) {
  const ScratchFolder folder;
  std::ofstream(folder / "t.csv", std::ios::binary) << text;
  return pfn::read_table(folder / "t.csv", config);
}

template <class F>
std::string value_error(F&& f) {
  return message_of<ValueError>(f);
}

inline bool has_notice(const std::vector<std::string>& notices, const std::string& part) {
  for (const std::string& notice : notices)
    if (notice.find(part) != std::string::npos) return true;
  return false;
}
#define EXPECT_NOTICE(notices, part) \
  EXPECT_TRUE(::ferrite::testing::has_notice(notices, part)) << ::testing::PrintToString(notices)

inline void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

/// The cells of a feature; missing ones are -99.
inline std::vector<float> cells(const pfn::EncodedTable& table, const std::string& feature) {
  std::vector<float> out;
  for (std::size_t c = 0; c < table.features.size(); ++c) {
    if (table.features[c].name != feature) continue;
    for (std::int64_t r = 0; r < table.rows; ++r)
      out.push_back(std::isnan(table.row(r)[c]) ? -99.0f : table.row(r)[c]);
  }
  return out;
}

}  // namespace ferrite::testing
