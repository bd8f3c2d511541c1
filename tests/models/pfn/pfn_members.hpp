// One member of an ensemble, and the table as it sees it.
#pragma once

#include <numeric>

#include "ferrite/models/pfn/ensemble.hpp"

namespace ferrite::testing {

inline pfn::EnsembleMember fit_member(const pfn::EncodedTable& train, const pfn::MemberConfig& config) {
  return pfn::EnsembleMember::fit(train, std::span(&config, 1), train.class_count())[0];
}

/// Features, classes and their names in the member's order.
inline pfn::EncodedTable seen_by(const pfn::EnsembleMember& member, const pfn::EncodedTable& table) {
  pfn::EncodedTable seen = table;
  for (std::size_t c = 0; c < seen.features.size(); ++c)
    seen.features[c] = table.features[static_cast<std::size_t>(member.columns()[c])];
  const std::vector<std::int32_t> places = member.class_places();
  for (std::size_t c = 0; c < places.size(); ++c)
    seen.class_names[static_cast<std::size_t>(places[c])] = table.class_names[c];
  for (std::int32_t& c : seen.classes) c = c < 0 ? -1 : places[static_cast<std::size_t>(c)];
  std::vector<std::int64_t> rows(static_cast<std::size_t>(table.rows));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  member.write_cells(table, rows, seen.x.data());
  return seen;
}

}  // namespace ferrite::testing
