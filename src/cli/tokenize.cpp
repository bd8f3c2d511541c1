// ferrite tokenize: fit | transform | inspect | inverse.
#include <fmt/format.h>

#include <filesystem>

#include "cli/backend_option.hpp"
#include "cli/command.hpp"
#include "cli/csv_options.hpp"
#include "cli/input_files.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "ferrite/io/csv_scanner.hpp"
#include "ferrite/io/npy.hpp"
#include "ferrite/io/progress.hpp"
#include "ferrite/models/quantile_tokenizer/shards.hpp"

namespace ferrite::cli {

namespace {

using namespace quantile_tokenizer;

template <class E>
std::map<std::string, E> choices() {
  std::map<std::string, E> all;
  for (int i = 0; i < count_of(E{}); ++i) all.emplace(to_string(static_cast<E>(i)), static_cast<E>(i));
  return all;
}

template <class E>
CLI::Option* add_choice(CLI::App* command, const std::string& name, E& value, const std::string& help) {
  const auto all = choices<E>();
  std::string names;
  for (const auto& [key, unused] : all) names += (names.empty() ? "" : ", ") + key;
  return command
      ->add_option_function<std::string>(
          name, [&value, all](const std::string& key) { value = all.at(key); }, help + ": " + names)
      ->check(CLI::IsMember(all));
}

struct TokenizeOptions {
  std::vector<std::string> inputs;
  std::string input, fit, out, tokens, html, backend = "cpu", like;
  TableConfig table;
  TableFitConfig config;
  ShardConfig shards;
  bool columns_layout = false, mean = false, quiet = false;
  double memory_gib = 4;

  TableConfig table_config() const {
    TableConfig c = table;
    c.layout = columns_layout ? TableLayout::columns : TableLayout::rows;
    return c;
  }
};

void add_table_options(CLI::App* command, TokenizeOptions& o) {
  command
      ->add_option(
          "input", o.inputs,
          "Table: .csv .tsv .npy .npz .safetensors .parquet; several files of the same columns, or a "
          "pattern such as 'day-*.csv', are read as one table")
      ->required();
  add_backend_option(command, o.backend, "Where numbers are binned");
  add_reading_options(*command, o.table);
  add_list_option(*command, "--drop", o.table.drop, "Columns to leave out");
  command->add_option("--array", o.table.array, "Which array of an .npz or .safetensors file");
  command->add_flag("--columns-first", o.columns_layout, "Arrays are [columns, rows]");
  add_checked(*command, "--chunk-bytes", o.table.chunk_bytes, "About how much is read at a time",
              positive_number);
}

/// Warnings about a table or a fit go to standard error, so that they do not mix with results.
void warn(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) fmt::print(stderr, "warning: {}\n", note);
}

int run_fit(TokenizeOptions& o) {
  if (o.like == "sklearn") {
    o.config.tokenizer = TokenizerConfig::like_sklearn(o.config.tokenizer.bins);
  } else if (o.like == "sklearn-linear") {
    o.config.tokenizer = TokenizerConfig::like_sklearn(o.config.tokenizer.bins, QuantileMethod::linear);
  } else if (o.like == "pandas") {
    o.config.tokenizer = TokenizerConfig::like_pandas(o.config.tokenizer.bins);
  } else if (o.like == "auto-tabular") {
    o.config.tokenizer = TokenizerConfig::like_auto_tabular(o.config.tokenizer.bins);
  }
  o.config.tokenizer.statistics = true;
  if (!(o.memory_gib >= 0 && o.memory_gib <= 0x1p20))
    throw ValueError(fmt::format("[tokenize] --memory {}: must lie between 0 and 2^20 GiB", o.memory_gib));
  o.config.memory_limit = static_cast<std::int64_t>(o.memory_gib * 0x1p30);
  const AtomicFile reserved(o.out);  // a path that cannot be written should not cost the fit
  auto source = open_tables(input_files(o.inputs), o.table_config());
  warn(source->notes());
  if (!o.tokens.empty()) source = kept_in_memory(std::move(source), o.config.memory_limit);
  ProgressLine bar(o.quiet ? nullptr : stderr);
  AnyBackend backend(o.backend);
  TableEngineOn<AnyBackend> engine(backend);
  const TableTokenizer fitted = TableTokenizer::fit(*source, engine, o.config, std::ref(bar));
  warn(fitted.notes());
  // The shards first: where they are refused, those of the fit that is there can still be read.
  try {
    if (!o.tokens.empty()) write_shards(o.tokens, *source, fitted, engine, o.shards, std::ref(bar));
  } catch (const IoError&) {  // a full disk, say, which must not cost the fit
    fitted.save(o.out);
    throw;
  }
  fitted.save(o.out);
  if (!o.quiet) fmt::print("{}written: {} {}\n", fitted.report(), o.out, o.tokens);
  return success;
}

int run_transform(const TokenizeOptions& o) {
  const TableTokenizer fitted = TableTokenizer::load(o.fit);
  const auto source = open_tables(input_files(o.inputs), fitted.reading(o.table_config()));
  warn(source->notes());
  ProgressLine bar(o.quiet ? nullptr : stderr);
  AnyBackend backend(o.backend);
  TableEngineOn<AnyBackend> engine(backend);
  const ShardResult done = write_shards(o.out, *source, fitted, engine, o.shards, std::ref(bar));
  if (!o.quiet)
    fmt::print("{} rows in {} shards ({} of an earlier run): {}\n", done.rows, done.shards, done.kept, o.out);
  return success;
}

int run_inspect(const TokenizeOptions& o) {
  const TableTokenizer fitted = TableTokenizer::load(o.fit);
  fmt::print("{}", fitted.report());
  if (o.html.empty()) return success;
  write_text(o.html, fitted.report_page(std::filesystem::path(o.fit).filename().string()));
  fmt::print("written: {}\n", o.html);
  return success;
}

int run_inverse(const TokenizeOptions& o) {
  const TableTokenizer fitted = TableTokenizer::load(o.fit);
  const std::size_t columns = fitted.columns().size();
  std::vector<std::filesystem::path> files{o.input};
  std::error_code not_there;  // reading it will report this
  if (std::filesystem::is_directory(o.input, not_there)) files = shard_files(o.input, fitted);
  AtomicFile out(o.out);
  std::string text;
  const auto end_row = [&](std::size_t flush_size) {
    text.back() = '\n';
    if (text.size() < flush_size) return;
    out.write(text);
    text.clear();
  };
  for (const quantile_tokenizer::TableColumn& c : fitted.columns()) {
    append_csv_field(text, c.name);
    text += ',';
  }
  end_row(1 << 20);
  std::int64_t row = 0;
  for (const auto& file : files) {
    const HostTensor tokens = read_npy(file);
    if (tokens.shape().rank() != 2 || tokens.shape()[1] != static_cast<std::int64_t>(columns) ||
        !is_integer(tokens.dtype()))
      throw ValueError(fmt::format("[tokenize] {}: {} {}: needs integers [rows, {}]", file.string(),
                                   to_string(tokens.dtype()), to_string(tokens.shape()), columns));
    visit_any_dtype(tokens.dtype(), [&]<class T>() {
      const auto all = tokens.as<T>();
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto token = convert<std::int64_t>(all[i]);
        const std::string field =
            fitted.inverse(token, i % columns, row, o.mean ? BinValue::mean : BinValue::midpoint);
        // An empty line would not be a row, so a single empty field is written as "".
        if (!field.empty() || columns == 1) append_csv_field(text, field);
        text += ',';
        if ((i + 1) % columns != 0) continue;
        end_row(1 << 20);
        ++row;
      }
    });
  }
  out.write(text);
  out.commit();
  if (!o.quiet) fmt::print("{} rows: {}\n", row, o.out);
  return success;
}

void add_fit(CLI::App* tokenize, const std::shared_ptr<TokenizeOptions>& o, Action& action) {
  CLI::App* fit = tokenize->add_subcommand(
      "fit", "Find bins and categories of the columns of a table in one or more files");
  TokenizerConfig& t = o->config.tokenizer;
  add_table_options(fit, *o);
  fit->add_option("--out", o->out, "The fit, a .safetensors file")->required();
  fit->add_option("--bins", t.bins, "Bins per column, 2 to 65534")->capture_default_str();
  fit->add_option(
         "--like", o->like,
         "Conventions of others (sklearn-linear: before 1.9); the options of bins below do not count then")
      ->check(CLI::IsMember({"sklearn", "sklearn-linear", "pandas", "auto-tabular"}));
  add_choice(fit, "--method", t.method, "Quantiles between two values");
  add_choice(fit, "--closed", t.closed, "Which end belongs to a bin");
  add_choice(fit, "--duplicates", t.duplicates, "What happens to equal edges");
  add_choice(fit, "--width", t.width, "Of tokens");
  add_list_option(*fit, "--text", o->table.text, "Columns to take as text");
  add_checked(*fit, "--inspected-rows", o->table.inspected_rows, "Rows that decide which columns are numbers",
              positive_number);
  fit->add_option("--categories", o->config.most_categories, "Categories kept per column")
      ->capture_default_str();
  fit->add_option("--integer-categories", o->config.integer_categories,
                  "Columns of so few integers are categories")
      ->capture_default_str();
  fit->add_option("--memory", o->memory_gib, "GiB of numbers to keep; larger tables are read twice")
      ->capture_default_str();
  fit->add_option("--tokens", o->tokens, "Also write the tokens of the table, as shards into this folder");
  fit->add_flag("--overwrite", o->shards.overwrite, "Replace the shards that are there");
  fit->add_flag("--quiet", o->quiet, "Print nothing but warnings");
  fit->footer(
      "Examples:\n  ferrite tokenize fit train.csv --bins 64 --out fit.safetensors\n"
      "  ferrite tokenize fit train.npy --like sklearn --bins 100 --out fit.safetensors\n"
      "  ferrite tokenize fit big.csv --memory 1 --drop id --missing ?,-999 --out fit.safetensors\n"
      "  ferrite tokenize fit 2024.csv 2025.csv --out fit.safetensors\n"
      "  ferrite tokenize fit 'days/*.csv' --out fit.safetensors");
  fit->callback([&action, o] { action = [o] { return run_fit(*o); }; });
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  auto o = std::make_shared<TokenizeOptions>();
  CLI::App* tokenize =
      app.add_subcommand("tokenize", "Turn tables into tokens by quantiles and categories, and back");
  tokenize->require_subcommand(1);
  tokenize->footer(
      "Examples:\n  ferrite tokenize fit train.csv --bins 64 --out fit.safetensors\n"
      "  ferrite tokenize transform test.csv --fit fit.safetensors --out tokens/");
  add_fit(tokenize, o, action);

  CLI::App* transform = tokenize->add_subcommand("transform", "Write the tokens of a table as shards");
  add_table_options(transform, *o);
  transform->add_option("--fit", o->fit, "What `fit` wrote")->required();
  transform->add_option("--out", o->out, "Folder of the shards")->required();
  add_checked(*transform, "--shard-rows", o->shards.rows, "Rows of a shard", positive_number);
  transform->add_flag("--overwrite", o->shards.overwrite, "Replace the shards that are there");
  transform->add_flag("--quiet", o->quiet, "Print nothing but warnings");
  transform->footer(
      "Columns are found by name: others may be there, in any order. An interrupted run goes on where it "
      "stopped.\nExamples:\n"
      "  ferrite tokenize transform test.csv --fit fit.safetensors --out tokens/\n"
      "  ferrite tokenize transform x.npy --fit fit.safetensors --out tokens/ --shard-rows 100000");
  transform->callback([&action, o] { action = [o] { return run_transform(*o); }; });

  CLI::App* inspect = tokenize->add_subcommand("inspect", "Show what a fit holds");
  inspect->add_option("fit", o->fit, "What `fit` wrote")->required();
  inspect->add_option("--html", o->html, "Also write a page with histograms and edges");
  inspect->footer("Examples:\n  ferrite tokenize inspect fit.safetensors --html fit.html");
  inspect->callback([&action, o] { action = [o] { return run_inspect(*o); }; });

  CLI::App* inverse = tokenize->add_subcommand("inverse", "Write the values that stand for tokens as CSV");
  inverse->add_option("input", o->input, "A folder of shards, or an .npy file of tokens")->required();
  inverse->add_option("--fit", o->fit, "What `fit` wrote")->required();
  inverse->add_option("--out", o->out, "A .csv file")->required();
  inverse->add_flag("--mean", o->mean, "Bin means instead of midpoints");
  inverse->add_flag("--quiet", o->quiet, "Print nothing");
  inverse->footer(
      "Examples:\n  ferrite tokenize inverse tokens/ --fit fit.safetensors --out back.csv --mean");
  inverse->callback([&action, o] { action = [o] { return run_inverse(*o); }; });
}

}  // namespace ferrite::cli
