// The required fields of a record.
#include <fmt/format.h>

#include "models/irsynth/record_json.hpp"

namespace ferrite::irsynth {

namespace {

using Fields = std::initializer_list<std::string_view>;

/// Collects missing fields; `path` is the place of an object in the record.
struct Search {
  std::vector<std::string> missing;

  /// Whether the object has the field.
  bool need(const Json& object, const std::string& path, std::string_view field) {
    const bool there = object.is_object() && object.contains(field);
    if (!there) missing.push_back(fmt::format("{}{} is missing", path, field));
    return there;
  }
  void need(const Json& object, const std::string& path, Fields fields) {
    for (const std::string_view f : fields) need(object, path, f);
  }
  /// In every object of a list.
  void need_in_each(const Json& object, std::string_view list, Fields fields, bool values) {
    if (!need(object, "metadata.", list)) return;
    for (std::size_t i = 0; i < object.at(list).size(); ++i) {
      const std::string path = fmt::format("metadata.{}[{}].", list, i);
      need(object.at(list)[i], path, fields);
      if (values) need(object.at(list)[i], path, "values");
      if (object.at(list)[i].value("type", "").find("array") != std::string::npos)
        need(object.at(list)[i], path, "shape");
    }
  }
};

}  // namespace

std::vector<std::string> missing_fields(const Json& record, const Config& config) {
  const std::string device(to_string(config.device));
  Search search;
  search.need(record, "", {"python_source", device + "_forward"});
  if (config.ptx) search.need(record, "", "ptx");
  if (!search.need(record, "", "metadata")) return search.missing;
  const Json& m = record.at("metadata");
  search.need(m, "metadata.",
              {"kernel_name", "category", "description", "device", "style", "level", "has_backward", "seed",
               "index", "hash", "split", "grid", "block_dim", "operations"});
  if (m.is_object() && m.value("has_backward", Json(false)) == true)
    search.need(record, "", device + "_backward");
  search.need_in_each(m, "arguments", {"name", "type", "low", "high", "stream", "output"}, config.values);
  if (config.verify != Verify::none || config.values)
    search.need_in_each(m, "outputs", {"name", "sha256"}, config.values);
  if (!search.need(m, "metadata.", "verification")) return search.missing;
  const Json& v = m.at("verification");
  search.need(v, "metadata.verification.", {"round_trip", "interpreter", "cpu", "nvrtc", "gpu", "adjoint"});
  if (v.is_object() && v.value("interpreter", Json()).is_string())
    search.need(v, "metadata.verification.", "roundings");
  return search.missing;
}

namespace {

void compare(const Json& given, const Json& wanted, const std::string& path,
             std::vector<std::string>& problems) {
  if (given == wanted) return;
  if (wanted.is_object() && given.is_object()) {
    for (const auto& [key, value] : wanted.items())
      if (given.contains(key))
        compare(given.at(key), value, path + "." + key, problems);
      else
        problems.push_back(fmt::format("{}.{} is missing", path, key));
    for (const auto& [key, value] : given.items())
      if (!wanted.contains(key))
        problems.push_back(fmt::format("{}.{} is not a field of a record", path, key));
  } else if (wanted.is_array() && given.is_array() && wanted.size() == given.size()) {
    for (std::size_t i = 0; i < wanted.size(); ++i)
      compare(given[i], wanted[i], fmt::format("{}[{}]", path, i), problems);
  } else {
    const auto brief = [](const Json& value) {
      const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
      return text.size() <= 60 ? text : text.substr(0, 57) + "...";
    };
    problems.push_back(
        fmt::format("{} is {}: the program and its number give {}", path, brief(given), brief(wanted)));
  }
}

}  // namespace

std::vector<std::string> wrong_fields(const Json& metadata, const Record& record, const Config& config,
                                      std::uint64_t seed) {
  Json wanted = metadata_json(record, config, seed);
  wanted["verification"] = metadata.at("verification");
  std::vector<std::string> problems;
  compare(metadata, wanted, "metadata", problems);
  return problems;
}

}  // namespace ferrite::irsynth
