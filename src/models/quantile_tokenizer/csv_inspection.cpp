#include "models/quantile_tokenizer/csv_inspection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "ferrite/core/error.hpp"
#include "io/csv_value.hpp"
#include "io/file_ending.hpp"
#include "io/format.hpp"
#include "models/quantile_tokenizer/dates.hpp"

namespace ferrite::quantile_tokenizer {

using io_detail::in_quotes;

void ColumnGuess::add(const CsvField& field, const MissingValues& missing) {
  if (missing.is_missing(field.raw)) return;
  if (io_detail::parse_number(field.raw)) {
    ++numbers_;
  } else if (const auto date = parse_date(field.raw)) {
    ++dates_;
    has_time_ |= date->has_time;
  } else {
    ++others_;
    add_odd(field.raw);
  }
}

void ColumnGuess::add(const ColumnGuess& later) {
  numbers_ += later.numbers_;
  dates_ += later.dates_;
  others_ += later.others_;
  has_time_ |= later.has_time_;
  for (const std::string& text : later.odd_) add_odd(text);
}

void ColumnGuess::add_odd(std::string_view text) {
  if (odd_.size() <= most_odd && std::find(odd_.begin(), odd_.end(), text) == odd_.end())
    odd_.emplace_back(text);
}

FieldKind ColumnGuess::kind() const {
  if (dates_ + others_ == 0) return FieldKind::number;
  if (numbers_ + others_ > 0) return FieldKind::text;
  return has_time_ ? FieldKind::date_time : FieldKind::date;
}

std::string ColumnGuess::note(const std::string& name) const {
  const std::int64_t main = std::max(numbers_, dates_);
  if (others_ == 0 || main <= others_ || odd_.size() > most_odd || std::min(numbers_, dates_) > 0) return "";
  std::string shown, option;
  for (const std::string& text : odd_) {
    shown += (shown.empty() ? "" : ", ") + in_quotes(text);
    option += (option.empty() ? "" : ",") + std::string(io_detail::trim(text));
  }
  return fmt::format(
      "column {} is taken as text: of its first {} fields {} are {}, the others are {}. --missing '{}' "
      "reads "
      "those as missing values, --text '{}' says that it is text",
      in_quotes(name), main + others_, main, numbers_ > 0 ? "numbers" : "dates", shown, printable(option),
      printable(name));
}

namespace {

/// How files begin that are sometimes named like CSV files, in lower case.
constexpr struct {
  std::string_view start, what, advice;
} other_formats[] = {
    {"pk\x03\x04", "an Excel file or a zip archive", "save the table as CSV (UTF-8), or unpack the archive"},
    {"\xd0\xcf\x11\xe0", "an Excel file", "save the table as CSV (UTF-8)"},
    {"%pdf-", "a PDF file", "get the table as CSV"},
    {"\x1f\x8b", "compressed", "unpack it with gunzip"},
    {"\xff\xfe", "text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > new.csv"},
    {"\xfe\xff", "text in UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > new.csv"},
    {"<!doctype", "a web page", "download the table itself, as CSV"},
    {"<html", "a web page", "download the table itself, as CSV"},
    {"<?xml", "an XML file", "save the table as CSV (UTF-8)"},
};

/// Of such a file the parser would find fault with some row, which does not say what to do.
void check_format(std::string_view text, const std::filesystem::path& path) {
  const auto reject = [&](std::string_view what, std::string_view advice) {
    throw ParseError(fmt::format("[open_table] {}: is {}, no CSV file; {}", path.string(), what, advice));
  };
  std::string start(text.substr(0, 4096));
  start.erase(0, start.find_first_not_of("\xef\xbb\xbf \t\r\n"));  // white space and a byte-order mark
  std::transform(start.begin(), start.end(), start.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c; });
  for (const auto& format : other_formats)
    if (start.starts_with(format.start)) reject(format.what, format.advice);
  if (start.find('\0') != start.npos)
    reject("binary", "save the table as CSV (UTF-8), or give the file the ending of what it is");
}

class Inspector {
 public:
  Inspector(std::string_view text, const std::filesystem::path& path, const TableConfig& config)
      : text_(text), path_(path), config_(config), scanner_(path.string(), config.delimiter) {
    result_.columns.path = path.string();
    result_.columns.delimiter = config.delimiter;
    result_.columns.missing = MissingValues(config.missing);
    scanner_.feed(text);
    scanner_.finish();
  }

  CsvInspection run() && {
    CsvRow row;
    if (!scanner_.next_row(row)) reject(1, 1, "no rows", "at least one row of data is needed");
    const CsvRow first = row;
    result_.columns.width = row.size();
    const bool has_header = config_.header == CsvHeader::present ||
                            (config_.header == CsvHeader::automatic && looks_like_header(row));
    const std::vector<std::string> names = has_header ? names_of(row) : numbered_names(row.size());
    if (has_header && !scanner_.next_row(row))
      reject(1, 1, "only a header", "at least one row of data is needed");
    result_.data_line = row.front().line;
    result_.data_begin = static_cast<std::size_t>(row.front().raw.data() - text_.data()) - row.front().quoted;
    if (!has_header) suspect_header(first);
    suspect_delimiter(first, row);
    take_columns(names, row);
    return std::move(result_);
  }

 private:
  [[noreturn]] void reject(std::int64_t line, std::int64_t column, const std::string& found,
                           const std::string& needed) const {
    throw ParseError(
        fmt::format("[open_table] {}:{}:{}, {}: {}", result_.columns.path, line, column, found, needed));
  }

  /// One of its fields is not a value.
  bool looks_like_header(const CsvRow& row) const {
    return std::any_of(row.begin(), row.end(), [&](const CsvField& f) {
      return !io_detail::parse_number(f.raw) && !result_.columns.missing.is_missing(f.raw) &&
             !parse_date(f.raw);
    });
  }

  static std::vector<std::string> numbered_names(std::size_t count) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back(fmt::format("c{}", i));
    return names;
  }

  std::vector<std::string> names_of(const CsvRow& row) const {
    std::vector<std::string> names;
    for (const CsvField& field : row) names.push_back(field.text());
    std::unordered_map<std::string, std::int64_t> times;  // a name has been given; of the others, none
    for (const std::string& name : names) times.emplace(name, 0);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (times[names[i]]++ == 0) continue;
      if (!config_.rename_duplicates)
        reject(row[i].line, row[i].column, "column " + in_quotes(names[i]),
               "the name appears twice; --rename-duplicates (TableConfig::rename_duplicates) numbers them");
      std::int64_t number = times[names[i]] - 1;
      while (times.contains(fmt::format("{}.{}", names[i], number))) ++number;
      times[names[i]] = number + 1;
      names[i] = fmt::format("{}.{}", names[i], number);
      times.emplace(names[i], 1);
    }
    return names;
  }

  /// Names may be numbers, such as years. Who asks for columns by name knows how the row is read.
  void suspect_header(const CsvRow& first) {
    if (config_.header != CsvHeader::automatic || !config_.columns.empty()) return;
    result_.notes.push_back(fmt::format(
        "the first row, which begins with {}, holds no text, so it is read as data, and columns are "
        "called c0, c1, ...: --header present takes it as names, --header absent says it has none",
        in_quotes(first[0].raw)));
  }

  /// A table of one column in which every row contains a common delimiter.
  void suspect_delimiter(const CsvRow& first, const CsvRow& second) {
    if (first.size() > 1 || first[0].quoted) return;
    const char suspect = io_detail::suspected_delimiter(first[0].raw, config_.delimiter);
    if (suspect == 0 || second[0].raw.find(suspect) == std::string_view::npos) return;
    result_.notes.push_back(fmt::format(
        "the table has one column, {}: if {} separates columns, say --delimiter {}", in_quotes(first[0].raw),
        io_detail::delimiter_name(suspect), io_detail::delimiter_name(suspect)));
  }

  /// Kinds come from the config; of the others, `row` and the rows after it give a guess.
  void take_columns(const std::vector<std::string>& names, CsvRow& row) {
    const NameSet text = set_of(config_.text), number = set_of(config_.number), date = set_of(config_.date);
    CsvColumns& columns = result_.columns;
    columns.fields = chosen_columns(names, config_, path_);
    std::vector<std::size_t>& untold = result_.untold;
    for (std::size_t c = 0; c < columns.fields.size(); ++c) {
      const std::string& name = names[columns.fields[c]];
      columns.names.push_back(name);
      columns.kinds.push_back(text.contains(name)   ? FieldKind::text
                              : date.contains(name) ? FieldKind::date_time
                                                    : FieldKind::number);
      if (!text.contains(name) && !date.contains(name) && !number.contains(name)) untold.push_back(c);
    }
    result_.guesses.resize(untold.size());
    if (untold.empty()) return;
    do {
      for (std::size_t i = 0; i < untold.size(); ++i)
        result_.guesses[i].add(row[columns.fields[untold[i]]], columns.missing);
    } while (++result_.inspected < config_.inspected_rows && scanner_.next_row(row));
  }

  std::string_view text_;
  std::filesystem::path path_;
  const TableConfig& config_;
  CsvScanner scanner_;
  CsvInspection result_;
};

}  // namespace

CsvInspection inspect_csv(std::string_view text, const std::filesystem::path& path,
                          const TableConfig& config) {
  check_format(text, path);
  return Inspector(text, path, config).run();
}

void apply_guesses(CsvInspection& inspection) {
  CsvColumns& columns = inspection.columns;
  for (std::size_t i = 0; i < inspection.untold.size(); ++i) {
    const std::size_t c = inspection.untold[i];
    columns.kinds[c] = inspection.guesses[i].kind();
    if (std::string note = inspection.guesses[i].note(columns.names[c]); !note.empty())
      inspection.notes.push_back(std::move(note));
  }
}

bool is_csv(const std::filesystem::path& path) {
  const std::string kind = io_detail::ending_of(path);
  return kind == ".csv" || kind == ".tsv" || kind == ".txt";
}

TableConfig csv_config(const std::filesystem::path& path, TableConfig config) {
  if (config.delimiter == 0) config.delimiter = io_detail::ending_of(path) == ".tsv" ? '\t' : ',';
  return config;
}

}  // namespace ferrite::quantile_tokenizer
