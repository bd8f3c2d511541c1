// Parquet files through Apache Arrow, batch by batch. Dictionaries are read as the text they stand for, times
// of day as Arrow writes them. parquet_module.cpp finds this file, which is not a part of the library.
#include <arrow/api.h>
#include <arrow/io/api.h>
#include <fmt/format.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "ferrite/core/error.hpp"
#include "io/format.hpp"
#include "models/quantile_tokenizer/table_sources.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

bool is_number(const arrow::DataType& type) {
  return arrow::is_floating(type.id()) || arrow::is_integer(type.id()) || type.id() == arrow::Type::BOOL;
}
/// Days and moments; times of day and durations are text.
bool is_date_type(const arrow::DataType& type) {
  return type.id() == arrow::Type::DATE32 || type.id() == arrow::Type::DATE64 ||
         type.id() == arrow::Type::TIMESTAMP;
}
bool is_text(const arrow::DataType& type) {
  return arrow::is_base_binary_like(type.id()) || arrow::is_temporal(type.id()) ||
         type.id() == arrow::Type::DICTIONARY;
}

class ParquetSource final : public TableSource {
 public:
  ParquetSource(const std::filesystem::path& path, const TableConfig& config)
      : config_(config), path_(path.string()), missing_values_(config.missing) {
    fingerprint_ = fingerprint_of(path, config);
    missing_ = missing_values_.markers();
    open();
    std::shared_ptr<arrow::Schema> schema;
    check(reader_->GetSchema(&schema));
    NameSet seen;
    for (const auto& field : schema->fields())
      if (io_detail::find_invalid_utf8(field->name()) != std::string::npos ||
          !seen.insert(field->name()).second)
        throw ParseError(fmt::format("[open_table] {}, column {}: names must be UTF-8 and appear once", path_,
                                     io_detail::in_quotes(field->name())));
    const NameSet text = set_of(config.text);
    for (const std::size_t i : chosen_columns(schema->field_names(), config, path)) {
      const arrow::Field& field = *schema->field(static_cast<int>(i));
      if (!is_number(*field.type()) && !is_text(*field.type()))
        throw ParseError(
            fmt::format("[open_table] {}, column '{}' of {}: needs numbers, text or times; drop it", path_,
                        printable(field.name()), field.type()->ToString()));
      leaves_.push_back(reader_->manifest().schema_fields[i].column_index);
      names_.push_back(field.name());
      kinds_.push_back(text.contains(field.name()) ? FieldKind::text : kind_of(*field.type()));
    }
    rows_ = reader_->parquet_reader()->metadata()->num_rows();
    if (leaves_.empty() || rows_ == 0)
      throw ParseError(fmt::format("[open_table] {}, {} rows of {} columns: needs at least one of each",
                                   path_, rows_, leaves_.size()));
    rewind();
  }

  void rewind() override {
    batches_.reset();  // before its reader
    open();
    const auto row_bytes = static_cast<std::int64_t>(8 * leaves_.size());
    reader_->set_batch_size(std::max<std::int64_t>(1, config_.chunk_bytes / row_bytes));
    std::vector<int> groups(static_cast<std::size_t>(reader_->num_row_groups()));
    std::iota(groups.begin(), groups.end(), 0);
    batches_ = take(reader_->GetRecordBatchReader(groups, leaves_));
    row_ = 0;
  }
  double progress() const override { return static_cast<double>(row_) / static_cast<double>(rows_); }

  std::shared_ptr<const TableChunk> next() override {
    std::shared_ptr<arrow::RecordBatch> batch;
    do check(batches_->ReadNext(&batch));
    while (batch && batch->num_rows() == 0);
    if (!batch) return nullptr;
    auto chunk = std::make_shared<TableChunk>();
    chunk->first_row = row_;
    chunk->rows = batch->num_rows();
    chunk->numbers.resize(leaves_.size());
    chunk->texts.resize(leaves_.size());
    for (std::size_t c = 0; c < leaves_.size(); ++c) {
      const arrow::Array& array = *batch->GetColumnByName(names_[c]);
      if (kinds_[c] != FieldKind::text)
        chunk->numbers[c] = numbers_of(array);
      else
        chunk->texts[c] = texts_of(array);
      check_utf8(chunk->texts[c], names_[c]);
    }
    row_ += chunk->rows;
    return chunk;
  }

 private:
  [[noreturn]] void fail(const arrow::Status& status) const {
    const std::string message = fmt::format("[open_table] {}: {}", path_, status.message());
    if (status.IsIOError()) throw IoError(message);
    throw ParseError(message);
  }
  void check(const arrow::Status& status) const {
    if (!status.ok()) fail(status);
  }
  template <class T>
  T take(arrow::Result<T> result) const {
    if (!result.ok()) fail(result.status());
    return std::move(result).ValueUnsafe();
  }
  void open() {
    const auto file = take(arrow::io::ReadableFile::Open(path_));
    try {
      parquet::arrow::FileReaderBuilder builder;
      check(builder.Open(file));
      parquet::ArrowReaderProperties properties = parquet::default_arrow_reader_properties();
      properties.set_pre_buffer(false);  // it would hold all row groups until the last is read
      reader_ = take(builder.properties(properties)->Build());
    } catch (const parquet::ParquetException& e) {
      throw ParseError(fmt::format("[open_table] {}: {}", path_, e.what()));
    }
  }

  /// Text that Arrow took for UTF-8 unseen.
  void check_utf8(const TextColumn& column, const std::string& name) const {
    for (std::size_t word = 0; word < column.distinct.size(); ++word) {
      if (io_detail::find_invalid_utf8(column.distinct[word]) == std::string::npos) continue;
      const auto first = std::find(column.codes.begin(), column.codes.end(), static_cast<std::int32_t>(word));
      throw ParseError(fmt::format("[open_table] {}, column '{}', row {}, text {}: must be UTF-8", path_,
                                   printable(name), row_ + (first - column.codes.begin()),
                                   io_detail::in_quotes(column.distinct[word])));
    }
  }

  static FieldKind kind_of(const arrow::DataType& type) {
    if (is_number(type)) return FieldKind::number;
    if (!is_date_type(type)) return FieldKind::text;
    return type.id() == arrow::Type::TIMESTAMP ? FieldKind::date_time : FieldKind::date;
  }

  template <class ArrowType>
  std::vector<double> values_of(const arrow::Array& array) const {
    const auto& typed = static_cast<const typename arrow::TypeTraits<ArrowType>::ArrayType&>(array);
    std::vector<double> values(static_cast<std::size_t>(array.length())), markers = missing_values_.numbers();
    if constexpr (std::is_same_v<ArrowType, arrow::FloatType>)
      for (double& marker : markers) marker = static_cast<double>(static_cast<float>(marker));
    for (std::int64_t i = 0; i < array.length(); ++i)
      values[static_cast<std::size_t>(i)] =
          array.IsNull(i) ? std::numeric_limits<double>::quiet_NaN()
                          : MissingValues::without(static_cast<double>(typed.Value(i)), markers);
    return values;
  }
  /// Dates in units of `whole` seconds, or of a second in `parts`.
  template <class ArrowType>
  std::vector<double> seconds_of(const arrow::Array& array, std::int64_t whole, std::int64_t parts) const {
    const auto& typed = static_cast<const typename arrow::TypeTraits<ArrowType>::ArrayType&>(array);
    std::vector<double> values(static_cast<std::size_t>(array.length()));
    for (std::int64_t i = 0; i < array.length(); ++i) {
      const std::int64_t value = array.IsNull(i) ? 0 : whole * std::int64_t{typed.Value(i)};
      const std::int64_t rest = (value % parts + parts) % parts;
      values[static_cast<std::size_t>(i)] = array.IsNull(i)
                                                ? std::numeric_limits<double>::quiet_NaN()
                                                : static_cast<double>((value - rest) / parts) +
                                                      static_cast<double>(rest) / static_cast<double>(parts);
    }
    return values;
  }
  std::vector<double> numbers_of(const arrow::Array& array) const {
    switch (array.type_id()) {
      case arrow::Type::DOUBLE:
        return values_of<arrow::DoubleType>(array);
      case arrow::Type::FLOAT:
        return values_of<arrow::FloatType>(array);
      case arrow::Type::INT64:
        return values_of<arrow::Int64Type>(array);
      case arrow::Type::INT32:
        return values_of<arrow::Int32Type>(array);
      case arrow::Type::INT16:
        return values_of<arrow::Int16Type>(array);
      case arrow::Type::INT8:
        return values_of<arrow::Int8Type>(array);
      case arrow::Type::UINT64:
        return values_of<arrow::UInt64Type>(array);
      case arrow::Type::UINT32:
        return values_of<arrow::UInt32Type>(array);
      case arrow::Type::UINT16:
        return values_of<arrow::UInt16Type>(array);
      case arrow::Type::UINT8:
        return values_of<arrow::UInt8Type>(array);
      case arrow::Type::BOOL:
        return values_of<arrow::BooleanType>(array);
      case arrow::Type::DATE32:
        return seconds_of<arrow::Date32Type>(array, 86400, 1);
      case arrow::Type::DATE64:
        return seconds_of<arrow::Date64Type>(array, 1, 1000);
      case arrow::Type::TIMESTAMP: {
        const auto unit = static_cast<const arrow::TimestampType&>(*array.type()).unit();
        std::int64_t parts = 1;
        for (int i = 0; i < static_cast<int>(unit); ++i) parts *= 1000;  // seconds, milli, micro, nano
        return seconds_of<arrow::TimestampType>(array, 1, parts);
      }
      default:
        throw ParseError(
            fmt::format("[open_table] {}: numbers of {} cannot be read", path_, array.type()->ToString()));
    }
  }

  TextColumn texts_of(const arrow::Array& array) const {
    TextColumn column;
    if (array.type_id() == arrow::Type::DICTIONARY) {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      const TextColumn words = texts_of(*coded.dictionary());
      std::vector<std::int32_t> used(words.distinct.size(), -1);  // words that do not occur stay out
      for (std::int64_t i = 0; i < array.length(); ++i) {
        const std::int32_t word =
            coded.IsNull(i) ? -1 : words.codes[static_cast<std::size_t>(coded.GetValueIndex(i))];
        column.codes.push_back(word);
        if (word < 0) continue;
        std::int32_t& code = used[static_cast<std::size_t>(word)];
        if (code < 0) {
          code = static_cast<std::int32_t>(column.distinct.size());
          column.distinct.push_back(words.distinct[static_cast<std::size_t>(word)]);
        }
        column.codes.back() = code;
      }
      return column;
    }
    std::unordered_map<std::string, std::int32_t> codes;
    for (std::int64_t i = 0; i < array.length(); ++i) {
      std::string text = array.IsNull(i) ? "" : text_at(array, i);
      if (missing_values_.is_missing(text)) {
        column.codes.push_back(-1);
        continue;
      }
      const auto [found, added] = codes.try_emplace(std::move(text), static_cast<std::int32_t>(codes.size()));
      if (added) column.distinct.push_back(found->first);
      column.codes.push_back(found->second);
    }
    return column;
  }
  std::string text_at(const arrow::Array& array, std::int64_t i) const {
    if (array.type_id() == arrow::Type::STRING)
      return static_cast<const arrow::StringArray&>(array).GetString(i);
    if (array.type_id() == arrow::Type::LARGE_STRING)
      return static_cast<const arrow::LargeStringArray&>(array).GetString(i);
    return take(array.GetScalar(i))->ToString();
  }

  TableConfig config_;
  std::string path_;
  MissingValues missing_values_;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
  std::vector<int> leaves_;  // for each column, its place in the file
  std::int64_t rows_ = 0, row_ = 0;
};

}  // namespace

TableSource* ferrite_open_parquet(const std::filesystem::path& path, const TableConfig& config) {
  return std::make_unique<ParquetSource>(path, config).release();
}

}  // namespace ferrite::quantile_tokenizer
