// ferrite priors stats: what the datasets of a prior look like, beside real tables and a user's own.
#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "cli/prior_options.hpp"
#include "cli/show_json.hpp"
#include "ferrite/io/progress.hpp"
#include "ferrite/models/priors/shards.hpp"
#include "ferrite/models/priors/table_statistics.hpp"
#include "ferrite/models/quantile_tokenizer/table.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::cli {

namespace {

using namespace priors;

struct PriorStatsOptions : PriorOptions {
  std::string csv, target;
  bool json = false;
};

std::vector<TableStatistics> drawn(AnyBackend& backend, const PriorStatsOptions& options,
                                   const Config& config) {
  std::vector<TableStatistics> tables;
  ProgressLine bar(options.json ? nullptr : stderr);
  for (std::int64_t done = 0; done < options.datasets;) {
    const std::int64_t count = std::min<std::int64_t>(options.datasets - done, 64);
    const auto batch =
        batch_statistics(to_host(generate(backend, config, options.seed, options.first + done, count)));
    tables.insert(tables.end(), batch.begin(), batch.end());
    done += count;
    bar("datasets", static_cast<double>(done) / static_cast<double>(options.datasets));
  }
  return tables;
}

std::vector<TableStatistics> drawn(const PriorStatsOptions& options) {
  const Config config = options.prior();
  op::PriorDatasets{config, options.seed, options.first, options.datasets}.infer({});
  AnyBackend backend(options.backend);
  return drawn(backend, options, config);
}

/// Chunks of text columns each have their own codes; here a text has one number in the whole file.
class Columns {
 public:
  explicit Columns(const quantile_tokenizer::TableSource& source) {
    for (const quantile_tokenizer::FieldKind kind : source.kinds())
      columns_.push_back({{}, kind == quantile_tokenizer::FieldKind::text});
    numbers_.resize(columns_.size());
  }
  void add(const quantile_tokenizer::TableChunk& chunk) {
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      std::vector<double>& values = columns_[c].values;
      if (!columns_[c].categories) {
        values.insert(values.end(), chunk.numbers[c].begin(), chunk.numbers[c].end());
        continue;
      }
      std::vector<double> number_of_code;
      for (const std::string& text : chunk.texts[c].distinct)
        number_of_code.push_back(
            static_cast<double>(numbers_[c].try_emplace(text, numbers_[c].size()).first->second));
      for (const std::int32_t code : chunk.texts[c].codes)
        values.push_back(code < 0 ? std::numeric_limits<double>::quiet_NaN()
                                  : number_of_code[static_cast<std::size_t>(code)]);
    }
  }
  std::vector<TableColumn> take() { return std::move(columns_); }

 private:
  std::vector<TableColumn> columns_;
  std::vector<std::unordered_map<std::string, std::size_t>> numbers_;
};

TableStatistics of_file(const std::string& path, const std::string& target) {
  const auto source = quantile_tokenizer::open_table(path);
  const auto found = std::find(source->names().begin(), source->names().end(), target);
  if (!target.empty() && found == source->names().end())
    throw ValueError(fmt::format("[priors stats] --target {}: {} has the columns {}", target, path,
                                 fmt::join(source->names(), ", ")));
  const auto place = found - source->names().begin();
  Columns columns(*source);
  while (const auto chunk = source->next()) columns.add(*chunk);
  std::vector<TableColumn> features = columns.take();
  if (target.empty()) return table_statistics(features);
  const std::vector<double> classes = std::move(features[static_cast<std::size_t>(place)].values);
  features.erase(features.begin() + place);
  TableStatistics table = table_statistics(features, classes);
  if (table.classes > max_classes)  // a real target
    table.classes = table.largest_class = std::nullopt;
  return table;
}

nlohmann::ordered_json json_of(const std::optional<Quartiles>& q) {
  if (!q) return nullptr;
  return {{"mean", q->mean}, {"lower", q->lower}, {"median", q->median}, {"upper", q->upper}};
}

void print_json(std::span<const TableStatistics> tables, const std::optional<TableStatistics>& own) {
  nlohmann::ordered_json json{{"datasets", tables.size()}, {"real_tables", real_tables}};
  for (const std::string_view name : statistic_names) {
    json["prior"][std::string(name)] = json_of(quartiles(tables, name));
    json["real"][std::string(name)] = json_of(real_quartiles(name));
    if (!own) continue;
    const auto value = statistic(*own, name);
    json["csv"][std::string(name)] = value ? nlohmann::ordered_json(*value) : nullptr;
  }
  if (own) json["csv"]["classes"] = own->classes ? nlohmann::ordered_json(*own->classes) : nullptr;
  show_json(json);
}

void print_table(std::span<const TableStatistics> tables, const std::optional<TableStatistics>& own,
                 const PriorStatsOptions& options) {
  const auto digits = [](std::string_view name) { return name == "rows" || name == "features" ? 0 : 3; };
  const auto cell = [&](std::string_view name, const std::optional<Quartiles>& q) {
    const int d = digits(name);
    return q ? fmt::format("{:.{}f}  ({:.{}f} {:.{}f} {:.{}f})", q->mean, d, q->lower, d, q->median, d,
                           q->upper, d)
             : std::string("-");
  };
  const std::string prior = fmt::format("{} drawn datasets", tables.size()),
                    real = fmt::format("{} real tables", real_tables);
  fmt::print("mean (lower quartile, median, upper quartile)\n");
  const auto line = [&](std::string_view name, const std::string& drawn, const std::string& found,
                        const std::string& mine) {
    const std::string start = fmt::format("{:<16}{:<34}{}", name, drawn, found);
    fmt::print("{}\n", own ? fmt::format("{:<84}{}", start, mine) : start);
  };
  line("", prior, real, options.csv);
  for (const std::string_view name : statistic_names) {
    const auto value = own ? statistic(*own, name) : std::nullopt;
    line(name, cell(name, quartiles(tables, name)), cell(name, real_quartiles(name)),
         value ? fmt::format("{:.{}f}", *value, digits(name)) : "-");
  }
  if (own && !own->largest_class)
    fmt::print("largest_class of {}: {}\n", options.csv,
               options.target.empty()
                   ? "name the column of classes with --target"
                   : fmt::format("{} has more than {} different values", options.target, max_classes));
}

int run_prior_stats(const PriorStatsOptions& options) {
  std::optional<TableStatistics> own;
  if (!options.csv.empty()) own = of_file(options.csv, options.target);
  const std::vector<TableStatistics> tables = drawn(options);
  if (options.json)
    print_json(tables, own);
  else
    print_table(tables, own, options);
  return success;
}

}  // namespace

void add_prior_stats(CLI::App& priors, Action& action) {
  auto options = std::make_shared<PriorStatsOptions>();
  CLI::App* command =
      priors.add_subcommand("stats", "Compare drawn datasets with real tables, and with a table of your own");
  options->add_to(*command);
  CLI::Option* csv =
      command->add_option("--csv", options->csv, "Your table (.csv, .tsv, .parquet, .npz, ...)");
  command->add_option("--target", options->target, "Its column of classes")->needs(csv);
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  ferrite priors stats --preset realistic\n"
      "  ferrite priors stats --config prior.json --csv my.csv --target y --json");
  command->callback([&action, options] { action = [options] { return run_prior_stats(*options); }; });
}

}  // namespace ferrite::cli
