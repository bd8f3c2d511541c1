// Tables and numbers that tests/peers/pfn_peer.py made with scikit-learn.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>

#include "ferrite/models/pfn/table_encoder.hpp"
#include "paths.hpp"

namespace ferrite::testing {

inline std::string reference_path(const std::string& name) {
  return test_paths::source_folder() + "/tests/models/pfn/sklearn/" + name;
}

inline const nlohmann::json& sklearn_reference() {
  static const nlohmann::json all = nlohmann::json::parse(std::ifstream(reference_path("reference.json")));
  return all;
}

/// Even rows to learn from, odd rows to predict, by an encoder of the even ones.
struct ReferenceTable {
  explicit ReferenceTable(const std::string& name, const pfn::EncoderConfig& config = {}) {
    const pfn::Table table = pfn::read_table(reference_path(name + ".csv"));
    std::vector<std::int64_t> even, odd;
    for (std::int64_t r = 0; r < table.rows(); ++r) (r % 2 ? odd : even).push_back(r);
    const pfn::Table part = table.take(even);
    const auto encoder = pfn::TableEncoder::fit(part, "target", config);
    train = encoder.transform_train(part);
    test = encoder.transform(table.take(odd));
  }
  pfn::EncodedTable train, test;
};

}  // namespace ferrite::testing
