// Support code of emitted kernels: the functions of rules, random numbers, 16-bit floats on the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "kernel/emit/emitter.hpp"

namespace ferrite::kernel {

namespace {

/// The parameter names of a builtin, from its signature; names of types are shortened.
std::vector<std::string> parameter_names(const BuiltinInfo& row) {
  std::vector<std::string> names;
  std::string_view rest = row.signature.substr(row.signature.find('(') + 1);
  rest = rest.substr(0, rest.rfind(')'));
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(", "));
    const auto name = std::string(part.substr(0, part.find(':')));
    names.push_back(name == "quat" ? "q" : name == "vec" ? "v" : name == "mat" ? "m" : name);
    rest = part.size() == rest.size() ? "" : rest.substr(part.size() + 2);
  }
  return names;
}

/// "operator+" or the name before "($0": what the expression of a rule calls.
std::string function_of(std::string_view expression) {
  if (expression.starts_with("$0 "))
    return "operator" + std::string(expression.substr(3, expression.rfind(' ') - 3));
  if (expression.ends_with("$0"))
    return "operator" + std::string(expression.substr(0, expression.size() - 2));
  std::size_t end = expression.find("($0");
  if (end == std::string_view::npos) end = expression.find("()");
  std::size_t start = end;
  while (start > 0 && (std::isalnum(expression[start - 1]) || expression[start - 1] == '_' ||
                       expression[start - 1] == '$'))
    --start;
  return std::string(expression.substr(start, end - start));
}

std::string indented(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += "  " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return out;
}

/// A raw string begins in the line below its quote.
std::string_view without_first_break(std::string_view text) {
  return text.starts_with('\n') ? text.substr(1) : text;
}

struct Support {
  std::string_view name, needs, text;
};
constexpr Support supports[] = {
    {"pcg_hash", "", R"(
// The PCG hash of Jarzynski and Olano, which Warp uses.
$D uint32 pcg_hash(uint32 x) {
  const uint32 b = x * 747796405u + 2891336453u;
  const uint32 c = ((b >> ((b >> 28) + 4)) ^ b) * 277803737u;
  return (c >> 22) ^ c;
}
)"},
    {"random_unit", "pcg_hash", R"(
$D float random_unit(uint32& state) {
  state = pcg_hash(state);
  return float(state >> 8) * 5.9604645e-8f;
}
)"},
    {"random_angle", "random_unit", R"(
$D float random_angle(uint32& state) { return 6.2831853f * random_unit(state); }
)"},
    {"from_end", "", R"(
// Negative indices count from the end.
$D int from_end(int i, int extent) { return i < 0 ? i + extent : i; }
)"},
    {"expect", "", R"(
$D void expect(bool holds, const char* what) {
  if (!holds) $fail
}
)"},
};

}  // namespace

void Emitter::define(const std::string& key, const std::string& text) {
  if (defined_.insert(key).second) definitions_ += text + "\n";
}

void Emitter::support(std::string_view name) {
  if (name == "uint64") {
    scalar_name(ScalarType::u64);
    return;
  }
  for (const Support& s : supports) {
    if (s.name != name) continue;
    if (!s.needs.empty()) support(s.needs);
    scalar_name(ScalarType::u32);
    define(std::string(name), expand(without_first_break(s.text), {}, {}));
  }
}

void Emitter::needs(const EmitRule& rule, Types types, Type result) {
  Type scalar = Type::of(result.scalar), first = types.empty() ? result : types[0];
  for (const Type t : types) scalar = t.is_array() ? scalar : Type::of(t.scalar);
  const Type element = first.element();
  const auto part_of = [](Type t) {
    return t.is_matrix() ? Type::vector(t.columns, t.scalar) : Type::of(t.scalar);
  };
  std::string_view rest = rule.needs;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(' '));
    rest = item.size() == rest.size() ? "" : rest.substr(item.size() + 1);
    if (item[0] == '@') {
      support(item.substr(1));
      continue;
    }
    const std::size_t colon = item.find(':');
    const BuiltinInfo& row = *find_builtin(item.substr(0, colon));
    std::vector<Type> wanted;
    for (const char letter : item.substr(colon + 1)) {
      const Type part = part_of(element);
      if (letter == 'C') {
        wanted = {part.array(1), part};
        break;
      }
      wanted.push_back(letter == 'A'   ? first
                       : letter == 'R' ? result
                       : letter == 'r' ? part_of(result)
                       : letter == 'E' ? element
                       : letter == 'Q' ? Type::quaternion(scalar.scalar)
                       : letter == 'V' ? Type::vector(3, scalar.scalar)
                                       : scalar);
    }
    const Type produced =
        row.effect == Effect::writes_array ? wanted[1] : row.result(wanted).value_or(result);
    need(row.id, wanted, produced);
  }
}

void Emitter::need(Builtin id, std::vector<Type> types, Type result) {
  const EmitRule* rule = find_rule(id, types, target_);
  if (rule == nullptr || (rule->body.empty() && rule->needs.empty())) return;
  Needed now{id, types, result};
  if (std::find(needed_.begin(), needed_.end(), now) != needed_.end()) return;
  needed_.push_back(std::move(now));
  needs(*rule, types, result);
  if (rule->body.empty()) return;
  const BuiltinInfo& row = info(id);
  const std::string name = expand(function_of(rule->in(target_)), types, result);
  const std::string returned = type_name(row.effect == Effect::asserts ? bool_type : result);
  std::vector<std::string> names = parameter_names(row);
  const bool atomic = row.effect == Effect::writes_array;
  if (atomic)
    names = id == Builtin::atomic_cas ? std::vector<std::string>{"at", "compare", "value"}
                                      : std::vector<std::string>{"at", "value"};
  std::string parameters;
  for (std::size_t i = 0; i < types.size() && name.find("identity") == std::string::npos; ++i) {
    const Type t = atomic && i == 0 ? types[0].element() : types[i];
    const bool in_place = i == 0 && (atomic || row.effect == Effect::updates_first);
    const std::string reference = in_place ? "& " : t.is_composite() ? "& " : " ";
    parameters += fmt::format("{}{}{}{}{}", i == 0 ? "" : ", ", t.is_composite() && !in_place ? "const " : "",
                              type_name(t), reference, names[i]);
  }
  std::string body(without_first_break(rule->body));
  if (body.starts_with("each ")) {
    const Type whole = result.is_matrix() ? result : types[0].element();
    if (result.is_matrix()) {  // by rows
      std::vector<Type> rows;
      for (const Type t : types) {
        const Type e = t.element();
        const Type part = e.is_matrix() ? Type::vector(e.columns, e.scalar) : e;
        rows.push_back(t.is_array() ? part.array(1) : part);
      }
      if (whole.is_matrix() && id != Builtin::lerp)
        need(id, rows, Type::vector(result.columns, result.scalar));
    }
    const std::string expression = body.substr(5);
    body = fmt::format("$R r;\nfor (int i = 0; i < {}; ++i) r[i] = {};\nreturn r;", result.rows, expression);
  } else if (body.starts_with("cas ") && target_ == Target::cpp) {
    body = "const $E old = at;\nat = " + body.substr(4) + ";\nreturn old;";
  } else if (body.starts_with("cas ")) {
    body =
        "$W* const word = reinterpret_cast<$W*>(&at);\n"
        "$W seen = *word;\n"
        "for (;;) {\n"
        "  const $E old = reinterpret_cast<$E&>(seen);\n"
        "  $E next = " +
        body.substr(4) +
        ";\n"
        "  const $W found = atomicCAS(word, seen, reinterpret_cast<$W&>(next));\n"
        "  if (found == seen) return old;\n"
        "  seen = found;\n"
        "}";
  }
  body = expand(body, types, result);
  const std::string head =
      fmt::format("{} {} {}({})", expand("$D", types, result), returned, name, parameters);
  const bool short_body = body.starts_with("return ") && body.find('\n') == std::string::npos;
  define(head, short_body ? fmt::format("{} {{ {} }}\n", head, body)
                          : fmt::format("{} {{\n{}}}\n", head, indented(body)));
}

std::string Emitter::expand(std::string_view text, Types types, Type result,
                            const std::vector<std::string>& args) {
  const bool cuda = target_ == Target::cuda;
  Type composite = result, scalar = result;
  for (auto t = types.rbegin(); t != types.rend(); ++t) {
    if (t->element().is_composite()) composite = *t;
    scalar = *t;
  }
  const ScalarType s = scalar.scalar;
  constexpr ScalarType unsigned_of[] = {ScalarType::u8, ScalarType::u16, ScalarType::u32, ScalarType::u64};
  const auto wide = [&] { return bits_of(s) == 8 ? 0 : bits_of(s) == 16 ? 1 : bits_of(s) == 32 ? 2 : 3; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    const char c = text[++i];
    const std::string_view rest = text.substr(i);
    if (c >= '0' && c <= '9') {
      out += args[static_cast<std::size_t>(c - '0')];
    } else if (c == '*') {
      out += fmt::format("{}", fmt::join(args, ", "));
    } else if (rest.starts_with("where")) {
      out += args.back();
      i += 4;
    } else if (rest.starts_with("fail")) {
      out += cuda ? "{\n    printf(\"%s\\n\", what);\n    __trap();\n  }" : "throw std::runtime_error(what);";
      i += 3;
    } else if ((c == 'm' || c == 's') && rest.size() > 1 && rest[1] == '{') {
      const std::size_t end = rest.find('}');
      const auto name = std::string(rest.substr(2, end - 2));
      out += !cuda                              ? "std::" + (name == "rint" ? "nearbyint" : name)
             : c == 'm' && s != ScalarType::f64 ? name + "f"
                                                : name;
      i += end;
    } else {
      switch (c) {
        case 'D':
          out += cuda ? "__device__ inline" : "inline";
          break;
        case 'T':
          out += scalar_name(s);
          break;
        case 'U':
          out += scalar_name(unsigned_of[wide()]);
          break;
        case 'W':
          out += bits_of(s) == 16   ? "unsigned short"
                 : bits_of(s) == 32 ? "unsigned int"
                                    : "unsigned long long";
          break;
        case 'R':
          out += type_name(result);
          break;
        case 'V':
          out += type_name(Type::vector(3, s));
          break;
        case 'E':
          out += type_name(types[0].element());
          break;
        case 'n':
          out += std::to_string(composite.rows);
          break;
        default:
          out += '$';
          --i;
      }
    }
  }
  return out;
}

}  // namespace ferrite::kernel
