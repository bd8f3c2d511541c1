// ferrite replay: runs the op of a replay file on a backend, compares with the outputs in the file, and
// writes results and gradients.
#include <fmt/format.h>

#include <iostream>

#include "cli/backend_option.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "ferrite/stacks/replay.hpp"

namespace ferrite::cli {

namespace {

struct ReplayOptions {
  std::string file, backend, op, attributes, out;
  bool grad = false, json = false, serve = false;
};

int run_replay(const ReplayOptions& options) {
  const Replayer replayer = Replayer().add_library<priors::Ops>();
  if (options.serve) {
    replayer.serve(std::cin, std::cout, options.backend);
    return success;
  }
  ReplayResult result;
  try {
    result = replayer.run(
        {options.file, options.backend, options.op, options.attributes, options.out, options.grad});
  } catch (const BackendError& e) {  // parity found a difference, or a kernel failed
    fmt::print(stderr, "ferrite: {}\n", e.what());
    return difference;
  }
  fmt::print("{}\n", options.json ? result.json() : result.text());
  return result.agrees() ? success : difference;
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReplayOptions>();
  CLI::App* command =
      app.add_subcommand("replay", "Run the op call of a .safetensors file and compare or write its results");
  CLI::Option* file =
      command->add_option("file", options->file,
                          "Written by Parity, or by hand: metadata op and attributes, tensors in0, in1, ...");
  add_backend_option(command, options->backend, "Where it runs, if not where the file says, or on cpu");
  CLI::Option* op = command->add_option("--op", options->op, "The op, instead of the file's");
  CLI::Option* attributes = command->add_option("--attributes", options->attributes,
                                                "Its attributes as JSON, instead of the file's");
  CLI::Option* grad = command->add_flag(
      "--grad", options->grad,
      "Also the gradients of all floating inputs, from the root gradient grad0 or ones; always if the file "
      "has grad_in0, ...");
  CLI::Option* out = command->add_option("--out", options->out,
                                         "Write out0, ... and grad_in0, ... to this .safetensors file");
  CLI::Option* json = command->add_flag("--json", options->json, "Print JSON");
  CLI::Option* serve = command->add_flag(
      "--serve", options->serve,
      "Many calls by one process: for each line {\"file\", \"out\", \"grad\"} of standard input (\"op\", "
      "\"attributes\" and \"backend\" are known too) a line {\"status\", \"message\"}; status is what the "
      "exit "
      "code would be");
  for (CLI::Option* other : {file, op, attributes, grad, out, json}) serve->excludes(other);
  command->footer(
      "Exit code 1 if an output differs from out0, out1, ... of the file, or a gradient from grad_in0, ...\n"
      "Examples:\n"
      "  ferrite replay parity-reports/softmax-1.safetensors --backend cpu\n"
      "  ferrite replay call.safetensors --backend reference --grad --out results.safetensors\n"
      "  ferrite replay x.safetensors --op softmax --attributes '{\"axis\":-1}'\n"
      "  ferrite replay --serve --backend cpu < requests.jsonl");
  command->callback([&action, options] {
    if (options->file.empty() && !options->serve) throw CLI::RequiredError("file (or --serve)");
    action = [options] { return run_replay(*options); };
  });
}

}  // namespace ferrite::cli
