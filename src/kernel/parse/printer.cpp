// The IR as Warp's Python, with as few parentheses as the grammar needs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "ferrite/kernel/parse.hpp"
#include "kernel/ir/user_operators.hpp"
#include "kernel/parse/syntax.hpp"

namespace ferrite::kernel {

namespace {

/// How tightly an expression binds.
enum Level {
  lowest,
  any_of,
  all_of,
  negation,
  comparison,
  bit_or,
  bit_xor,
  bit_and,
  shift,
  sum,
  product,
  sign,
  power,
  whole
};

Level level_of(Builtin b) {
  switch (b) {
    case Builtin::not_:
      return negation;
    case Builtin::bit_or:
      return bit_or;
    case Builtin::bit_xor:
      return bit_xor;
    case Builtin::bit_and:
      return bit_and;
    case Builtin::lshift:
    case Builtin::rshift:
      return shift;
    case Builtin::add:
    case Builtin::sub:
      return sum;
    case Builtin::mul:
    case Builtin::div:
    case Builtin::floordiv:
    case Builtin::mod:
      return product;
    case Builtin::neg:
    case Builtin::pos:
    case Builtin::invert:
      return sign;
    case Builtin::pow:
      return power;
    default:
      return info(b).symbol.empty() ? whole : comparison;
  }
}

/// Digits that read back as the same number of this type.
std::string digits(ScalarType type, double x) {
  if (!std::isfinite(x))
    return fmt::format("{}wp.{}", std::signbit(x) ? "-" : "", std::isnan(x) ? "nan" : "inf");
  std::string text =
      type == ScalarType::f64 ? fmt::format("{}", x) : fmt::format("{}", static_cast<float>(x));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

class Printer {
 public:
  explicit Printer(const Module& module) : module_(module), struct_names_(module.struct_names()) {}

  std::string print_module() {
    out_ = "import warp as wp\n";
    for (const Struct& s : module_.structs) {
      out_ += fmt::format("\n\n@wp.struct\nclass {}:\n", s.name);
      for (const Variable& f : s.fields) out_ += fmt::format("    {}: {}\n", f.name, show(f.type));
      if (s.fields.empty()) out_ += "    pass\n";
    }
    for (const Function& f : module_.functions) print_function(f, decorator_of(f));
    for (const Function& k : module_.kernels)
      print_function(k, k.enable_backward ? "@wp.kernel" : "@wp.kernel(enable_backward=False)");
    return std::move(out_);
  }

  std::string print_expression(const Expr& e, const Function& inside) {
    function_ = &inside;
    return text(e, lowest);
  }

 private:
  /// "@wp.func", or the decorator of a gradient or replay.
  std::string decorator_of(const Function& f) const {
    const auto index = static_cast<int>(&f - module_.functions.data());
    for (const Function& of : module_.functions) {
      if (of.gradient == index) return fmt::format("@wp.func_grad({})", of.name);
      if (of.replay == index) return fmt::format("@wp.func_replay({})", of.name);
    }
    return "@wp.func";
  }
  /// wp.adjoint[x.field] for a field of the variable that stands for it; empty otherwise.
  std::string adjoint_text(const Expr& e) const {
    std::string path;
    const Expr* root = &e;
    for (; root->kind == ExprKind::field; root = &root->args[0])
      path =
          "." +
          module_.structs[root->args[0].type.structure].fields[static_cast<std::size_t>(root->index)].name +
          path;
    if (root->kind != ExprKind::variable) return "";
    const auto& adjoints = function_->adjoints;
    const auto found = std::find(adjoints.begin(), adjoints.end(), root->index);
    if (found == adjoints.end()) return "";
    return fmt::format("wp.adjoint[{}{}]",
                       function_->variables[static_cast<std::size_t>(found - adjoints.begin())].name, path);
  }
  std::string show(Type t) const { return to_string(t, struct_names_); }
  const std::string& name(const Expr& variable) const {
    return function_->variables[static_cast<std::size_t>(variable.index)].name;
  }

  void print_function(const Function& f, std::string_view decorator) {
    function_ = &f;
    find_loop_variables(f);
    std::string parameters;
    for (int i = 0; i < f.parameters; ++i) {
      const Variable& p = f.variables[static_cast<std::size_t>(i)];
      parameters += fmt::format("{}{}: {}", i == 0 ? "" : ", ", p.name, show(p.type));
    }
    const std::string result = f.results.size() == 1 ? " -> " + show(f.results[0]) : "";
    out_ += fmt::format("\n\n{}\ndef {}({}){}:\n", decorator, f.name, parameters, result);
    block(f.body, 1);
  }

  /// Warp wants variables that change in a loop to begin as float(0.0), not as the constant 0.0.
  void find_loop_variables(const Function& f) {
    loop_variables_.clear();
    for_each_stmt(f.body, [&](const Stmt& loop) {
      if (loop.kind != StmtKind::for_ && loop.kind != StmtKind::while_) return;
      for_each_stmt(loop.body, [&](const Stmt& s) {
        for (const Expr& target : s.targets)
          if (target.kind == ExprKind::variable) loop_variables_.insert(target.index);
      });
    });
  }

  void line(int depth, std::string_view text) {
    out_.append(static_cast<std::size_t>(depth) * 4, ' ');
    out_ += text;
    out_ += '\n';
  }

  void block(const std::vector<Stmt>& body, int depth) {
    if (body.empty()) line(depth, "pass");
    for (const Stmt& s : body) statement(s, depth);
  }

  void statement(const Stmt& s, int depth) {
    switch (s.kind) {
      case StmtKind::assign:
        return line(depth, fmt::format("{} = {}", list(s.targets), assigned(s)));
      case StmtKind::update:
        if (is_replaced(s.builtin, s.targets[0], s.values[0]) && !keeps_operator(s.builtin, s.targets[0]))
          return line(depth, fmt::format("{0} = wp.{1}({0}, {2})", text(s.targets[0], lowest),
                                         info(s.builtin).name, text(s.values[0], lowest)));
        return line(depth, fmt::format("{} {}= {}", text(s.targets[0], lowest), info(s.builtin).symbol,
                                       text(s.values[0], lowest)));
      case StmtKind::evaluate:
        return line(depth, text(s.values[0], lowest));
      case StmtKind::declare_array:
        return line(depth, fmt::format("{} = wp.{}(shape=({}{}), dtype={})", text(s.targets[0], lowest),
                                       s.shared ? "shared_array" : "zeros", list(s.values),
                                       s.values.size() == 1 ? "," : "", show(s.targets[0].type.element())));
      case StmtKind::if_:
        return branches(s, depth);
      case StmtKind::for_:
        line(depth, fmt::format("for {} in range({}):", name(s.targets[0]), range(s)));
        return block(s.body, depth + 1);
      case StmtKind::while_:
        line(depth, fmt::format("while {}:", text(s.values[0], lowest)));
        return block(s.body, depth + 1);
      case StmtKind::break_:
        return line(depth, "break");
      case StmtKind::continue_:
        return line(depth, "continue");
      case StmtKind::return_:
        return line(depth, s.values.empty() ? "return" : "return " + list(s.values));
      case StmtKind::assert_:
        return line(depth, fmt::format("assert {}{}", text(s.values[0], lowest),
                                       s.text.empty() ? "" : ", " + quoted(s.text)));
    }
  }

  void branches(const Stmt& s, int depth) {
    line(depth, fmt::format("if {}:", text(s.values[0], lowest)));
    block(s.body, depth + 1);
    const Stmt* last = &s;
    for (std::size_t chain = 1; chain < syntax::longest_chain; ++chain) {
      if (last->orelse.size() != 1 || last->orelse[0].kind != StmtKind::if_) break;
      last = &last->orelse[0];
      line(depth, fmt::format("elif {}:", text(last->values[0], lowest)));
      block(last->body, depth + 1);
    }
    if (last->orelse.empty()) return;
    line(depth, "else:");
    block(last->orelse, depth + 1);
  }

  std::string assigned(const Stmt& s) {
    std::string all;
    for (std::size_t i = 0; i < s.values.size(); ++i) {
      const Expr& v = s.values[i];
      const Expr& target = s.targets[i];
      const bool cast = v.kind == ExprKind::literal && target.kind == ExprKind::variable &&
                        loop_variables_.contains(target.index) && !text(v, lowest).starts_with("wp.");
      all += fmt::format("{}{}", i == 0 ? "" : ", ",
                         cast ? fmt::format("{}({})", show(v.type), text(v, lowest)) : text(v, lowest));
    }
    return all;
  }

  std::string range(const Stmt& s) {
    const auto is = [](const Expr& e, std::int64_t n) {
      return e.kind == ExprKind::literal && e.number.integer == n;
    };
    if (!is(s.values[2], 1)) return list(s.values);
    if (is(s.values[0], 0)) return text(s.values[1], lowest);
    return fmt::format("{}, {}", text(s.values[0], lowest), text(s.values[1], lowest));
  }

  static std::string quoted(std::string_view raw) {
    std::string text = "\"";
    for (const char c : raw) {
      if (c == '"' || c == '\\') text += '\\';
      text += c == '\n' ? "\\n" : std::string(1, c);
    }
    return text + '"';
  }

  std::string list(const std::vector<Expr>& all, std::size_t from = 0) {
    std::string joined;
    for (std::size_t i = from; i < all.size(); ++i) joined += (i == from ? "" : ", ") + text(all[i], lowest);
    return joined;
  }

  /// The expression, in parentheses if it binds less tightly than `least`.
  std::string text(const Expr& e, Level least) {
    Level level = whole;
    std::string made = print(e, level);
    return level < least ? "(" + made + ")" : made;
  }

  std::string print(const Expr& e, Level& level) {
    const auto arg = [&](std::size_t i, Level least) { return text(e.args[i], least); };
    if (auto adjoint = adjoint_text(e); !adjoint.empty()) return adjoint;
    switch (e.kind) {
      case ExprKind::literal:
        return number(e, level);
      case ExprKind::variable:
        return name(e);
      case ExprKind::apply:
        return application(e, level);
      case ExprKind::call:
        return fmt::format("{}({})", module_.functions[static_cast<std::size_t>(e.index)].name, list(e.args));
      case ExprKind::cast:
      case ExprKind::construct:
        return fmt::format("{}({})", show(e.type), list(e.args));
      case ExprKind::element:
      case ExprKind::component:
        return fmt::format("{}[{}]", arg(0, whole), list(e.args, 1));
      case ExprKind::field:
        return fmt::format(
            "{}.{}", arg(0, whole),
            module_.structs[e.args[0].type.structure].fields[static_cast<std::size_t>(e.index)].name);
      case ExprKind::logical_and:
        level = all_of;
        return fmt::format("{} and {}", arg(0, all_of), arg(1, negation));
      case ExprKind::logical_or:
        level = any_of;
        return fmt::format("{} or {}", arg(0, any_of), arg(1, all_of));
      default:
        level = lowest;
        return fmt::format("{} if {} else {}", arg(1, any_of), arg(0, any_of), arg(2, lowest));
    }
  }

  std::string number(const Expr& e, Level& level) {
    const ScalarType s = e.type.scalar;
    if (s == ScalarType::bool_) return e.number.integer != 0 ? "True" : "False";
    std::string plain = is_float(s) ? digits(s, e.number.real)
                        : s == ScalarType::u64
                            ? fmt::format("{}", static_cast<std::uint64_t>(e.number.integer))
                            : fmt::format("{}", e.number.integer);
    if (s != ScalarType::i32 && s != ScalarType::f32) return fmt::format("{}({})", show(e.type), plain);
    if (plain[0] == '-') level = sign;
    return plain;
  }

  /// Whether a function of the module defines the operator for these types, so that the builtin must be
  /// written by name.
  bool is_replaced(Builtin builtin, const Expr& a, const Expr& b) const {
    return std::any_of(module_.functions.begin(), module_.functions.end(), [&](const Function& f) {
      return f.name == info(builtin).name && f.parameters == 2 && f.variables[0].type == a.type &&
             f.variables[1].type == b.type;
    });
  }

  std::string application(const Expr& e, Level& level) {
    const BuiltinInfo& row = info(e.builtin);
    const std::string scalar = show(Type::of(e.type.scalar));
    if (e.builtin == Builtin::identity)
      return fmt::format("wp.identity(n={}, dtype={})", e.type.rows, scalar);
    if (e.builtin == Builtin::quat_identity) return fmt::format("wp.quat_identity(dtype={})", scalar);
    if (e.builtin == Builtin::shape)
      return fmt::format("{}.shape[{}]", text(e.args[0], whole), text(e.args[1], lowest));
    if (e.builtin == Builtin::len) return fmt::format("len({})", list(e.args));
    if (row.symbol.empty() || (e.args.size() == 2 && is_replaced(e.builtin, e.args[0], e.args[1])))
      return fmt::format("wp.{}({})", row.name, list(e.args));
    level = level_of(e.builtin);
    if (e.args.size() == 1)
      return fmt::format("{}{}{}", row.symbol, level == negation ? " " : "", text(e.args[0], level));
    // Operators group from the left; comparisons do not chain, and ** groups from the right.
    const auto next = static_cast<Level>(level + 1);
    const Level left = level == power || level == comparison ? next : level,
                right = level == power ? sign : next;
    return fmt::format("{} {} {}", text(e.args[0], left), row.symbol, text(e.args[1], right));
  }

  const Module& module_;
  std::vector<std::string> struct_names_;
  const Function* function_ = nullptr;
  std::set<int> loop_variables_;
  std::string out_;
};

}  // namespace

std::string print(const Module& module) { return Printer(module).print_module(); }

std::string print(const Module& module, const Expr& expression, const Function& inside) {
  return Printer(module).print_expression(expression, inside);
}

}  // namespace ferrite::kernel
