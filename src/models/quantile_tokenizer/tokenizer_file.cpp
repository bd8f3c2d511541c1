#include "models/quantile_tokenizer/tokenizer_file.hpp"

#include <fmt/format.h>

#include "core/to_number.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const TokenizerConfig& c) {
  return {{"bins", c.bins},
          {"method", to_string(c.method)},
          {"closed", to_string(c.closed)},
          {"duplicates", to_string(c.duplicates)},
          {"least_distance", c.least_distance},
          {"levels", to_string(c.levels)},
          {"width", to_string(c.width)},
          {"missing", to_string(c.missing)},
          {"edge_precision", to_string(c.edge_precision)},
          {"statistics", c.statistics}};
}

TokenizerConfig config_of(const JsonReader& json) {
  TokenizerConfig c;
  c.bins = json.get<int>("bins");
  c.method = json.get_enum<QuantileMethod>("method");
  c.closed = json.get_enum<Closed>("closed");
  c.duplicates = json.get_enum<DuplicateEdges>("duplicates");
  c.least_distance = json.get<double>("least_distance");
  c.levels = json.get_enum<LevelRule>("levels");
  c.width = json.get_enum<TokenWidth>("width");
  c.missing = json.get_enum<MissingPolicy>("missing");
  c.edge_precision = json.get_enum<EdgePrecision>("edge_precision");
  c.statistics = json.get<bool>("statistics");
  return c;
}

/// The numbers of all columns one after the other, as tensors.
struct Numbers {
  std::vector<double> range, edges, means;
  std::vector<std::int64_t> counts;
};

/// Hands out the elements of a tensor in order.
template <class T>
class PartsReader {
 public:
  PartsReader(const SafeTensors& file, const char* key, std::string_view name) : key_(key), name_(name) {
    const auto found = file.tensors.find(key);
    if (found == file.tensors.end()) reject_file(name, key, "the tensor is missing");
    if (found->second.dtype() != dtype_of<T>)
      reject_file(name, key, "must be of dtype " + std::string(to_string(dtype_of<T>)));
    tensor_ = found->second;
  }
  std::vector<T> take(std::size_t n) {
    const auto all = tensor_.as<T>();
    if (n > all.size() - next_) reject_file(name_, key_, "has fewer elements than the columns need");
    next_ += n;
    return {all.begin() + static_cast<std::ptrdiff_t>(next_ - n),
            all.begin() + static_cast<std::ptrdiff_t>(next_)};
  }
  void finish() const {
    if (next_ != tensor_.as<T>().size()) reject_file(name_, key_, "has more elements than the columns need");
  }

 private:
  const char* key_;
  std::string_view name_;
  HostTensor tensor_;
  std::size_t next_ = 0;
};

template <class T>
HostTensor tensor_of(const std::vector<T>& values) {
  return HostTensor::from(std::span<const T>(values), {static_cast<std::int64_t>(values.size())});
}

}  // namespace

void reject_file(std::string_view name, std::string_view place, std::string_view rule) {
  throw ParseError(fmt::format("[tokenizer.load] {}, {}: {}", name, place, rule));
}

nlohmann::json json_of(const SafeTensors& file, const std::string& key, std::string_view name) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) reject_file(name, "metadata", "has no '" + key + "'");
  nlohmann::json json = nlohmann::json::parse(found->second, nullptr, false);
  if (json.is_discarded()) reject_file(name, "metadata '" + key + "'", "is not JSON");
  return json;
}

SafeTensors to_file(const QuantileTokenizer& tokenizer) {
  Json columns = Json::array();
  Numbers all;
  for (const ColumnFit& c : tokenizer.columns()) {
    Json column{{"name", c.name},
                {"values", c.count},
                {"missing", c.missing},
                {"edges", c.edges.size()},
                {"statistics", !c.bin_counts.empty()}};
    columns.push_back(std::move(column));
    all.range.insert(all.range.end(), {c.least, c.greatest});
    all.edges.insert(all.edges.end(), c.edges.begin(), c.edges.end());
    all.counts.insert(all.counts.end(), c.bin_counts.begin(), c.bin_counts.end());
    all.means.insert(all.means.end(), c.bin_means.begin(), c.bin_means.end());
  }
  const Json json{{"config", to_json(tokenizer.config())},
                  {"regular_tokens", tokenizer.token_count() - 2},
                  {"columns", columns}};
  SafeTensors file;
  file.metadata = {
      {"format", "ferrite-tokenizer"}, {"version", std::to_string(file_version)}, {"tokenizer", json.dump()}};
  file.tensors = {{"range", tensor_of(all.range)},
                  {"edges", tensor_of(all.edges)},
                  {"bin_counts", tensor_of(all.counts)},
                  {"bin_means", tensor_of(all.means)}};
  return file;
}

QuantileTokenizer from_file(const SafeTensors& file, std::string_view name) {
  const auto format = file.metadata.find("format"), version = file.metadata.find("version");
  if (format == file.metadata.end() || format->second != "ferrite-tokenizer" ||
      version == file.metadata.end())
    reject_file(name, "metadata", "is not that of a tokenizer's fit");
  const std::string& text = version->second;
  const auto number = to_number<int>(text);
  if (!number || *number < 1) reject_file(name, "version '" + text + "'", "must be a number");
  if (*number > file_version)
    reject_file(name, "version " + text,
                fmt::format("this ferrite reads versions up to {}: use a newer one", file_version));

  const nlohmann::json root = json_of(file, "tokenizer", name);
  const JsonReader json(root, name, "tokenizer");
  const auto config = json.get<nlohmann::json>("config"), list = json.get<nlohmann::json>("columns");
  if (!list.is_array()) reject_file(name, "tokenizer.columns", "must be an array");
  PartsReader<double> range(file, "range", name), edges(file, "edges", name), means(file, "bin_means", name);
  PartsReader<std::int64_t> counts(file, "bin_counts", name);
  std::vector<ColumnFit> columns;
  for (const nlohmann::json& item : list) {
    const JsonReader column(item, name, fmt::format("tokenizer.columns[{}]", columns.size()));
    ColumnFit c;
    c.name = column.get<std::string>("name");
    c.count = column.get<std::int64_t>("values");
    c.missing = column.get<std::int64_t>("missing");
    const std::vector<double> ends = range.take(2);
    c.least = ends[0];
    c.greatest = ends[1];
    c.edges = edges.take(column.get<std::size_t>("edges"));
    if (column.get<bool>("statistics")) {
      c.bin_counts = counts.take(c.edges.size() + 1);
      c.bin_means = means.take(c.edges.size() + 1);
    }
    columns.push_back(std::move(c));
  }
  range.finish(), edges.finish(), means.finish(), counts.finish();
  try {
    return {config_of(JsonReader(config, name, "tokenizer.config")), std::move(columns),
            json.get<std::int64_t>("regular_tokens")};
  } catch (const ValueError& e) {
    reject_file(name, "tokenizer", e.what());
  }
}

void QuantileTokenizer::save(const std::filesystem::path& path) const {
  write_safetensors(path, to_file(*this));
}

QuantileTokenizer QuantileTokenizer::load(const std::filesystem::path& path) {
  return from_file(read_safetensors(path), path.string());
}

}  // namespace ferrite::quantile_tokenizer
