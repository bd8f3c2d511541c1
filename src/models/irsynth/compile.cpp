// NVRTC: the texts of many records in one module, each in a namespace of its own.
#include <fmt/format.h>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/kernel/emit.hpp"
#include "models/irsynth/compile.hpp"

namespace ferrite::irsynth {

namespace {

std::string module_text(Style style, std::span<const Record> records, Texts texts) {
  std::string text;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto part = [&](const std::string& source, const std::string& name, std::string_view what) {
      if (!source.empty())
        // What a record overloads must not hide what CUDA has.
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

std::vector<std::string> compile_modules(const Config& config, std::span<Record> records, Code code,
                                         Texts texts) {
  constexpr auto size = static_cast<std::int64_t>(records_per_module);
  const auto count = static_cast<std::int64_t>(records.size());
  std::vector<std::string> modules(static_cast<std::size_t>((count + size - 1) / size));
  const std::string done =
      fmt::format("NVRTC, {}_{}{}", code == Code::ptx ? "compute" : "sm", config.architecture,
                  config.style == Style::warp ? ", the standalone form" : "");
  const auto compile = [&](std::span<const Record> part) {
    const std::string text = module_text(config.style, part, texts);
    return code == Code::ptx ? kernel::compile_ptx(text, config.architecture, kernel::CompileEffort::least)
                             : kernel::compile_cubin(text, config.architecture, kernel::CompileEffort::least);
  };
  parallel_ranges(count, size, [&](std::int64_t begin, std::int64_t end) {
    const auto part = records.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    std::string& module = modules[static_cast<std::size_t>(begin / size)];
    try {
      module = compile(part);
    } catch (const kernel::KernelError&) {  // which of them it is, each alone will tell
      for (Record& r : part) try {
          compile(std::span(&r, 1));
        } catch (const kernel::KernelError& e) {
          r.failure = e.what();
        }
      module = compile(part);
    }
    for (Record& r : part)
      if (r.failure.empty()) r.checks.compiled = done;
  });
  return modules;
}

void compile_records(const Config& config, std::span<Record> records) {
  compile_modules(config, records, Code::ptx, Texts::both);
  if (!config.ptx) return;
  parallel_ranges(static_cast<std::int64_t>(records.size()), 4, [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
      if (records[i].failure.empty())
        records[i].ptx = kernel::compile_ptx(records[i].forward, config.architecture);
  });
}

}  // namespace ferrite::irsynth
