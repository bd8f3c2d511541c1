// Shared by the subcommands of `ferrite`.
#pragma once

// Not CLI/CLI.hpp: the virtual functions of what prints help and reads config files would be compiled in
// every file, which takes seconds. They are in program.cpp.
#include <CLI/App.hpp>
#if __has_include(<CLI/ExtraValidators.hpp>)  // CLI11 2.6
#include <CLI/ExtraValidators.hpp>
#endif
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/to_number.hpp"

namespace ferrite::cli {

/// Exit codes, the same for every subcommand.
enum Exit : int { success = 0, difference = 1, bad_input = 2, interrupted = 130 };

/// CLI11 takes 010 as 8.
inline bool looks_octal(const std::string& text) {
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

/// For seeds and counts: CLI11 reads -1, and what is too large, as the largest number.
inline const CLI::Validator whole_number(
    [](const std::string& text) {
      return to_number<std::uint64_t>(text) && !looks_octal(text)
                 ? std::string()
                 : "'" + text + "': give a whole number, 0 or more and below 2^64";
    },
    "");

/// For counts; both ends included.
inline CLI::Validator whole_between(std::int64_t low, std::int64_t high) {
  return CLI::Validator(
      [low, high](const std::string& text) {
        const auto value = to_number<std::int64_t>(text);
        return value && !looks_octal(text) && *value >= low && *value <= high
                   ? std::string()
                   : "'" + text + "': give a whole number from " + std::to_string(low) + " to " +
                         std::to_string(high);
      },
      "");
}

/// For other numbers. CLI11 has the like, but its words differ from version to version, and NaN passes.
inline CLI::Validator number_where(std::function<bool(double)> holds, const std::string& rule,
                                   const std::string& shown) {
  return CLI::Validator(
      [holds = std::move(holds), rule](const std::string& text) {
        double value = 0;
        const bool is_number =
            CLI::detail::lexical_cast(text, value) && std::isfinite(value) && !looks_octal(text);
        return is_number && holds(value) ? std::string() : "'" + text + "': give a number " + rule;
      },
      shown);
}
inline const CLI::Validator positive_number =
    number_where([](double value) { return value > 0; }, "above 0", "POSITIVE");
inline const CLI::Validator nonnegative_number =
    number_where([](double value) { return value >= 0; }, "of 0 or more", "NONNEGATIVE");
/// Both ends included.
inline CLI::Validator between(std::int64_t low, std::int64_t high) {
  const auto holds = [=](double value) {
    return value >= static_cast<double>(low) && value <= static_cast<double>(high);
  };
  const std::string from = std::to_string(low), to = std::to_string(high);
  return number_where(holds, "from " + from + " to " + to, "[" + from + " - " + to + "]");
}

/// An option whose value is checked, and whose default the help shows.
template <class T>
CLI::Option* add_checked(CLI::App& command, const std::string& name, T& value, const std::string& help,
                         const CLI::Validator& rule) {
  return command.add_option(name, value, help)->check(rule)->capture_default_str();
}

/// Several values with commas or spaces in between, or both, as in "a, b".
inline CLI::Option* as_list(CLI::Option* option) {
  return option->delimiter(',')->transform(
      [](const std::string& text) { return CLI::detail::trim_copy(text); });
}

/// Values are texts as they are given. CLI11 takes "[INST] a, b [/INST]" as a list, unless an option says how
/// many values it has at most.
inline CLI::Option* as_texts(CLI::Option* option) {
  return option->expected(1, 10000)->allow_extra_args(false);
}

/// What a command does without one of its subcommands, before which its own options would mean nothing.
inline void act_alone(CLI::App& command, std::function<void()> act) {
  command.callback([&command, act = std::move(act)] {
    const std::vector<CLI::App*> chosen = command.get_subcommands();
    if (chosen.empty()) return act();
    for (const CLI::Option* option : command.get_options())
      if (option->count() > 0)
        throw CLI::ValidationError(option->get_name(), "means nothing before '" + chosen[0]->get_name() +
                                                           "'; what that takes stands after it");
  });
}

/// What main does. Returns an exit code.
int run_program(int argc, char** argv);

/// The action of the chosen subcommand; returns an exit code.
using Action = std::function<int()>;

// Each adds one subcommand, which sets `action` when it is chosen.
void add_ops(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_priors(CLI::App& app, Action& action);
void add_kernel(CLI::App& app, Action& action);
void add_irsynth(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_gpt(CLI::App& app, Action& action);
void add_pfn(CLI::App& app, Action& action);
void add_dist(CLI::App& app, Action& action);

// Subcommands of `ferrite bench`.
void add_bench_compare(CLI::App& bench, Action& action);
void add_bench_page(CLI::App& bench, Action& action);

}  // namespace ferrite::cli
