// NVRTC: the texts of many records in one module, each in its own namespace.
#include <fmt/format.h>

#include "ferrite/kernel/emit.hpp"
#include "models/irsynth/compile.hpp"

namespace ferrite::irsynth {

namespace {

/// One copy of each of CUDA's longer functions for the whole module. NVRTC would inline one at every call,
/// and most of the time would go into these.
const std::string& shared_functions() {
  static const std::string text = [] {
    std::string functions, names;
    const auto add = [&](std::string_view name, std::string_view type, std::string_view parameters,
                         std::string_view arguments) {
      functions += fmt::format("static __device__ __noinline__ {1} shared_{0}({2}) {{ return {0}({3}); }}\n",
                               name, type, parameters, arguments);
      names += fmt::format("#define {0} shared_{0}\n", name);
    };
    for (const std::string_view name : {"sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
                                        "exp", "log", "log2", "log10", "cbrt", "erf", "erfc"}) {
      add(fmt::format("{}f", name), "float", "float x", "x");
      add(name, "double", "double x", "x");
    }
    for (const std::string_view name : {"pow", "atan2", "fmod"}) {
      add(fmt::format("{}f", name), "float", "float x, float y", "x, y");
      add(name, "double", "double x, double y", "x, y");
    }
    return functions + names;
  }();
  return text;
}

std::string module_text(Style style, std::span<const Record> records, Texts texts) {
  std::string text = shared_functions();
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto part = [&](const std::string& source, const std::string& name, std::string_view what) {
      if (!source.empty())
        // Overloads of a record must not hide CUDA's functions.
        text += fmt::format(
            "namespace {0}{1} {{\nusing ::abs;\nusing ::max;\nusing ::min;\n#define {2} "
            "{0}{1}_entry\n{3}\n#undef {2}\n}}\n",
            what, i, name, source);
    };
    const Record& r = records[i];
    if (!r.failure.empty()) continue;
    const bool standalone = style == Style::standalone;
    if (texts != Texts::backward)
      part(standalone ? r.forward : kernel::emit_cuda(r.program.module),
           kernel::entry_name(r.program.kernel()), "record");
    if (texts != Texts::forward && standalone)
      part(r.backward, r.program.kernel().name + "_backward_kernel", "adjoint");
  }
  return text;
}

}  // namespace

std::string compile_module(const Config& config, std::span<Record> records, Code code, Texts texts) {
  const auto compile = [&](std::span<const Record> part) {
    const std::string text = module_text(config.style, part, texts);
    return code == Code::ptx ? kernel::compile_ptx(text, config.architecture, kernel::CompileEffort::least)
                             : kernel::compile_cubin(text, config.architecture, kernel::CompileEffort::least);
  };
  std::string module;
  try {
    module = compile(records);
  } catch (const kernel::KernelError&) {  // compile each record alone to find out which one fails
    for (Record& r : records) try {
        compile(std::span(&r, 1));
      } catch (const kernel::KernelError& e) {
        r.failure = e.what();
      }
    try {
      module = compile(records);
    } catch (const kernel::KernelError& e) {  // each record compiles alone, but not all together
      for (Record& r : records)
        if (r.failure.empty()) r.failure = e.what();
      return compile(records);  // no record is left: an empty module
    }
  }
  const std::string done =
      fmt::format("NVRTC, {}_{}{}", code == Code::ptx ? "compute" : "sm", config.architecture,
                  config.style == Style::warp ? ", the standalone form" : "");
  for (Record& r : records)
    if (r.failure.empty()) r.checks.compiled = done;
  return module;
}

void compile_records(const Config& config, std::span<Record> records) {
  for_each_module(records, [&](std::span<Record> part) {
    compile_module(config, part, Code::ptx, Texts::both);
    if (!config.ptx) return;
    for (Record& r : part) try {
        if (r.failure.empty()) r.ptx = kernel::compile_ptx(r.forward, config.architecture);
      } catch (const kernel::KernelError& e) {
        r.failure = e.what();
      }
  });
}

}  // namespace ferrite::irsynth
