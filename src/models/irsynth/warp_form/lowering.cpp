// Variables and lines: what every step of the walk writes.
#include "models/irsynth/warp_form/lowering.hpp"

#include <fmt/format.h>

namespace ferrite::irsynth::warp {

namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\f");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\f") - first + 1);
}

/// Python counts characters, not bytes.
std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

}  // namespace

Place start_of(const syntax::Expr& e) {
  using Kind = syntax::ExprKind;
  const syntax::Expr* first = nullptr;
  switch (e.kind) {
    case Kind::attribute:
    case Kind::call:
    case Kind::subscript:
    case Kind::binary:
    case Kind::compare:
    case Kind::logical_and:
    case Kind::logical_or:
      first = &e.args[0];
      break;
    case Kind::tuple:
      if (e.parenthesis.line != 0) return e.parenthesis;
      first = &e.args[0];
      break;
    case Kind::conditional:
      first = &e.args[1];
      break;
    default:
      return e.place;
  }
  return first->parenthesis.line != 0 ? first->parenthesis : start_of(*first);
}

Place start_of(const syntax::Stmt& s) {
  const std::vector<syntax::Expr>& list = s.targets.empty() ? s.values : s.targets;
  const bool keyword = s.kind != syntax::StmtKind::assign && s.kind != syntax::StmtKind::update &&
                       s.kind != syntax::StmtKind::expression;
  return keyword ? s.place : start_of(list[0]);
}

Lowering::Lowering(ModuleChecker& names, const Source& source, const syntax::Definition& definition,
                   const Function& function)
    : names_(names), source_(source), module_(names.module()), lines_(lines_of(source.text)) {
  out_.definition = &definition;
  out_.function = &function;
}

Lowered Lowering::run() {
  const Function& f = *out_.function;
  for (std::size_t i = 0; i < static_cast<std::size_t>(f.parameters); ++i) {
    out_.storage.push_back({f.variables[i].name, value_of(f.variables[i].type)});
    out_.parameters.push_back(&out_.storage.back());
    symbols_.set(f.variables[i].name, out_.parameters.back());
  }
  blocks_.emplace_back();
  at(out_.definition->head);
  const std::vector<syntax::Stmt>& body = out_.definition->body;
  for (const syntax::Stmt& s : body) {
    const bool constant =
        s.kind == syntax::StmtKind::expression && s.values[0].kind == syntax::ExprKind::string;
    if (!constant) statement(s);
  }
  if (out_.results.size() == 1 && (body.empty() || body.back().kind != syntax::StmtKind::return_))
    forward_only("return {};");
  out_.body = std::move(blocks_.back());
  return std::move(out_);
}

Variable* Lowering::unnumbered(ValueType type, std::optional<Constant> constant) {
  out_.storage.push_back({"", type, std::move(constant)});
  return &out_.storage.back();
}

void Lowering::number(Variable* v) {
  if (!v->label.empty()) return;
  if (out_.variables.size() == most_variables)
    fail({line_, 1}, "Warp's form has too many variables: loops over constants are unrolled");
  v->label = fmt::format("{}", out_.variables.size());
  out_.variables.push_back(v);
  blocks_.back().variables.push_back(v);
}

Variable* Lowering::add(ValueType type, std::optional<Constant> constant) {
  Variable* v = unnumbered(type, std::move(constant));
  number(v);
  return v;
}

Variable* Lowering::add(const Constant& constant) {
  const ScalarType scalar = constant.kind == Constant::Kind::boolean   ? ScalarType::bool_
                            : constant.kind == Constant::Kind::integer ? ScalarType::i32
                                                                       : ScalarType::f32;
  return add(value_of(Type::of(scalar)), constant);
}

void Lowering::forward(const std::string& line, const std::string& replay) {
  blocks_.back().forward.push_back(indent_ + line);
  blocks_.back().replay.push_back(indent_ + (replay.empty() ? line : replay));
}
void Lowering::forward_only(const std::string& line) { blocks_.back().forward.push_back(indent_ + line); }
void Lowering::reverse(const std::string& line) { blocks_.back().reverse.push_back(indent_ + line); }

/// The source line over the first code that comes from it.
void Lowering::at(Place place) {
  if (place.line == line_ || place.line == 0) return;
  line_ = place.line;
  const std::string_view text = trimmed(lines_.at(static_cast<std::size_t>(line_) - 1));
  const std::size_t width = 80 - indent_.size(), length = characters(text);
  const std::string padding(length < width ? width - length : 0, ' ');
  forward(fmt::format("// {}{}       <L {}>", text, padding, line_));
  reverse(fmt::format("// adj: {}{}  <L {}>", text, padding, line_));
}

Block& Lowering::begin_block(const std::string& name) {
  blocks_.emplace_back();
  blocks_.back().label = fmt::format("{}_{}", name, labels_++);
  return blocks_.back();
}

Block Lowering::end_block() {
  Block block = std::move(blocks_.back());
  blocks_.pop_back();
  return block;
}

Variable* Lowering::load(Variable* v) {
  if (!v->type.reference) return v;
  Variable* loaded = add(stripped(v->type));
  forward(fmt::format("{} = wp::load({});", loaded->name(), v->name()));
  return loaded;
}

Variable* Lowering::copy(Variable* v) { return call(library("copy"), {v}, stripped(v->type)); }

Variable* Lowering::call(const Callee& callee, const std::vector<Variable*>& arguments, ValueType result) {
  return call(callee, arguments, std::vector<ValueType>{result})[0];
}

std::vector<Variable*> Lowering::call(const Callee& callee, const std::vector<Variable*>& arguments,
                                      const std::vector<ValueType>& results) {
  std::vector<Variable*> made, loaded;
  for (const ValueType& type : results) made.push_back(add(type));
  for (Variable* a : arguments) number(a);
  for (Variable* a : arguments) loaded.push_back(load(a));
  std::vector<std::string> given, outputs;
  for (const Variable* v : loaded) given.push_back(v->name());
  for (const Variable* v : made) outputs.push_back(v->name());
  std::string line;
  if (made.size() == 1) {
    line = fmt::format("{} = {}({});", outputs[0], callee.forward, fmt::join(given, ", "));
  } else {
    std::vector<std::string> all = given;
    all.insert(all.end(), outputs.begin(), outputs.end());
    line = fmt::format("{}({});", callee.forward, fmt::join(all, ", "));
  }
  forward(line, callee.replayed ? line : "// " + line);
  if (!callee.differentiable || arguments.empty()) return made;
  std::vector<std::string> all = given;
  if (callee.needs_output || made.size() > 1) all.insert(all.end(), outputs.begin(), outputs.end());
  for (const Variable* v : arguments) all.push_back(v->adjoint());
  for (const Variable* v : made) all.push_back(v->adjoint());
  reverse(fmt::format("{}({});", callee.reverse, fmt::join(all, ", ")));
  return made;
}

std::optional<Origin> Lowering::origin_of(const Variable* v) const {
  if (v->type.reference || (v->type.is_array() && v->origin)) return v->origin;
  if (symbols_.holds(v)) return Origin{v->name(), "&(" + v->name() + ")"};
  return v->origin;
}

}  // namespace ferrite::irsynth::warp
