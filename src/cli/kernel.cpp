// ferrite kernel: check | run | emit | adjoint | builtins.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/backend_option.hpp"
#include "cli/kernel_arguments.hpp"
#include "cli/kernel_launch.hpp"
#include "cli/kernel_results.hpp"
#include "cli/result_file.hpp"
#include "cli/show_json.hpp"
#include "ferrite/kernel/adjoint.hpp"
#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/interpreter.hpp"
#include "ferrite/kernel/kernel.hpp"
#include "ferrite/kernel/parse.hpp"
#include "ferrite/models/irsynth/emit_warp.hpp"

namespace ferrite::cli {

namespace {

using namespace kernel;

struct KernelOptions {
  std::string file, kernel, dim, out, backend;
  std::vector<std::string> arguments, bindings;
  std::string precision = "native";
  InterpretOptions interpret;
  std::uint64_t seed = 0;
  std::string target = "cuda";
  EmitOptions emit;
  bool forward_only = false;
  int architecture = 90;
  bool print = false, json = false;
};

std::string read_text(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw IoError(fmt::format("[kernel] {}: is a folder; give a Python file in it", file));
  std::ifstream in(file, std::ios::binary);
  if (!in) throw IoError(fmt::format("[kernel] {}: cannot be opened", file));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Bindings bindings(const KernelOptions& o) {
  Bindings all;
  for (const std::string& b : o.bindings) {
    const std::size_t equals = b.find('=');
    if (equals == std::string::npos)
      throw ValueError(fmt::format("[kernel] --bind {}: write FUNCTION.PARAMETER=VALUE", b));
    if (!all.emplace(b.substr(0, equals), b.substr(equals + 1)).second)
      throw ValueError(fmt::format("[kernel] --bind {}: it has a value already; give it one", b));
  }
  return all;
}
/// Errors in kernels that are not asked for do not matter.
Module read_module(const KernelOptions& o) {
  return parse_for(o.kernel, read_text(o.file), o.file, bindings(o));
}

std::string signature(const Module& module, const Function& f) {
  std::string text;
  for (int i = 0; i < f.parameters; ++i) {
    const Variable& p = f.variables[static_cast<std::size_t>(i)];
    text += fmt::format("{}{}: {}", i == 0 ? "" : ", ", p.name, to_string(p.type, module.struct_names()));
  }
  return fmt::format("{}({})", f.name, text);
}

std::vector<KernelError> certain_races_of(const Module& module) {
  std::vector<KernelError> all;
  for (const Function& k : module.kernels)
    for (KernelError& race : certain_races(module, k)) all.push_back(std::move(race));
  return all;
}
void warn(const std::vector<KernelError>& warnings) {
  for (const KernelError& w : warnings) fmt::print(stderr, "warning: {}\n", w.what());
}

int check(const KernelOptions& o) {
  const Parsed parsed = parse_all(read_text(o.file), o.file, bindings(o));
  const Module& found = parsed.module;
  if (found.kernels.empty() && found.functions.empty() && found.structs.empty() && parsed.errors.empty())
    throw ValueError(
        fmt::format("[kernel check] {}: nothing to check; kernels are marked with @wp.kernel", o.file));
  if (o.json) {
    nlohmann::json report{{"kernels", nlohmann::json::array()},
                          {"warnings", nlohmann::json::array()},
                          {"errors", nlohmann::json::array()}};
    for (const Function& k : parsed.module.kernels)
      report["kernels"].push_back({{"name", k.name}, {"signature", signature(parsed.module, k)}});
    for (const KernelError& e : parsed.errors)
      report["errors"].push_back({{"line", e.place().line},
                                  {"column", e.place().column},
                                  {"definition", e.definition()},
                                  {"problem", e.problem()}});
    for (const KernelError& w : certain_races_of(parsed.module))
      report["warnings"].push_back(
          {{"line", w.place().line}, {"column", w.place().column}, {"problem", w.problem()}});
    show_json(report);
  } else if (o.print) {
    fmt::print("{}", print(parsed.module));
  } else {
    for (const Function& k : parsed.module.kernels) fmt::print("kernel {}\n", signature(parsed.module, k));
    for (const Function& f : parsed.module.functions) fmt::print("func   {}\n", signature(parsed.module, f));
  }
  if (!o.json) {
    warn(certain_races_of(parsed.module));
    for (const KernelError& e : parsed.errors) fmt::print(stderr, "{}\n", e.what());
  }
  return parsed.errors.empty() ? success : bad_input;
}

int run_kernel(KernelOptions o) {
  const Module module = read_module(o);
  const Function& k = module.kernel(o.kernel);
  const std::vector<std::int64_t> dim = extents(o.dim);
  KernelArguments arguments(module, o.arguments, dim, o.seed);
  std::vector<Value> values;
  for (int i = 0; i < k.parameters; ++i) {
    const Variable& p = k.variables[static_cast<std::size_t>(i)];
    values.push_back(arguments.make(p.name, p.type));
  }
  arguments.check_all_used();
  o.interpret.precision = o.precision == "f64" ? Precision::f64 : Precision::native;
  if (!o.out.empty()) prepare_folder(o.out, arrays_of(module, k, values), arguments.files());
  if (!o.backend.empty()) {
    const Grid grid(Shape(dim), o.interpret.block_dim);
    fmt::print("{}\n", launch_on(o.backend, Kernel(module, k.name), grid, values));
  } else {
    std::vector<Race> races;
    o.interpret.races = &races;
    interpret(module, k, dim, values, o.interpret);
    for (const Race& r : races) warn({warning(module, r)});
  }
  for (const NamedArray& array : arrays_of(module, k, values)) {
    fmt::print("{}\n", text_of(module, array));
    if (!o.out.empty()) write_array(o.out, array);
  }
  return success;
}

int emit(const KernelOptions& o) {
  ResultFile file(o.out);
  const Module module = read_module(o);
  if (module.kernels.empty())
    throw ValueError(
        fmt::format("[kernel emit] {}: there is no kernel: mark a function with @wp.kernel", o.file));
  std::string text;
  if (o.target == "cpp") {
    text = o.kernel.empty() ? emit_cpp(module, o.emit) : emit_cpp(module, module.kernel(o.kernel), o.emit);
  } else if (o.target == "warp" || o.target == "warp-cpu") {
    irsynth::WarpOptions warp;
    warp.device = o.target == "warp" ? irsynth::Device::cuda : irsynth::Device::cpu;
    warp.backward = !o.forward_only;
    text = o.kernel.empty() ? irsynth::emit_warp(module, warp)
                            : irsynth::emit_warp(module, module.kernel(o.kernel), warp);
  } else {
    text = o.kernel.empty() ? emit_cuda(module, o.emit) : emit_cuda(module, module.kernel(o.kernel), o.emit);
    if (o.target == "ptx") text = compile_ptx(text, o.architecture);
  }
  if (o.out.empty()) fmt::print("{}", text);
  file.write([&] { return text; });
  return success;
}

int list_builtins() {
  std::string_view group;
  for (const BuiltinInfo& row : builtins()) {
    if (row.group != group) fmt::print("{}{}\n", group.empty() ? "" : "\n", row.group);
    group = row.group;
    fmt::print("  {:<4}{}\n        {}\n", row.symbol, row.signature, row.doc);
  }
  return success;
}

}  // namespace

void add_kernel(CLI::App& app, Action& action) {
  auto options = std::make_shared<KernelOptions>();
  KernelOptions& o = *options;
  CLI::App* command =
      app.add_subcommand("kernel", "Check, run and translate kernels written in Warp's Python");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  ferrite kernel check saxpy.py\n"
      "  ferrite kernel run saxpy.py --dim 1024 --arg a=2 --arg x=x.npy --arg y=zeros:1024 --out results\n"
      "  ferrite kernel emit saxpy.py --target cuda --out saxpy.cu\n"
      "  ferrite kernel adjoint saxpy.py");

  const auto takes_source = [&o](CLI::App* subcommand) {
    subcommand->add_option("file", o.file, "Python file with @wp.kernel definitions")->required();
    subcommand
        ->add_option(
            "--bind", o.bindings,
            "FUNCTION.PARAMETER=VALUE: of a Python function around kernels, or the type of a kernel's "
            "parameter that is Any")
        ->allow_extra_args(false);
  };
  CLI::App* checking = command->add_subcommand("check", "Parse and type-check all kernels of a file");
  takes_source(checking);
  checking->add_flag("--print", o.print, "Print the kernels as ferrite understood them");
  checking->add_flag("--json", o.json, "Print kernels and errors as JSON");
  checking->callback([options, &action] { action = [options] { return check(*options); }; });

  CLI::App* backward = command->add_subcommand("adjoint", "Print the backward kernel of a kernel");
  takes_source(backward);
  backward->add_option("--kernel", o.kernel, "Which kernel, if the file has several");
  backward->callback([options, &action] {
    action = [options] {
      const Module module = read_module(*options);
      const Function& k = module.kernel(options->kernel);
      fmt::print("{}", print(adjoint(module, k)));
      warn(certain_races(module, k));
      return 0;
    };
  });

  command->add_subcommand("builtins", "List what kernels can call, with signatures")->callback([&action] {
    action = list_builtins;
  });

  CLI::App* running = command->add_subcommand("run", "Run a kernel in the interpreter, or on a backend");
  takes_source(running);
  running->add_option("--kernel", o.kernel, "Which kernel, if the file has several");
  running->add_option("--dim", o.dim, "Threads of the grid: 1024, 64x64")->required();
  running->add_option(
      "--arg", o.arguments,
      "NAME=VALUE: a number, numbers for a vector (1,2,3), FILE.npy, or a generated array (zeros:64x3, "
      "iota:64, uniform:64, normal:64). Arrays without a value are uniform, of the grid's shape. Fields of "
      "a struct are s.x=...");
  running->add_option("--out", o.out, "Folder for the arrays after the run, one .npy each");
  CLI::Option* backend = add_backend_option(
      running, o.backend, "Launch it on tensors, instead of the interpreter, which also looks for races");
  running->add_option("--precision", o.precision, "native, or f64: no rounding below f64")
      ->check(CLI::IsMember({"native", "f64"}))
      ->excludes(backend);
  running->add_option("--block-dim", o.interpret.block_dim, "Threads of a block")->capture_default_str();
  add_checked(*running, "--steps", o.interpret.step_limit,
              "Statements after which a kernel counts as hanging", positive_number)
      ->excludes(backend);
  running->add_option("--seed", o.seed, "Of generated arrays")->check(whole_number);
  running->footer(
      "On a GPU it prints the blocks and threads of the launch.\nExamples:\n"
      "  ferrite kernel run saxpy.py --dim 1024 --arg a=2 --arg x=x.npy --arg y=zeros:1024 --out results\n"
      "  ferrite kernel run saxpy.py --dim 1048576 --arg a=2 --backend cuda");
  running->callback([options, &action] { action = [options] { return run_kernel(*options); }; });

  CLI::App* emitting = command->add_subcommand("emit", "Print kernels as CUDA, C++, PTX or as Warp does");
  takes_source(emitting);
  add_checked(*emitting, "--target", o.target,
              "cuda, cpp, ptx (needs NVRTC), or the code that Warp makes of it: warp, warp-cpu",
              CLI::IsMember({"cuda", "cpp", "ptx", "warp", "warp-cpu"}));
  emitting->add_option("--kernel", o.kernel, "Only this kernel");
  emitting->add_option("--out", o.out, "File for the text; else it is printed");
  emitting->add_flag("--forward-only", o.forward_only, "For warp: no backward kernels");
  emitting->add_flag("--source-lines", o.emit.source_lines, "The lines of the source as comments");
  add_checked(*emitting, "--block-dim", o.emit.block_dim, "Most threads of a block, for cuda and ptx",
              between(1, 1024));
  emitting->add_option("--arch", o.architecture, "GPU architecture for ptx")->capture_default_str();
  emitting->callback([options, &action] { action = [options] { return emit(*options); }; });
}

}  // namespace ferrite::cli
