// The order of checking: structs, then functions as they are called, then kernels.
#include <fmt/format.h>

#include <algorithm>

#include "kernel/builtins/library.hpp"
#include "kernel/check/checker.hpp"

namespace ferrite::kernel {

using syntax::Definition;

namespace {

/// Nobody calls it by name.
bool belongs_to_function(const Definition& d) {
  return d.kind == Definition::Kind::gradient || d.kind == Definition::Kind::replay;
}

}  // namespace

ModuleChecker::ModuleChecker(syntax::File file, std::shared_ptr<const Source> source)
    : file_(std::move(file)), source_(std::move(source)) {
  add_library(file_, source_->text);
  name_apart();
}

/// Definitions inside Python functions that share a name are called by their function too: test_a_kernel.
void ModuleChecker::name_apart() {
  std::map<std::string, int> count;
  for (const Definition& d : file_.definitions)
    if (!belongs_to_function(d)) ++count[d.name];
  for (Definition& d : file_.definitions) {
    if (count[d.name] <= 1 || d.scope.empty() || belongs_to_function(d)) continue;
    std::string apart = d.scope + "." + d.name;
    std::replace(apart.begin(), apart.end(), '.', '_');
    std::string unique = apart;
    const bool again =
        std::any_of(file_.definitions.begin(), file_.definitions.end(), [&](const Definition& o) {
          return &o != &d && o.captured == d.captured && o.python_name() == d.name;
        });  // defined twice, which run() reports
    for (int k = 2; !again && count[unique] > 0; ++k) unique = fmt::format("{}_{}", apart, k);
    ++count[unique];
    d.called = std::exchange(d.name, unique);
  }
}

std::optional<std::size_t> ModuleChecker::find_definition(std::string_view name,
                                                          std::optional<Definition::Kind> kind) const {
  std::optional<std::size_t> visible, hidden;
  int others = 0;
  const auto sees = [&](const std::string& scope) {
    return scope.empty() || scope_ == scope || scope_.starts_with(scope + ".");
  };
  for (std::size_t i = 0; i < file_.definitions.size(); ++i) {
    const Definition& d = file_.definitions[i];
    if (d.python_name() != name || (kind ? d.kind != *kind : belongs_to_function(d))) continue;
    if (!sees(d.scope)) {
      if (others++ == 0) hidden = i;
    } else if (!visible || d.scope.size() > file_.definitions[*visible].scope.size()) {
      visible = i;
    }
  }
  return visible || others != 1 ? visible : hidden;
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
  std::map<std::pair<const syntax::Constants*, std::string>, const Definition*> seen;
  for (std::size_t i = 0; i < n; ++i) {
    const Definition& d = file_.definitions[i];
    if (belongs_to_function(d)) continue;
    const auto [found, is_new] = seen.emplace(std::pair(d.captured.get(), d.python_name()), &d);
    if (is_new) continue;
    states_[i] = State::failed;
    errors.emplace_back(
        source_.get(), d.place,
        fmt::format("'{}' is defined twice, first in line {}", d.python_name(), found->second->place.line));
    errors.back().set_definition(d.name);
  }
  using Kind = Definition::Kind;
  for (const auto kind : {Kind::structure, Kind::function, Kind::gradient, Kind::replay, Kind::kernel})
    for (std::size_t i = 0; i < n; ++i)
      if (file_.definitions[i].kind == kind && !file_.definitions[i].is_library) check(i, errors);

  // Functions were added in the order of calls; restore the order of the text.
  std::vector<int> order(module_.functions.size());
  std::vector<Function> sorted;
  for (std::size_t i = 0; i < n; ++i) {
    const Definition& d = file_.definitions[i];
    if ((d.kind != Kind::function && !belongs_to_function(d)) || states_[i] != State::done) continue;
    int& index = indices_[i];
    order[static_cast<std::size_t>(index)] = static_cast<int>(sorted.size());
    sorted.push_back(std::move(module_.functions[static_cast<std::size_t>(index)]));
    index = order[static_cast<std::size_t>(index)];
  }
  module_.functions = std::move(sorted);
  const auto renumber = [&](Expr& e) {
    if (e.kind == ExprKind::call) e.index = order[static_cast<std::size_t>(e.index)];
  };
  for (Function& f : module_.functions) {
    for_each_expr(f.body, renumber);
    for (int* other : {&f.gradient, &f.replay})
      if (*other >= 0) *other = order[static_cast<std::size_t>(*other)];
  }
  for (Function& k : module_.kernels) for_each_expr(k.body, renumber);
}

bool ModuleChecker::check(std::size_t i, std::vector<KernelError>& errors) {
  if (states_[i] != State::open) return states_[i] == State::done;
  const Definition& d = file_.definitions[i];
  const InScope scope(*this, d);
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
    if (d.kind == Definition::Kind::function && !check_gradients(i, errors)) states_[i] = State::failed;
  } catch (const KernelError& e) {
    errors.push_back(e);
    errors.back().set_definition(d.name);
    states_[i] = State::failed;
  } catch (const Dependent& needs) {
    causes_[d.name] = needs.cause;
    states_[i] = State::failed;
  }
  return states_[i] == State::done;
}

/// The gradient and the replay of a function; without them it would be wrong.
bool ModuleChecker::check_gradients(std::size_t function, std::vector<KernelError>& errors) {
  bool right = true;
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < file_.definitions.size(); ++i) {
    const Definition& d = file_.definitions[i];
    if (!belongs_to_function(d)) continue;
    const InScope scope(*this, d);
    if (find_definition(d.of, Definition::Kind::function) != function) continue;
    all.push_back(i);
    if (!check(i, errors)) {
      causes_[file_.definitions[function].name] = d.name;
      right = false;
      continue;
    }
    Function& f = module_.functions[static_cast<std::size_t>(indices_[function])];
    (d.kind == Definition::Kind::gradient ? f.gradient : f.replay) = indices_[i];
  }
  for (const std::size_t i : all)
    if (!right) states_[i] = State::failed;  // each is useless without the other
  return right;
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
  const auto found = find_definition(name, Definition::Kind::structure);
  if (!found) return std::nullopt;
  if (states_[*found] == State::failed) throw Dependent{file_.definitions[*found].name};
  return states_[*found] == State::done ? std::optional(indices_[*found]) : std::nullopt;
}

std::optional<int> ModuleChecker::find_function(std::string_view name, Place place) {
  const auto found = find_definition(name);
  if (!found) return std::nullopt;
  const Definition& d = file_.definitions[*found];
  if (d.kind == Definition::Kind::kernel)
    fail(place, fmt::format("'{}' is a kernel; only functions can be called", name));
  if (d.kind != Definition::Kind::function) return std::nullopt;
  if (states_[*found] == State::checking)
    fail(place, fmt::format("'{}' calls itself: kernels have no recursion", name));
  if (!check(*found, *errors_)) throw Dependent{d.name};
  return indices_[*found];
}

std::optional<int> ModuleChecker::find_operator(Builtin builtin, Type left, Type right, Place place) {
  const BuiltinInfo& row = info(builtin);
  const auto found = find_definition(row.name, Definition::Kind::function);
  if (!found) return std::nullopt;
  const Definition& d = file_.definitions[*found];
  if (d.parameters.size() != 2) return std::nullopt;
  try {
    const InScope scope(*this, d);
    if (annotation(d.parameters[0].annotation) != left || annotation(d.parameters[1].annotation) != right)
      return std::nullopt;
  } catch (const KernelError&) {  // an error of the function, which is reported there
    return std::nullopt;
  } catch (const Dependent&) {
    return std::nullopt;
  }
  if (states_[*found] == State::checking)
    fail(place, fmt::format("'{}' of {} and {} is the function '{}' here, which would call itself: write "
                            "wp.{}(...)",
                            row.symbol, show(left), show(right), d.python_name(), row.name));
  return find_function(row.name, place);
}

}  // namespace ferrite::kernel
