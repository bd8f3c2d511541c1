// The file around the kernels: imports, constants and definitions count, all other Python is skipped.
#include <fmt/format.h>

#include "kernel/parse/parser.hpp"

namespace ferrite::kernel {

using syntax::Definition;
using syntax::Expr;
using syntax::File;
using syntax::Parameter;

File Parser::file(std::vector<KernelError>& errors) {
  File file;
  file.modules = {{"wp", "warp"}, {"warp", "warp"}};
  while (!at(TokenKind::end)) {
    if (at(TokenKind::indent) || at(TokenKind::dedent)) {
      host_block();
      continue;
    }
    entered_ = nullptr;  // a function without a block
    entered_name_.clear();
    Definition found;
    const std::size_t begin = at_;
    try {
      if (at("@") && decorators(file, found)) {
        definition(found);
        if (!hosts_.empty()) found.captured = hosts_.back().names;
        if (!hosts_.empty()) found.scope = hosts_.back().path;
        file.definitions.push_back(std::move(found));
      } else if (at("import")) {
        import_line(file);
      } else if (at("def")) {
        host_function();
      } else {
        host_line(file);
      }
    } catch (const KernelError& error) {
      errors.push_back(error);
      errors.back().set_definition(found.name);
      depth_ = blocks_ = loops_ = 0;
      // Continue after the definition: at the first line after its head that is not indented further.
      at_ = begin;
      while (!at(TokenKind::end) && !at("def") && !at("class")) skip_line();
      skip_line();
      if (at(TokenKind::indent)) {
        int inside = 0;
        do {
          inside += at(TokenKind::indent) ? 1 : at(TokenKind::dedent) ? -1 : 0;
          take();
        } while (inside > 0 && !at(TokenKind::end));
      }
    }
  }
  check_bindings();
  return file;
}

void Parser::skip_line() {
  while (!at(TokenKind::newline) && !at(TokenKind::end)) take();
  take();
}

void Parser::import_line(File& file) {
  take();
  std::string name;
  if (at(TokenKind::name)) name = take().text;
  const bool known = name == "warp" || name == "math" || name == "numpy";
  if (known && at("as") && peek(1).kind == TokenKind::name)
    file.modules[std::string(peek(1).text)] = name;
  else if (known && !at("."))
    file.modules[name] = name;
  skip_line();
}

/// Reads the lines of decorators; true, with the kind set, if a definition of the kernel language follows.
bool Parser::decorators(const File& file, Definition& definition) {
  bool found = false;
  while (accept("@")) {
    const Token module = peek();
    const auto alias = file.modules.find(module.text);
    const bool warp =
        module.kind == TokenKind::name && alias != file.modules.end() && alias->second == "warp";
    if (warp && at(".", 1)) {
      const std::string_view name = peek(2).text;
      using Kind = Definition::Kind;
      const bool gradient = name == "func_grad", replay = name == "func_replay";
      const bool known = name == "kernel" || name == "func" || name == "struct" || gradient || replay;
      if (known)
        definition.kind = name == "kernel"   ? Kind::kernel
                          : name == "func"   ? Kind::function
                          : name == "struct" ? Kind::structure
                          : gradient         ? Kind::gradient
                                             : Kind::replay;
      if (gradient || replay) {
        definition.of_place = peek(4).place;
        if (!at("(", 3) || peek(4).kind != TokenKind::name || !at(")", 5))
          fail(peek(2).place, fmt::format("@wp.{} names its function: @wp.{}(f)", name, name));
        definition.of = peek(4).text;
      }
      found |= known;
      for (std::size_t i = 3; known && peek(i).kind != TokenKind::newline && peek(i).kind != TokenKind::end;
           ++i)
        if (at("enable_backward", i) && at("=", i + 1) && at("False", i + 2))
          definition.enable_backward = false;
    }
    skip_line();
  }
  return found;
}

void Parser::definition(Definition& definition) {
  const bool structure = definition.kind == Definition::Kind::structure;
  definition.head =
      expect(structure ? "class" : "def", structure ? "after @wp.struct" : "after the decorator").place;
  definition.place = peek().place;
  definition.name = expect_name("a name");
  if (structure) {
    if (accept("(")) expect(")", "because structs have no bases");
    definition.parameters = fields();
    return;
  }
  definition.parameters = parameters();
  for (Parameter& p : definition.parameters)
    if (definition.kind == Definition::Kind::kernel) p.any = binding(definition.name + "." + p.name, p.place);
  if (accept("->")) definition.result.push_back(expression());
  definition.body = block();
}

std::vector<Parameter> Parser::parameters() {
  std::vector<Parameter> list;
  expect("(", "before the parameters");
  while (!at(")")) {
    const Place place = peek().place;
    if (at("*") || at("**")) fail(place, "'*' parameters are not supported");
    std::string name = expect_name("a parameter");
    if (!at(":")) fail(place, fmt::format("parameter '{0}' has no type: write `{0}: float`", name));
    take();
    list.push_back({std::move(name), place, expression(), {}});
    if (at("=")) fail(peek().place, "parameters have no default values");
    if (!accept(",")) break;
  }
  expect(")", "after the parameters");
  return list;
}

std::vector<Parameter> Parser::fields() {
  std::vector<Parameter> list;
  expect(":", "after the name of the struct");
  if (!at(TokenKind::newline)) fail_expected("a new line");
  take();
  if (!at(TokenKind::indent)) fail_expected("the fields, indented");
  take();
  while (!at(TokenKind::dedent) && !at(TokenKind::end)) {
    const Place place = peek().place;
    if (at(TokenKind::string) || at("pass")) {
      skip_line();
      continue;
    }
    std::string name = expect_name("a field");
    expect(":", "and a type after the name of the field");
    list.push_back({std::move(name), place, expression(), {}});
    end_of_line();
  }
  take();
  return list;
}

}  // namespace ferrite::kernel
