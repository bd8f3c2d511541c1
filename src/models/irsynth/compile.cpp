// NVRTC: the texts of many records in one module, each in a namespace of its own.
#include <fmt/format.h>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/kernel/emit.hpp"
#include "models/irsynth/compile.hpp"

namespace ferrite::irsynth {

std::string module_text(Style style, std::span<const Record> records) {
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
    part(standalone ? r.forward : kernel::emit_cuda(r.program.module), kernel::entry_name(r.program.kernel()),
         "record");
    if (standalone) part(r.backward, r.program.kernel().name + "_backward_kernel", "adjoint");
  }
  return text;
}

void compile_records(const Config& config, std::span<Record> records) {
  constexpr std::int64_t per_module = 64;
  const std::string done = fmt::format("NVRTC, compute_{}{}", config.architecture,
                                       config.style == Style::warp ? ", the standalone form" : "");
  parallel_ranges(
      static_cast<std::int64_t>(records.size()), per_module, [&](std::int64_t begin, std::int64_t end) {
        const auto part =
            records.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
        bool together = true;
        try {
          kernel::compile_ptx(module_text(config.style, part), config.architecture,
                              kernel::CompileEffort::least);
        } catch (const kernel::KernelError&) {
          together = false;  // which of them it is, each alone will tell
        }
        for (Record& r : part) {
          if (!r.failure.empty()) continue;
          try {
            if (!together)
              kernel::compile_ptx(module_text(config.style, std::span(&r, 1)), config.architecture);
            if (config.ptx) r.ptx = kernel::compile_ptx(r.forward, config.architecture);
            r.checks.compiled = done;
          } catch (const kernel::KernelError& e) {
            r.failure = e.what();
          }
        }
      });
}

}  // namespace ferrite::irsynth
