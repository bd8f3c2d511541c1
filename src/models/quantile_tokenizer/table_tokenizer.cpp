// Tokens of tables by a finished fit, the way back, and the fit's file.
#include "ferrite/models/quantile_tokenizer/table_tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "ferrite/core/thread_pool.hpp"
#include "models/quantile_tokenizer/dates.hpp"
#include "models/quantile_tokenizer/fingerprint.hpp"
#include "models/quantile_tokenizer/table_text.hpp"
#include "models/quantile_tokenizer/token_types.hpp"
#include "models/quantile_tokenizer/tokenizer_file.hpp"

namespace ferrite::quantile_tokenizer {

std::string_view to_string(ColumnKind kind) {
  static constexpr std::string_view names[] = {
      "numeric", "integer_category", "text_category", "date_category", "date", "date_time"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {
bool is_text(ColumnKind kind) {
  return kind == ColumnKind::text_category || kind == ColumnKind::date_category;
}
}  // namespace

std::int64_t CategoryFit::rows() const {
  return std::accumulate(counts.begin(), counts.end(), missing + dropped);
}

TableTokenizer::TableTokenizer(QuantileTokenizer numeric) : numeric_(std::move(numeric)) {
  for (const ColumnFit& c : numeric_.columns())
    columns_.push_back({c.name, ColumnKind::numeric, columns_.size()});
  check();
}

TableTokenizer::TableTokenizer(std::vector<TableColumn> columns, QuantileTokenizer numeric,
                               std::vector<CategoryFit> categories, std::vector<std::string> missing)
    : columns_(std::move(columns)),
      numeric_(std::move(numeric)),
      categories_(std::move(categories)),
      missing_(normalized_markers(std::move(missing))) {
  check();
  for (const CategoryFit& c : categories_) {
    std::map<std::string, std::int64_t, std::less<>> tokens;
    for (const std::string& name : c.names) tokens.emplace(name, static_cast<std::int64_t>(tokens.size()));
    if (tokens.size() != c.names.size())
      throw ValueError("[tokenizer] categories: a name appears twice in a column");
    tokens_.push_back(std::move(tokens));
  }
}

void TableTokenizer::check() const {
  const std::size_t numeric_count = numeric_.columns().size(), count = numeric_count + categories_.size();
  if (columns_.empty() || columns_.size() != count)
    throw ValueError(fmt::format("[tokenizer] {} columns with {} fits: needs a column, and a fit for each",
                                 columns_.size(), count));
  std::vector<bool> taken(count);
  for (const TableColumn& c : columns_) {
    const bool numeric = is_binned(c.kind);
    const auto reject = [&](std::string_view rule) {
      throw ValueError(fmt::format("[tokenizer] column '{}', {} {}: {}", printable(c.name), to_string(c.kind),
                                   c.place, rule));
    };
    if (c.place >= (numeric ? numeric_count : categories_.size()))
      reject("refers to a fit that is not there");
    const std::size_t fit = numeric ? c.place : numeric_count + c.place;
    if (taken[fit]) reject("refers to the fit of another column");
    taken[fit] = true;
    if (numeric) {
      if (numeric_.columns()[c.place].name != c.name) reject("refers to the fit of another name");
      continue;
    }
    const CategoryFit& category = categories_[c.place];
    const auto& numbers = category.numbers;
    const bool integers = c.kind == ColumnKind::integer_category;
    if (category.counts.size() != category.names.size() ||
        numbers.size() != (integers ? category.names.size() : 0) ||
        static_cast<std::int64_t>(category.names.size()) > numeric_.token_count() - 2)
      reject("needs a count per category, a number too for integers, and tokens for all");
    const auto falls = [](double a, double b) { return !(a < b); };
    if (std::adjacent_find(numbers.begin(), numbers.end(), falls) != numbers.end() ||
        std::any_of(numbers.begin(), numbers.end(), [](double v) { return !std::isfinite(v); }))
      reject("needs finite numbers that ascend");
    if (category.missing < 0 || category.dropped < 0 ||
        std::any_of(category.counts.begin(), category.counts.end(), [](std::int64_t n) { return n < 0; }))
      reject("needs counts from 0 on");
  }
}

TableConfig TableTokenizer::reading(TableConfig config) const {
  for (const TableColumn& c : columns_) {
    config.columns.push_back(c.name);
    (is_text(c.kind) ? config.text : is_date(c.kind) ? config.date : config.number).push_back(c.name);
  }
  config.missing.insert(config.missing.end(), missing_.begin(), missing_.end());
  return config;
}

void TableTokenizer::check_source(const TableSource& source) const {
  std::vector<std::string> wanted;
  for (const TableColumn& c : columns_) wanted.push_back(c.name);
  if (source.names() != wanted)
    throw ValueError(
        fmt::format("[tokenizer.transform] columns {}: the fit has {}; open the table with reading(), which "
                    "finds them by name",
                    printable(source.names()), printable(wanted)));
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const FieldKind kind = source.kinds()[c];
    if (is_text(columns_[c].kind) != (kind == FieldKind::text) || is_date(columns_[c].kind) != is_date(kind))
      throw ValueError(fmt::format("[tokenizer.transform] column '{}' of {}: the fit has it as {}",
                                   printable(columns_[c].name),
                                   kind == FieldKind::text ? "text"
                                   : is_date(kind)         ? "dates"
                                                           : "numbers",
                                   to_string(columns_[c].kind)));
  }
}

HostTensor TableTokenizer::transform(const TableChunk& chunk, TableEngine& engine) const {
  std::vector<std::size_t> places(numeric_.columns().size());  // of the numeric columns in the table
  for (std::size_t c = 0; c < columns_.size(); ++c)
    if (is_binned(columns_[c].kind)) places[columns_[c].place] = c;
  const DType dtype = tensor_dtype(width());
  const auto rows = static_cast<std::size_t>(chunk.rows), width = columns_.size();
  std::vector<double> numbers(places.size() * rows);
  parallel_for(static_cast<std::int64_t>(places.size()), [&](std::int64_t i) {
    const auto k = static_cast<std::size_t>(i);
    std::copy(chunk.numbers[places[k]].begin(), chunk.numbers[places[k]].end(), numbers.data() + k * rows);
  });
  HostTensor binned;
  if (!places.empty() && chunk.rows > 0) binned = engine.transform(numeric_, numbers, chunk.rows);
  if (places.size() == columns_.size()) return binned;

  return HostTensor::make(
      dtype, {chunk.rows, static_cast<std::int64_t>(width)}, [&](std::span<std::byte> bytes) {
        const auto fill = [&]<class T>(T* out) {
          for (std::size_t k = 0; k < places.size(); ++k)
            for (std::size_t r = 0; r < rows; ++r)
              out[r * width + places[k]] = binned.as<T>()[r * places.size() + k];
          for (std::size_t c = 0; c < width; ++c) {
            if (is_binned(columns_[c].kind)) continue;
            const CategoryFit& fit = categories_[columns_[c].place];
            if (columns_[c].kind == ColumnKind::integer_category) {
              for (std::size_t r = 0; r < rows; ++r) {
                const double v = chunk.numbers[c][r];
                const auto found = std::lower_bound(fit.numbers.begin(), fit.numbers.end(), v);
                const bool known = found != fit.numbers.end() && *found == v;
                out[r * width + c] = static_cast<T>(v != v  ? missing_category_token()
                                                    : known ? found - fit.numbers.begin()
                                                            : unknown_token());
              }
              continue;
            }
            std::vector<T> tokens;  // of the chunk's texts
            for (const std::string& text : chunk.texts[c].distinct) {
              const auto found = tokens_[columns_[c].place].find(text);
              tokens.push_back(static_cast<T>(found == tokens_[columns_[c].place].end() ? unknown_token()
                                                                                        : found->second));
            }
            for (std::size_t r = 0; r < rows; ++r) {
              const std::int32_t code = chunk.texts[c].codes[r];
              out[r * width + c] = code < 0 ? static_cast<T>(missing_category_token())
                                            : tokens[static_cast<std::size_t>(code)];
            }
          }
        };
        visit_tokens(dtype, [&]<class T>() { fill(reinterpret_cast<T*>(bytes.data())); });
      });
}

std::string TableTokenizer::inverse(std::int64_t token, std::size_t column, std::int64_t row,
                                    BinValue value) const {
  const TableColumn& c = columns_[column];
  const bool numeric = is_binned(c.kind);
  const auto limit = numeric ? numeric_.columns()[c.place].bins()
                             : static_cast<std::int64_t>(categories_[c.place].names.size());
  if (token >= 0 && token < limit) {
    if (!numeric) return categories_[c.place].names[static_cast<std::size_t>(token)];
    const ColumnFit& fit = numeric_.columns()[c.place];
    const Closed closed = numeric_.config().closed;
    const double number = fit.value_of(token, value, closed);
    if (number != number) return "";
    if (is_date(c.kind)) {
      const BinRange range = fit.bin_range(token, closed);
      return date_text(number, c.kind == ColumnKind::date, range.least, range.greatest);
    }
    char digits[32];
    return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
  }
  const std::int64_t missing = numeric ? missing_token() : missing_category_token();
  if (token == missing || token == unknown_token()) return "";
  throw ValueError(
      fmt::format("[tokenizer.inverse] row {}, column {} '{}', token {}: has tokens 0 to {}, {} for "
                  "missing and {} for unknown values",
                  row, column, printable(c.name), token, limit - 1, missing, unknown_token()));
}

SafeTensors TableTokenizer::file() const {
  nlohmann::ordered_json columns = nlohmann::ordered_json::array(), categories = columns;
  for (const TableColumn& c : columns_)
    columns.push_back({{"name", c.name}, {"kind", to_string(c.kind)}, {"place", c.place}});
  for (const CategoryFit& c : categories_)
    categories.push_back({{"names", c.names},
                          {"counts", c.counts},
                          {"numbers", c.numbers},
                          {"missing", c.missing},
                          {"dropped", c.dropped}});
  SafeTensors file = to_file(numeric_);
  file.metadata["table"] =
      nlohmann::ordered_json{{"columns", columns}, {"categories", categories}, {"missing", missing_}}.dump();
  return file;
}

void TableTokenizer::save(const std::filesystem::path& path) const { write_safetensors(path, file()); }

std::string TableTokenizer::fingerprint() const {
  Fingerprint fingerprint;
  const SafeTensors all = file();
  for (const auto& [key, text] : all.metadata) fingerprint.add(text);
  for (const auto& [key, tensor] : all.tensors)
    if (key != "bin_means") fingerprint.add(tensor.bytes());
  return fingerprint.text();
}

TableTokenizer TableTokenizer::load(const std::filesystem::path& path) {
  const std::string name = path.string();
  const SafeTensors file = read_safetensors(path);
  QuantileTokenizer numeric = from_file(file, name);
  if (!file.metadata.contains("table")) return TableTokenizer(std::move(numeric));
  const nlohmann::json root = json_of(file, "table", name);
  const JsonReader json(root, name, "table");
  const auto column_list = json.get<nlohmann::json>("columns"),
             category_list = json.get<nlohmann::json>("categories");
  std::vector<TableColumn> columns;
  for (const nlohmann::json& item : column_list) {
    const JsonReader column(item, name, fmt::format("table.columns[{}]", columns.size()));
    columns.push_back({column.get<std::string>("name"), column.get_enum<ColumnKind>("kind"),
                       column.get<std::size_t>("place")});
  }
  std::vector<CategoryFit> categories;
  for (const nlohmann::json& item : category_list) {
    const JsonReader category(item, name, fmt::format("table.categories[{}]", categories.size()));
    categories.push_back({category.get<std::vector<std::string>>("names"),
                          category.get<std::vector<std::int64_t>>("counts"),
                          category.get<std::vector<double>>("numbers"), category.get<std::int64_t>("missing"),
                          category.get<std::int64_t>("dropped")});
  }
  const auto missing =
      root.contains("missing") ? json.get<std::vector<std::string>>("missing") : std::vector<std::string>{};
  try {
    return {std::move(columns), std::move(numeric), std::move(categories), missing};
  } catch (const ValueError& e) {
    reject_file(name, "table", e.what());
  }
}

}  // namespace ferrite::quantile_tokenizer
