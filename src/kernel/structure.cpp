#include "ferrite/kernel/structure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ferrite::kernel {

bool is_commutative(Builtin builtin, Type a, Type b) {
  switch (builtin) {
    case Builtin::mul:
      return a.is_scalar() || b.is_scalar();
    case Builtin::add:
    case Builtin::min:
    case Builtin::max:
    case Builtin::bit_and:
    case Builtin::bit_or:
    case Builtin::bit_xor:
    case Builtin::eq:
    case Builtin::ne:
    case Builtin::dot:
    case Builtin::ddot:
    case Builtin::cw_mul:
      return true;
    default:
      return false;
  }
}

namespace {

class Form {
 public:
  Form(const Module& module, Literals literals) : module_(module), literals_(literals) {}

  std::string run(const Function& kernel) {
    std::string text = function(kernel);
    for (std::size_t i = 0; i < called_.size(); ++i)  // grows while it runs
      text += function(module_.functions[static_cast<std::size_t>(called_[i])]);
    return text;
  }

 private:
  /// Structs by their fields, so that their names and places do not count.
  std::string show(Type type) const {
    if (type.kind != Type::Kind::structure) return to_string(type);
    std::string fields;
    for (const Variable& f : module_.structs[type.structure].fields) fields += show(f.type) + " ";
    return fmt::format("{{{}}}{}", fields, type.dims);
  }

  std::string function(const Function& f) {
    numbers_.clear();
    std::string text = "(";
    for (int i = 0; i < f.parameters; ++i) {
      numbers_.emplace(i, i);
      text += show(f.variables[static_cast<std::size_t>(i)].type) + " ";
    }
    return text + block(f.body) + ")\n";
  }

  std::string block(const std::vector<Stmt>& body) {
    std::string text = "{";
    for (const Stmt& s : body) text += statement(s);
    return text + "}";
  }

  std::string statement(const Stmt& s) {
    // Values first: they are evaluated first, and so number the variables.
    std::string values, targets;
    for (const Expr& e : s.values) values += expression(e) + " ";
    for (const Expr& e : s.targets) targets += expression(e) + " ";
    const std::string op = s.kind == StmtKind::update ? std::string(info(s.builtin).name)
                           : s.shared                 ? "shared"
                                                      : "";
    return fmt::format("{}{}:{}<-{}{}{};", static_cast<int>(s.kind), op, targets, values,
                       s.body.empty() ? "" : block(s.body), s.orelse.empty() ? "" : block(s.orelse));
  }

  std::string expression(const Expr& e) { return expression(e, false); }

  /// `anonymous`: variables by type alone, which is what operands are sorted by.
  std::string expression(const Expr& e, bool anonymous) {
    switch (e.kind) {
      case ExprKind::literal:
        return literals_ == Literals::erased ? "#" + show(e.type)
                                             : fmt::format("{}#{}", e.number.integer, show(e.type));
      case ExprKind::variable: {
        if (anonymous) return "$" + show(e.type);
        const int next = static_cast<int>(numbers_.size());
        return fmt::format("${}{}", numbers_.emplace(e.index, next).first->second, show(e.type));
      }
      default:
        break;
    }
    std::vector<const Expr*> args;
    for (const Expr& a : e.args) args.push_back(&a);
    if (e.kind == ExprKind::apply && args.size() == 2 &&
        is_commutative(e.builtin, args[0]->type, args[1]->type) &&
        expression(*args[1], true) < expression(*args[0], true))
      std::swap(args[0], args[1]);
    std::string text = head(e, anonymous) + "(";
    for (const Expr* a : args) text += expression(*a, anonymous) + " ";
    return text + ")";
  }

  std::string head(const Expr& e, bool anonymous) {
    switch (e.kind) {
      case ExprKind::apply:
        return fmt::format("{}{}", info(e.builtin).name, e.args.empty() ? show(e.type) : "");
      case ExprKind::call: {
        auto found = std::find(called_.begin(), called_.end(), e.index);
        if (anonymous && found == called_.end()) return "call";
        if (found == called_.end()) found = called_.insert(called_.end(), e.index);
        return fmt::format("call{}", found - called_.begin());
      }
      case ExprKind::field:
        return fmt::format("field{}", e.index);
      default:
        return fmt::format("{}{}", static_cast<int>(e.kind), show(e.type));
    }
  }

  const Module& module_;
  Literals literals_;
  std::map<int, int> numbers_;  // of variables, by order of use
  std::vector<int> called_;
};

}  // namespace

std::string structural_form(const Module& module, const Function& kernel, Literals literals) {
  return Form(module, literals).run(kernel);
}

}  // namespace ferrite::kernel
