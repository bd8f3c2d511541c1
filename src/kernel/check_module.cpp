// The order of checking: structs, then functions as they are called, then kernels.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/checker.hpp"
#include "kernel/library.hpp"
#include "kernel/parser.hpp"

namespace ferrite::kernel {

using syntax::Definition;

ModuleChecker::ModuleChecker(syntax::File file, std::shared_ptr<const Source> source)
    : file_(std::move(file)), source_(std::move(source)) {
  add_library(file_, source_->text);
}

void ModuleChecker::fail(Place place, std::string_view problem) const {
  throw KernelError(source_.get(), place, problem);
}

void ModuleChecker::check_name(std::string_view name, Place place) const {
  for (const std::string_view reserved : {"wp", "float", "int", "bool", "len", "range", "tuple"})
    if (name == reserved) fail(place, fmt::format("'{}' has a meaning of its own: use another name", name));
}

void ModuleChecker::run(std::vector<KernelError>& errors) {
  errors_ = &errors;
  module_.source = source_;
  const std::size_t n = file_.definitions.size();
  states_.assign(n, State::open);
  indices_.assign(n, -1);
  // A later definition of the same name replaces the earlier one in Python; here it is a mistake.
  std::map<std::string_view, const Definition*> seen;
  for (std::size_t i = 0; i < n; ++i) {
    const Definition& d = file_.definitions[i];
    const auto [found, is_new] = seen.emplace(d.name, &d);
    if (is_new) continue;
    states_[i] = State::failed;
    errors.emplace_back(
        source_.get(), d.place,
        fmt::format("'{}' is defined twice, first in line {}", d.name, found->second->place.line));
  }
  for (const auto kind : {Definition::Kind::structure, Definition::Kind::function, Definition::Kind::kernel})
    for (std::size_t i = 0; i < n; ++i)
      if (file_.definitions[i].kind == kind && !file_.definitions[i].is_library) check(i, errors);

  // Functions were added in the order of calls: bring them into the order of the text.
  std::vector<int> order(module_.functions.size());
  std::vector<Function> sorted;
  for (std::size_t i = 0; i < n; ++i) {
    if (file_.definitions[i].kind != Definition::Kind::function || states_[i] != State::done) continue;
    int& index = indices_[i];
    order[static_cast<std::size_t>(index)] = static_cast<int>(sorted.size());
    sorted.push_back(std::move(module_.functions[static_cast<std::size_t>(index)]));
    index = order[static_cast<std::size_t>(index)];
  }
  module_.functions = std::move(sorted);
  const auto renumber = [&](Expr& e) {
    if (e.kind == ExprKind::call) e.index = order[static_cast<std::size_t>(e.index)];
  };
  for (Function& f : module_.functions) for_each_expr(f.body, renumber);
  for (Function& k : module_.kernels) for_each_expr(k.body, renumber);
}

bool ModuleChecker::check(std::size_t i, std::vector<KernelError>& errors) {
  if (states_[i] != State::open) return states_[i] == State::done;
  const Definition& d = file_.definitions[i];
  const InScope scope(*this, d.captured.get());
  states_[i] = State::checking;
  try {
    if (d.kind == Definition::Kind::structure) {
      check_struct(d);
      indices_[i] = static_cast<int>(module_.structs.size()) - 1;
    } else {
      Function f = FunctionChecker(*this, d).run();
      auto& list = d.kind == Definition::Kind::kernel ? module_.kernels : module_.functions;
      indices_[i] = static_cast<int>(list.size());
      list.push_back(std::move(f));
    }
    states_[i] = State::done;
  } catch (const KernelError& e) {
    errors.push_back(e);
    states_[i] = State::failed;
  } catch (const Dependent&) {
    states_[i] = State::failed;
  }
  return states_[i] == State::done;
}

void ModuleChecker::check_struct(const Definition& d) {
  Struct s{d.name, {}};
  check_name(d.name, d.place);
  if (module_.structs.size() == 65535) fail(d.place, "too many structs");
  for (const syntax::Parameter& p : d.parameters) {
    for (const Variable& other : s.fields)
      if (other.name == p.name) fail(p.place, fmt::format("struct '{}' has two fields '{}'", d.name, p.name));
    s.fields.push_back({p.name, annotation(p.annotation)});
  }
  module_.structs.push_back(std::move(s));
  struct_names_.push_back(d.name);
}

std::optional<int> ModuleChecker::find_struct(std::string_view name) const {
  for (std::size_t i = 0; i < file_.definitions.size(); ++i) {
    const Definition& d = file_.definitions[i];
    if (d.kind != Definition::Kind::structure || d.name != name) continue;
    if (states_[i] == State::failed) throw Dependent{};
    if (states_[i] == State::done) return indices_[i];
  }
  return std::nullopt;
}

std::optional<int> ModuleChecker::find_function(std::string_view name, Place place) {
  for (std::size_t i = 0; i < file_.definitions.size(); ++i) {
    const Definition& d = file_.definitions[i];
    if (d.name != name) continue;
    if (d.kind == Definition::Kind::kernel)
      fail(place, fmt::format("'{}' is a kernel; only functions can be called", name));
    if (d.kind != Definition::Kind::function) continue;
    if (states_[i] == State::checking)
      fail(place, fmt::format("'{}' calls itself: kernels have no recursion", name));
    if (!check(i, *errors_)) throw Dependent{};
    return indices_[i];
  }
  return std::nullopt;
}

Parsed parse_all(std::string_view text, std::string_view file, const Bindings& bindings) {
  const auto source = std::make_shared<const Source>(Source{std::string(file), std::string(text), bindings});
  Parsed parsed;
  syntax::File tree = Parser(*source).file(parsed.errors);
  ModuleChecker checker(std::move(tree), source);
  checker.run(parsed.errors);
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

}  // namespace ferrite::kernel
