// Several files as one table. All of them are looked at before the first is read, so that a file that does
// not fit is found at once and not after hours. One file is open at a time.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "ferrite/core/error.hpp"
#include "ferrite/io/mapped_file.hpp"
#include "models/quantile_tokenizer/csv_inspection.hpp"
#include "models/quantile_tokenizer/fingerprint.hpp"

namespace ferrite::quantile_tokenizer {

namespace {

std::string_view kind_name(FieldKind kind) {
  return kind == FieldKind::text ? "text" : is_date(kind) ? "dates" : "numbers";
}

class JoinedSource final : public TableSource {
 public:
  JoinedSource(const std::vector<std::filesystem::path>& paths, const TableConfig& config)
      : paths_(paths), config_(config) {
    look_at_all();
    if (std::all_of(paths_.begin(), paths_.end(), is_csv)) guess_kinds();
    tell_kinds();
  }

  void rewind() override {
    current_.reset();
    file_ = 0;
    rows_ = 0;
  }
  double progress() const override {
    double done = 0, all = 0;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      all += sizes_[i];
      done += i < file_ ? sizes_[i] : i == file_ && current_ ? sizes_[i] * current_->progress() : 0;
    }
    return all > 0 ? done / all : 1;
  }
  std::shared_ptr<const TableChunk> next() override {
    for (; file_ < paths_.size(); ++file_, current_.reset()) {
      if (!current_) open_current();
      // The file's source made the chunk and has forgotten it, so its rows can be counted on.
      const auto chunk = std::const_pointer_cast<TableChunk>(current_->next());
      if (!chunk) continue;
      chunk->first_row = rows_;
      rows_ += chunk->rows;
      return chunk;
    }
    return nullptr;
  }

 private:
  /// Names, fingerprints and sizes, and the kinds that the files say themselves.
  void look_at_all() {
    TableConfig brief = config_;
    brief.inspected_rows = 1;
    Fingerprint all;
    for (const auto& path : paths_) {
      const bool first = fingerprints_.empty();
      const auto source = open_table(path, first ? config_ : brief);
      if (first) {
        names_ = source->names();
        kinds_ = source->kinds();
        missing_ = source->missing();
        notes_ = source->notes();
      } else {
        check_names(path, source->names());
        if (!is_csv(path)) take_kinds(path, *source);
      }
      fingerprints_.push_back(source->fingerprint());
      all.add(source->fingerprint());
      std::error_code unknown;
      sizes_.push_back(static_cast<double>(std::filesystem::file_size(path, unknown)));
    }
    fingerprint_ = all.text();
  }

  void check_names(const std::filesystem::path& path, const std::vector<std::string>& found) const {
    const auto missing_in = [](const std::vector<std::string>& names,
                               const std::vector<std::string>& wanted) {
      const NameSet known = set_of(names);
      std::vector<std::string> missing;
      for (const std::string& name : wanted)
        if (!known.contains(name)) missing.push_back(name);
      return missing;
    };
    const auto missing = missing_in(found, names_), more = missing_in(names_, found);
    if (missing.empty() && more.empty()) return;
    std::string differences;
    if (!missing.empty()) differences += fmt::format(", it has no {}", printable(missing));
    if (!more.empty()) differences += fmt::format(", it has {} besides", printable(more));
    const bool nothing_shared = missing.size() == names_.size();
    throw ValueError(fmt::format("[open_tables] {}: its columns are not those of {}{}; {}", path.string(),
                                 paths_[0].string(), differences,
                                 nothing_shared
                                     ? "does the first row hold the names? --header present or absent says so"
                                     : "give it the same columns, or leave those of one file out (--drop)"));
  }

  /// Columns of an array or a Parquet file have kinds of their own.
  void take_kinds(const std::filesystem::path& path, const TableSource& source) {
    std::unordered_map<std::string_view, FieldKind> kinds;
    for (std::size_t c = 0; c < names_.size(); ++c) kinds.emplace(source.names()[c], source.kinds()[c]);
    for (std::size_t c = 0; c < names_.size(); ++c) {
      const FieldKind kind = kinds.at(names_[c]);
      if (kind_name(kind) != kind_name(kinds_[c]))
        throw ValueError(fmt::format(
            "[open_tables] {}, column '{}' of {}: in {} it has {}; leave it out (--drop)", path.string(),
            printable(names_[c]), kind_name(kind), paths_[0].string(), kind_name(kinds_[c])));
      if (kind == FieldKind::date_time) kinds_[c] = kind;
    }
  }

  /// From the first rows of the whole table, in whichever file they are.
  void guess_kinds() {
    TableConfig reading = config_;
    CsvInspection all;
    for (std::size_t i = 0; i < paths_.size() && reading.inspected_rows > 0; ++i) {
      const auto file = MappedFile::open(paths_[i]);
      CsvInspection found = inspect_csv(file->text(), paths_[i], csv_config(paths_[i], reading));
      reading.inspected_rows -= found.inspected;
      reading.columns = names_;  // of the files after the first, in its order
      if (i == 0) {
        all = std::move(found);
        continue;
      }
      for (std::size_t k = 0; k < all.guesses.size(); ++k) all.guesses[k].add(found.guesses[k]);
    }
    apply_guesses(all);
    kinds_ = all.columns.kinds;
    notes_ = std::move(all.notes);
  }

  /// Every file is read with the columns and kinds of the whole.
  void tell_kinds() {
    NameSet told;
    for (const auto* list : {&config_.text, &config_.number, &config_.date})
      told.insert(list->begin(), list->end());
    TableConfig reading = config_;
    reading.columns = names_;
    for (std::size_t c = 0; c < names_.size(); ++c) {
      if (told.contains(names_[c])) continue;
      (kinds_[c] == FieldKind::text ? reading.text
       : is_date(kinds_[c])         ? reading.date
                                    : reading.number)
          .push_back(names_[c]);
    }
    config_ = std::move(reading);
  }

  void open_current() {
    current_ = open_table(paths_[file_], config_);
    if (current_->fingerprint() != fingerprints_[file_])
      throw IoError(fmt::format("[open_tables] {}: changed while the tables were read; start again",
                                paths_[file_].string()));
  }

  std::vector<std::filesystem::path> paths_;
  TableConfig config_;
  std::vector<std::string> fingerprints_;
  std::vector<double> sizes_;  // in bytes
  std::unique_ptr<TableSource> current_;
  std::size_t file_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace

std::unique_ptr<TableSource> open_tables(const std::vector<std::filesystem::path>& paths,
                                         const TableConfig& config) {
  if (paths.empty()) throw ValueError("[open_tables] no files: give at least one");
  if (paths.size() == 1) return open_table(paths[0], config);
  return std::make_unique<JoinedSource>(paths, config);
}

}  // namespace ferrite::quantile_tokenizer
