// The `ferrite` program: one subcommand per job.
#include <fmt/format.h>

#include <CLI/CLI.hpp>  // all of it, here alone: see command.hpp

#include <cstdio>
#include <exception>

#include "cli/command.hpp"
#include "cli/stop_on_signal.hpp"
#include "cli/written_files.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cli {

int run_program(int argc, char** argv) {
  CLI::App app("ferrite: tensors on every backend, checked against each other", "ferrite");
  app.set_version_flag("--version", "ferrite " FERRITE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 success, 1 a difference was found, 2 bad usage or input, 130 a training that was\n"
      "interrupted and can be resumed.\n"
      "`ferrite COMMAND --help` has examples.");
  Action action;
  add_ops(app, action);
  add_replay(app, action);
  add_devices(app, action);
  add_doctor(app, action);
  add_tokenize(app, action);
  add_priors(app, action);
  add_kernel(app, action);
  add_irsynth(app, action);
  add_bench(app, action);
  add_gpt(app, action);
  add_pfn(app, action);
  add_dist(app, action);
  const auto is_chosen = [&](CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_chosen).empty()) {
    fmt::print(stderr, "ferrite: there is no command '{}'; `ferrite --help` lists them\n", argv[1]);
    return bad_input;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? success : bad_input;  // help and version are successes
  }
  try {
    check_written_files(app);
    remove_temporaries_on_signal();
    const int code = action();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      throw IoError("standard output cannot be written: the disk may be full");
    return code;
  } catch (const std::exception& e) {
    std::fputs(fmt::format("ferrite: {}\n", e.what()).c_str(), stderr);  // fmt::print would throw itself
    return bad_input;
  }
}

}  // namespace ferrite::cli
