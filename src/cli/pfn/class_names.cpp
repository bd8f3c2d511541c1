#include "cli/pfn/class_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <unordered_map>

#include "io/csv_value.hpp"
#include "io/file_ending.hpp"

namespace ferrite::cli::pfn {

using namespace ferrite::pfn;

namespace {

using io_detail::parse_number;
using io_detail::trim;

/// "-12.50" as "-125e-1": the same for all texts of a value. What is not a decimal number stays as it is, and
/// so does 007, which is a name.
std::string exact_value(std::string_view text) {
  text = trim(text);
  const auto number = parse_number(text);
  if (!number || text.find_first_not_of("+-.0123456789eE") != text.npos) return std::string(text);
  const std::string_view unsigned_text = text.substr(text.find_first_not_of("+-"));
  if (unsigned_text.size() > 1 && unsigned_text[0] == '0' && unsigned_text[1] >= '0' &&
      unsigned_text[1] <= '9')
    return std::string(text);
  const auto mark = text.find_first_of("eE");
  std::int64_t power = 0;
  if (mark != text.npos) {
    const char* const first = text.data() + mark + 1 + (text[mark + 1] == '+');
    if (std::from_chars(first, text.data() + text.size(), power).ec != std::errc{}) return std::string(text);
  }
  std::string digits;
  bool after_point = false;
  for (const char c : text.substr(0, mark)) {
    if (c == '.') after_point = true;
    if (c < '0' || c > '9') continue;
    power -= after_point;
    if (c != '0' || !digits.empty()) digits += c;
  }
  for (; digits.ends_with('0'); ++power) digits.pop_back();
  if (digits.empty()) return "0";
  return fmt::format("{}{}e{}", text.starts_with('-') ? "-" : "", digits, power);
}

/// The name of each text, in their order.
std::vector<std::string> joined_names(const std::vector<std::string>& texts,
                                      std::span<const std::string> classes) {
  std::vector<std::string> by_length = texts;
  std::sort(by_length.begin(), by_length.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  std::unordered_map<std::string, std::string> name_of;  // by value
  for (const std::string& name : classes) name_of.try_emplace(exact_value(name), name);
  for (const std::string& name : by_length) name_of.try_emplace(exact_value(name), name);
  std::vector<std::string> names;
  for (const std::string& text : texts)
    names.push_back(std::find(classes.begin(), classes.end(), text) != classes.end()
                        ? text
                        : name_of.at(exact_value(text)));
  return names;
}

/// Whether numbers are written as ferrite writes them, so that their names follow from their values.
bool has_plain_numbers(const TextColumn& column) {
  return std::all_of(column.distinct.begin(), column.distinct.end(), [](const std::string& text) {
    char digits[32];
    const auto value = parse_number(text);
    return value &&
           text == std::string_view(digits, std::to_chars(digits, digits + sizeof digits, *value + 0.0).ptr);
  });
}

bool is_constant(const RawColumn& column) {
  std::set<double> values;
  for (const double value : column.numbers)
    if (std::isfinite(value)) values.insert(value);
  return values.size() < 2;
}

}  // namespace

Table with_class_names(const Table& table, const std::filesystem::path& file, TableConfig config,
                       const std::string& target, std::span<const std::string> classes) {
  const std::string kind = io_detail::ending_of(file);
  const bool is_array = kind == ".npy" || kind == ".npz" || kind == ".safetensors";
  const RawColumn* const column = table.find(target);
  if (!column || is_array) return table;
  config.columns = config.text = {target};
  const TextColumn texts = column->is_text() ? column->text : read_table(file, config).find(target)->text;
  std::vector<std::string> names = joined_names(texts.distinct, classes);
  for (std::size_t i = 0; i < names.size() && column->kind == FieldKind::number; ++i)
    if (!std::isfinite(parse_number(texts.distinct[i]).value_or(0))) names[i].clear();  // missing
  std::vector<std::string> cells;
  for (const std::int32_t code : texts.codes)
    cells.push_back(code < 0 ? "" : names[static_cast<std::size_t>(code)]);
  Table named;
  for (const RawColumn& other : table.columns())
    if (other.name == target)
      named.add_texts(target, cells);
    else
      named.add(other);
  named.set_missing(table.missing());
  return named;
}

Learned learned(const std::filesystem::path& file, const TableConfig& reading, const std::string& target,
                EncoderConfig config) {
  Table train = read_table(file, reading);
  const RawColumn* const column = train.find(target);
  std::vector<std::string> notices;
  if (column && !column->is_text() && !config.task && !is_constant(*column)) {
    TableEncoder encoder = TableEncoder::fit(train, target, config);
    if (encoder.task() == Task::regression) return {std::move(train), std::move(encoder), {}};
    notices = encoder.notices();
  }
  if (column && !column->is_text() && config.task != Task::regression) {
    Table named = with_class_names(train, file, reading, target);
    const RawColumn& written = *named.find(target);
    if (written.is_text() && !has_plain_numbers(written.text)) train = std::move(named);
    config.task = Task::classification;
  }
  TableEncoder encoder = TableEncoder::fit(train, target, config);
  const std::vector<std::string>& said = encoder.notices();
  std::erase_if(notices, [&](const std::string& notice) {
    return std::find(said.begin(), said.end(), notice) != said.end();
  });
  return {std::move(train), std::move(encoder), std::move(notices)};
}

}  // namespace ferrite::cli::pfn
