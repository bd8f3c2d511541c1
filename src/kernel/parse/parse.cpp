// From text to IR: the parser makes a syntax tree, the checker turns it into IR.
#include "ferrite/kernel/parse.hpp"

#include <algorithm>

#include "kernel/check/checker.hpp"
#include "kernel/parse/parser.hpp"

namespace ferrite::kernel {

Parsed parse_all(std::string_view text, std::string_view file, const Bindings& bindings) {
  const auto source = std::make_shared<const Source>(Source{std::string(file), std::string(text), bindings});
  Parsed parsed;
  syntax::File tree = Parser(*source).file(parsed.errors);
  ModuleChecker checker(std::move(tree), source);
  checker.run(parsed.errors);
  parsed.causes = checker.causes();
  parsed.module = checker.release();
  std::stable_sort(
      parsed.errors.begin(), parsed.errors.end(),
      [](const KernelError& a, const KernelError& b) { return a.place().line < b.place().line; });
  return parsed;
}

Module parse(std::string_view text, std::string_view file, const Bindings& bindings) {
  Parsed parsed = parse_all(text, file, bindings);
  if (!parsed.errors.empty()) throw parsed.errors.front();
  return std::move(parsed.module);
}

Module parse_for(std::string_view kernel, std::string_view text, std::string_view file,
                 const Bindings& bindings) {
  if (kernel.empty()) return parse(text, file, bindings);
  Parsed parsed = parse_all(text, file, bindings);
  std::string name(kernel);
  std::replace(name.begin(), name.end(), '.', '_');
  while (parsed.causes.contains(name)) name = parsed.causes.at(name);
  for (const KernelError& e : parsed.errors)
    if (e.definition() == name || e.definition() == kernel) throw e;
  (void)parsed.module.kernel(kernel);
  return std::move(parsed.module);
}

}  // namespace ferrite::kernel
