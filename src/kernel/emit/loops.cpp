// Loops. A range is evaluated once; changes to the loop variable in the body do not affect it.
#include <fmt/format.h>

#include "kernel/emit/emitter.hpp"

namespace ferrite::kernel {

/// Integers of 8 and 16 bits count in int, where the last step cannot pass the end of the type.
std::string Emitter::counter_type(Type type) {
  return type_name(bits_of(type.scalar) < 32 ? int_type : type);
}

std::string Emitter::range_head(const Stmt& s, const std::string& type, const std::string& counter) {
  const Expr& step = s.values[2];
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < 3; ++i) {
    const Expr& e = s.values[i];
    // The first is used once; the others stay as they are where the body cannot change them.
    const bool shape =
        e.kind == ExprKind::apply && (e.builtin == Builtin::shape || e.builtin == Builtin::len) &&
        e.args[0].kind == ExprKind::variable && (e.args.size() == 1 || e.args[1].kind == ExprKind::literal);
    const bool fixed = e.kind == ExprKind::literal || shape ||
                       (e.kind == ExprKind::variable && !changes(s.body, e.index, e.index + 1) &&
                        e.index != s.targets[0].index);
    const bool later_effects = i == 0 && (!is_pure(module_, s.values[1]) || !is_pure(module_, step));
    const std::string text = value(e, sum);
    texts.push_back(fixed || (i == 0 && !later_effects) ? text : temporary(e.type, text));
  }
  const std::string start = type.empty() ? counter : type + " " + counter;
  std::string condition = fmt::format("{} < {}", counter, texts[1]),
              next = fmt::format("{} += {}", counter, texts[2]);
  if (step.kind == ExprKind::literal) {
    const bool down = !is_unsigned(step.type.scalar) && step.number.integer < 0;
    if (down) condition = fmt::format("{} > {}", counter, texts[1]);
    if (step.number.integer == 1) next = "++" + counter;
    if (down && step.number.integer == -1)
      next = "--" + counter;
    else if (down && texts[2].starts_with('-') && texts[2].find(' ') == std::string::npos)  // no cast, no sum
      next = fmt::format("{} -= {}", counter, texts[2].substr(1));
  } else if (!is_unsigned(step.type.scalar)) {
    condition = fmt::format("{2} > 0 ? {0} < {1} : {0} > {1}", counter, texts[1], texts[2]);
  }
  return fmt::format("for ({} = {}; {}; {}) {{", start, texts[0], condition, next);
}

void Emitter::for_loop(const Stmt& s) {
  const auto variable = static_cast<std::size_t>(s.targets[0].index);
  const std::string type = type_name(s.targets[0].type), name = scope_.names[variable];
  const std::string counts_in = counter_type(s.targets[0].type);
  if (counts_in == type && scope_.declared_by[variable] == &s &&
      !changes(s.body, s.targets[0].index, s.targets[0].index + 1)) {
    line(range_head(s, type, name));
    block(s.body);
    line("}");
    return;
  }
  std::string counter;
  do counter = fmt::format("t{}", scope_.temporaries++);
  while (scope_.taken.contains(counter));
  line(range_head(s, counts_in, counter));
  ++indent_;
  line(fmt::format("{}{} = {};", scope_.declared_by[variable] == &s ? type + " " : "", name, counter));
  --indent_;
  block(s.body);
  line("}");
}

void Emitter::while_loop(const Stmt& s) {
  const Expr& condition = s.values[0];
  if (is_pure(module_, condition)) {
    line(fmt::format("while ({}) {{", value(condition)));
  } else {  // what the condition computes belongs into the loop
    line("for (;;) {");
    ++indent_;
    const std::string text = value(condition, primary);
    line(fmt::format("if (!{}) break;", text));
    --indent_;
  }
  block(s.body);
  line("}");
}

}  // namespace ferrite::kernel
