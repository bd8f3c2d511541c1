// Arrays as tables: a matrix of .npy, .npz or .safetensors, or the vectors of one of the latter two as
// columns. Files are mapped, so only the current rows take memory.
#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/error.hpp"
#include "ferrite/io/npy.hpp"
#include "ferrite/io/npz.hpp"
#include "ferrite/io/safetensors.hpp"
#include "io/file_ending.hpp"
#include "models/quantile_tokenizer/table_sources.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

/// One column: element r is at first + r * stride.
struct Strided {
  HostTensor tensor;
  std::int64_t first = 0, stride = 1;
};

class ArraySource final : public TableSource {
 public:
  ArraySource(const std::filesystem::path& path, const TableConfig& config)
      : path_(path.string()), missing_values_(config.missing) {
    fingerprint_ = fingerprint_of(path, config);
    missing_ = missing_values_.markers();
    std::vector<std::string> names;
    std::vector<Strided> columns;
    const std::string kind = io_detail::ending_of(path);
    if (kind == ".npy") {
      add_matrix(read_npy(path), config.layout, names, columns);
    } else {
      const bool zip = kind == ".npz";
      add_tensors(zip ? read_npz(path) : read_safetensors(path).tensors, config, names, columns);
    }
    if (!config.text.empty() || !config.date.empty())
      throw ValueError(
          fmt::format("[open_table] {}: columns of an array can only be read as numbers", path_));
    if (columns.empty() || rows_ == 0)
      throw ParseError(fmt::format("[open_table] {}, {} rows of {} columns: needs at least one of each",
                                   path_, rows_, columns.size()));
    for (const std::size_t c : chosen_columns(names, config, path)) {
      names_.push_back(names[c]);
      columns_.push_back(columns[c]);
    }
    kinds_.assign(columns_.size(), FieldKind::number);
    const auto row_bytes = static_cast<std::int64_t>(8 * columns_.size());
    chunk_rows_ = std::max<std::int64_t>(1, config.chunk_bytes / row_bytes);
  }

  void rewind() override { row_ = 0; }
  double progress() const override { return static_cast<double>(row_) / static_cast<double>(rows_); }

  std::shared_ptr<const TableChunk> next() override {
    if (row_ == rows_) return nullptr;
    auto made = std::make_shared<TableChunk>();
    TableChunk& chunk = *made;
    chunk.first_row = row_;
    chunk.rows = std::min(chunk_rows_, rows_ - row_);
    chunk.numbers.resize(columns_.size());
    chunk.texts.resize(columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const Strided& column = columns_[c];
      std::vector<double>& values = chunk.numbers[c];
      values.resize(static_cast<std::size_t>(chunk.rows));
      visit_any_dtype(column.tensor.dtype(), [&]<class T>() {
        const T* next = column.tensor.as<T>().data() + column.first + row_ * column.stride;
        std::vector<double> markers = missing_values_.numbers();
        if constexpr (is_floating(dtype_of<T>))  // -99.9 is none of the f32 until it is rounded to one
          for (double& marker : markers) marker = convert<double>(convert<T>(marker));
        for (double& value : values) {
          value = MissingValues::without(convert<double>(*next), markers);
          next += column.stride;
        }
      });
    }
    row_ += chunk.rows;
    return made;
  }

 private:
  void add_matrix(const HostTensor& x, TableLayout layout, std::vector<std::string>& names,
                  std::vector<Strided>& columns) {
    if (x.shape().rank() != 1 && x.shape().rank() != 2)
      throw ParseError(fmt::format("[open_table] {}, an array {}: needs a matrix or a vector", path_,
                                   to_string(x.shape())));
    const bool vector = x.shape().rank() == 1, by_rows = layout == TableLayout::rows;
    const std::int64_t inner = vector ? 1 : x.shape()[1];
    rows_ = vector || by_rows ? x.shape()[0] : inner;
    const std::int64_t count = vector ? 1 : by_rows ? inner : x.shape()[0];
    for (std::int64_t c = 0; c < count; ++c) {
      names.push_back(fmt::format("c{}", c));
      columns.push_back(vector    ? Strided{x, 0, 1}
                        : by_rows ? Strided{x, c, inner}
                                  : Strided{x, c * inner, 1});
    }
  }

  void add_tensors(const NamedTensors& tensors, const TableConfig& config, std::vector<std::string>& names,
                   std::vector<Strided>& columns) {
    if (!config.array.empty()) {
      const auto found = tensors.find(config.array);
      if (found == tensors.end())
        throw ValueError(fmt::format("[open_table] {}: holds no array '{}'", path_, config.array));
      return add_matrix(found->second, config.layout, names, columns);
    }
    if (tensors.size() == 1) return add_matrix(tensors.begin()->second, config.layout, names, columns);
    for (const auto& [name, tensor] : tensors) {
      if (tensor.shape().rank() != 1 || (!columns.empty() && tensor.numel() != rows_))
        throw ParseError(
            fmt::format("[open_table] {}, array '{}' {}: needs vectors of one length, or the name "
                        "of one array",
                        path_, name, to_string(tensor.shape())));
      rows_ = tensor.numel();
      names.push_back(name);
      columns.push_back({tensor, 0, 1});
    }
  }

  std::string path_;
  MissingValues missing_values_;
  std::vector<Strided> columns_;
  std::int64_t rows_ = 0, row_ = 0, chunk_rows_ = 0;
};

}  // namespace

std::unique_ptr<TableSource> open_array_table(const std::filesystem::path& path, const TableConfig& config) {
  return std::make_unique<ArraySource>(path, config);
}

}  // namespace ferrite::quantile_tokenizer
