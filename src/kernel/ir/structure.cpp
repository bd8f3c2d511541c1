#include "ferrite/kernel/structure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/hash.hpp"

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

class StructureForm {
 public:
  StructureForm(const Module& module, Literals literals) : module_(module), literals_(literals) {}

  std::string run(const Function& kernel) {
    function(kernel);
    for (std::size_t i = 0; i < called_.size(); ++i)  // grows while it runs
      function(module_.functions[static_cast<std::size_t>(called_[i])]);
    return std::move(text_);
  }

 private:
  void put(std::string_view text) { text_ += text; }
  void put(std::int64_t number) {
    const fmt::format_int digits(number);
    text_.append(digits.data(), digits.size());
  }
  /// Structs by their fields, so that their names and places do not count.
  void put(Type type) {
    if (type.kind != Type::Kind::structure) {
      text_ += static_cast<char>('A' + static_cast<int>(type.kind));
      text_ += static_cast<char>('a' + static_cast<int>(type.scalar));
      for (const int n : {int{type.rows}, int{type.columns}, int{type.dims}}) {
        text_ += '.';
        put(n);
      }
      return;
    }
    text_ += '{';
    for (const Variable& f : module_.structs[type.structure].fields) {
      put(f.type);
      text_ += ' ';
    }
    text_ += '}';
    put(type.dims);
  }

  /// Functions are numbered as they come into use.
  std::int64_t number_of(int function) {
    auto found = std::find(called_.begin(), called_.end(), function);
    if (found == called_.end()) found = called_.insert(called_.end(), function);
    return found - called_.begin();
  }

  void function(const Function& f) {
    numbers_.assign(f.variables.size(), -1);
    used_ = 0;
    text_ += '(';
    for (int i = 0; i < f.parameters; ++i) {
      numbers_[static_cast<std::size_t>(i)] = used_++;
      put(f.variables[static_cast<std::size_t>(i)].type);
      text_ += ' ';
    }
    block(f.body);
    for (const int* other : {&f.gradient, &f.replay}) {  // part of what it means
      if (*other < 0) continue;
      put(other == &f.gradient ? "gradient" : "replay");
      put(number_of(*other));
    }
    text_ += ")\n";
  }

  void block(const std::vector<Stmt>& body) {
    text_ += '{';
    for (const Stmt& s : body) statement(s);
    text_ += '}';
  }

  void statement(const Stmt& s) {
    put(static_cast<int>(s.kind));
    if (s.kind == StmtKind::update) put(info(s.builtin).name);
    if (s.shared) put("shared");
    text_ += ':';
    // Values first: they are evaluated first, and so number the variables.
    for (const Expr& e : s.values) {
      expression(e);
      text_ += ' ';
    }
    put("->");
    for (const Expr& e : s.targets) {
      expression(e);
      text_ += ' ';
    }
    if (!s.body.empty()) block(s.body);
    if (!s.orelse.empty()) {
      text_ += '|';
      block(s.orelse);
    }
    text_ += ';';
  }

  /// The sort key of operands: a hash of the expression, with variables represented by their type.
  std::uint64_t rank(const Expr& e) const {
    std::uint64_t hash = hash_start;
    const auto mix = [&](std::uint64_t x) { hash = hash_word(x, hash); };
    mix(static_cast<std::uint64_t>(e.kind) << 8 | static_cast<std::uint64_t>(e.builtin));
    mix(static_cast<std::uint64_t>(e.type.kind) << 32 | static_cast<std::uint64_t>(e.type.scalar) << 24 |
        std::uint64_t{e.type.rows} << 16 | std::uint64_t{e.type.columns} << 8 | e.type.dims);
    if (e.kind == ExprKind::field) mix(static_cast<std::uint64_t>(e.index));
    if (e.kind == ExprKind::literal && literals_ == Literals::kept)
      mix(static_cast<std::uint64_t>(e.number.integer));
    if (swaps(e)) {
      const std::uint64_t a = rank(e.args[0]), b = rank(e.args[1]);
      mix(std::min(a, b));
      mix(std::max(a, b));
    } else {
      for (const Expr& a : e.args) mix(rank(a));
    }
    return hash;
  }
  static bool swaps(const Expr& e) {
    return e.kind == ExprKind::apply && e.args.size() == 2 &&
           is_commutative(e.builtin, e.args[0].type, e.args[1].type);
  }

  void expression(const Expr& e) {
    switch (e.kind) {
      case ExprKind::literal:
        if (literals_ == Literals::kept) put(e.number.integer);
        text_ += '#';
        return put(e.type);
      case ExprKind::variable: {
        int& number = numbers_[static_cast<std::size_t>(e.index)];
        if (number < 0) number = used_++;
        text_ += '$';
        put(number);
        return put(e.type);
      }
      default:
        break;
    }
    head(e);
    text_ += '(';
    const bool swapped = swaps(e) && rank(e.args[1]) < rank(e.args[0]);
    for (std::size_t i = 0; i < e.args.size(); ++i) {
      expression(e.args[swapped ? 1 - i : i]);
      text_ += ' ';
    }
    text_ += ')';
  }

  void head(const Expr& e) {
    switch (e.kind) {
      case ExprKind::apply:
        put(info(e.builtin).name);
        if (e.args.empty()) put(e.type);
        return;
      case ExprKind::call:
        put("call");
        return put(number_of(e.index));
      case ExprKind::field:
        put("field");
        return put(e.index);
      default:
        put(static_cast<int>(e.kind));
        put(e.type);
    }
  }

  const Module& module_;
  Literals literals_;
  std::vector<int> numbers_;  // of variables, by order of use
  int used_ = 0;
  std::vector<int> called_;
  std::string text_;
};

}  // namespace

std::string structural_form(const Module& module, const Function& kernel, Literals literals) {
  return StructureForm(module, literals).run(kernel);
}

}  // namespace ferrite::kernel
