// Statements.
#include <fmt/format.h>

#include "kernel/emit/emitter.hpp"

namespace ferrite::kernel {

namespace {

Builtin atomic_of(Builtin id) {
  switch (id) {
    case Builtin::add:
      return Builtin::atomic_add;
    case Builtin::sub:
      return Builtin::atomic_sub;
    case Builtin::bit_and:
      return Builtin::atomic_and;
    case Builtin::bit_or:
      return Builtin::atomic_or;
    case Builtin::bit_xor:
      return Builtin::atomic_xor;
    default:
      return id;
  }
}

/// Line `number` of a text, without surrounding space.
std::string source_line(const std::string& text, int number) {
  std::size_t at = 0;
  for (int i = 1; i < number && at < text.size(); ++i)
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  std::string found = text.substr(at, text.find('\n', at) - at);
  found.erase(0, std::min(found.find_first_not_of(" \t"), found.size()));
  while (!found.empty() && (found.back() == '\\' || found.back() == ' ' || found.back() == '\r'))
    found.pop_back();
  return found;
}

}  // namespace

void Emitter::line(const std::string& text) {
  *out_ += std::string(static_cast<std::size_t>(2 * indent_), ' ') + text + "\n";
}

void Emitter::block(const std::vector<Stmt>& body) {
  ++indent_;
  for (const Stmt& s : body) statement(s);
  --indent_;
}

void Emitter::statement(const Stmt& s) {
  if (options_.source_lines && module_.source && s.place.line > 0 && s.place.line != scope_.last_line) {
    scope_.last_line = s.place.line;
    line("// " + source_line(module_.source->text, s.place.line));
  }
  declare_before(s);
  switch (s.kind) {
    case StmtKind::assign:
      return assign(s);
    case StmtKind::update:
      return update(s);
    case StmtKind::evaluate: {
      const std::string text = value(s.values[0]);
      return line(text + ";");
    }
    case StmtKind::declare_array:
      return declare_array(s);
    case StmtKind::if_:
      return if_else(s);
    case StmtKind::for_:
      return for_loop(s);
    case StmtKind::while_:
      return while_loop(s);
    case StmtKind::break_:
      return line("break;");
    case StmtKind::continue_:
      return line("continue;");
    case StmtKind::return_:
      return return_values(s);
    case StmtKind::assert_: {
      support("expect");
      const std::string holds = value(s.values[0]);
      return line(fmt::format(
          "expect({}, {});", holds,
          assertion(s.place, s.text.empty() ? "assertion failed" : "assertion failed: " + s.text)));
    }
  }
}

/// Into a place, which the statement may declare.
void Emitter::store(const Expr& target, const std::string& text, const Stmt& s) {
  const bool declares =
      target.kind == ExprKind::variable && scope_.declared_by[static_cast<std::size_t>(target.index)] == &s;
  const std::string place = value(target);
  line(fmt::format("{}{} = {};", declares ? type_name(target.type) + " " : "", place, text));
}

void Emitter::assign(const Stmt& s) {
  const Expr& first = s.values[0];
  if (first.type.is(Type::Kind::tuple)) {
    if (first.kind == ExprKind::apply) return thread_indices(s);
    const std::string call = value(first);
    const std::string results = fmt::format("{}_results", function_name(first.index));
    const std::string name = new_name();
    line(fmt::format("const {} {} = {};", results, name, call));
    for (std::size_t i = 0; i < s.targets.size(); ++i)
      store(s.targets[i], fmt::format("{}.value{}", name, i), s);
    return;
  }
  std::vector<std::string> texts;
  for (const Expr& v : s.values) {
    const std::string text = value(v);
    texts.push_back(s.values.size() == 1 && is_pure(module_, s.targets[0]) ? text : temporary(v.type, text));
  }
  for (std::size_t i = 0; i < s.targets.size(); ++i) store(s.targets[i], texts[i], s);
}

/// i, j = wp.tid(): the last index is the fastest. A kernel of blocks may run on a grid with more axes;
/// otherwise those are 1.
void Emitter::thread_indices(const Stmt& s) {
  const std::string launch = target_ == Target::cuda ? "launch.shape" : "launch->shape";
  const std::string thread = target_ == Target::cuda ? "int(thread)" : "thread";
  const std::size_t axes = has_barrier(scope_.function->body) ? 4 : s.targets.size();
  for (std::size_t axis = 0; axis < s.targets.size(); ++axis) {
    std::string text = thread, later;
    for (std::size_t k = axis + 1; k < axes; ++k)
      later += fmt::format("{}{}[{}]", later.empty() ? "" : " * ", launch, k);
    if (!later.empty()) text += axes - axis > 2 ? fmt::format(" / ({})", later) : " / " + later;
    if (axis > 0) text += fmt::format(" % {}[{}]", launch, axis);
    store(s.targets[axis], text, s);
  }
}

void Emitter::update(const Stmt& s) {
  const Expr& target = s.targets[0];
  const Type type = target.type;
  bool in_array = false;
  for_each_expr(target, [&](const Expr& e) { in_array |= e.kind == ExprKind::element; });
  if (target.kind != ExprKind::variable && !(is_pure(module_, target) && is_pure(module_, s.values[0]))) {
    // The indices come first, then the value.
    Stmt apart = s;
    const std::string place = new_name();
    line(fmt::format("{}& {} = {};", type_name(type), place, value(target)));
    const std::string by = temporary(s.values[0].type, value(s.values[0]));
    const bool shared = in_array && !is_own_array(target);
    apart.targets[0] = named(place, type);
    apart.values[0] = named(by, s.values[0].type);
    return update(apart, shared);
  }
  update(s, in_array && !is_own_array(target));
}

/// `shared`: other threads may change the target at the same time.
void Emitter::update(const Stmt& s, bool shared) {
  const Expr& target = s.targets[0];
  const Type type = target.type;
  const Builtin together = atomic_of(s.builtin);
  if (target_ == Target::cuda && shared && together != s.builtin) {
    const std::vector<Type> types = {type.array(1), type};
    const std::string_view text = atomic_text(together, types, s.place);
    const std::string by = value(s.values[0], text.find("-$1") == std::string_view::npos ? lowest : primary);
    const std::string place = value(target);
    return line(expand(text, types, type, {place, by}) + ";");
  }
  const std::vector<Type> types = {type, s.values[0].type};
  const std::string_view text = find_rule(s.builtin, types, target_)->in(target_);
  const bool plain =
      type.is_scalar() && text.starts_with("$0 ") && !(is_float(type.scalar) && bits_of(type.scalar) == 16);
  if (plain) {
    const std::string by = value(s.values[0]);
    const std::string place = value(target);
    return line(fmt::format("{} {}= {};", place, text.substr(3, text.rfind(' ') - 3), by));
  }
  Expr combined;
  combined.kind = ExprKind::apply;
  combined.builtin = s.builtin;
  combined.type = type;
  combined.place = s.place;
  combined.args = {target, s.values[0]};
  const std::string done = value(combined);
  store(target, done, s);
}

void Emitter::if_else(const Stmt& s) {
  const std::string condition = value(s.values[0]);
  line(fmt::format("if ({}) {{", condition));
  block(s.body);
  const Stmt* otherwise = &s;
  // elif, as long as its condition needs nothing computed before it
  while (otherwise->orelse.size() == 1 && otherwise->orelse[0].kind == StmtKind::if_ &&
         is_pure(module_, otherwise->orelse[0].values[0])) {
    otherwise = &otherwise->orelse[0];
    line(fmt::format("}} else if ({}) {{", value(otherwise->values[0])));
    block(otherwise->body);
  }
  if (!otherwise->orelse.empty()) {
    line("} else {");
    block(otherwise->orelse);
  }
  line("}");
}

void Emitter::return_values(const Stmt& s) {
  if (s.values.empty()) return line(scope_.on_return);
  std::vector<std::string> texts;
  for (const Expr& v : s.values) {
    const std::string text = value(v);
    texts.push_back(s.values.size() > 1 && !is_pure(module_, v) ? temporary(v.type, text) : text);
  }
  line(s.values.size() == 1 ? fmt::format("return {};", texts[0])
                            : fmt::format("return {{{}}};", fmt::join(texts, ", ")));
}

}  // namespace ferrite::kernel
