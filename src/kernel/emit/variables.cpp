// Where variables are declared: at the first assignment if its scope covers all uses, else earlier. Also the
// arrays that a kernel makes.
#include <fmt/format.h>

#include "kernel/emit/emitter.hpp"
#include "kernel/emit/names.hpp"

namespace ferrite::kernel {

namespace {

/// The blocks and statements around a place, outermost first.
struct Level {
  const std::vector<Stmt>* block;
  const Stmt* statement;
};
using Path = std::vector<Level>;

/// All that is known of a variable's uses.
struct Uses {
  Path first;             // of its first use
  std::size_t depth = 0;  // levels whose block all uses share
  bool one = true;        // and whose statement at the last of them is the same
};

void visit(const std::vector<Stmt>& body, Path& path, std::vector<Uses>& uses) {
  for (const Stmt& s : body) {
    path.push_back({&body, &s});
    const auto use = [&](const Expr& e) {
      if (e.kind != ExprKind::variable) return;
      Uses& u = uses[static_cast<std::size_t>(e.index)];
      if (u.depth == 0) {
        u.first = path;
        u.depth = path.size();
        return;
      }
      std::size_t depth = 0;
      while (depth < std::min(u.depth, path.size()) && u.first[depth].block == path[depth].block) {
        ++depth;
        if (u.first[depth - 1].statement != path[depth - 1].statement) break;
      }
      u.one = depth == u.depth ? u.one && u.first[depth - 1].statement == path[depth - 1].statement
                               : u.first[depth - 1].statement == path[depth - 1].statement;
      u.depth = depth;
    };
    for (const Expr& e : s.values) for_each_expr(e, use);
    for (const Expr& e : s.targets) for_each_expr(e, use);
    visit(s.body, path, uses);
    visit(s.orelse, path, uses);
    path.pop_back();
  }
}

bool reads(const std::vector<Expr>& values, int variable) {
  bool found = false;
  for (const Expr& v : values)
    for_each_expr(v, [&](const Expr& e) { found |= e.kind == ExprKind::variable && e.index == variable; });
  return found;
}

}  // namespace

void Emitter::begin(const Function& f) {
  scope_ = {};
  scope_.function = &f;
  scope_.range = IndexRange(f);
  for (const Function& g : module_.functions) scope_.taken.insert(free_name(g.name));
  for (const Struct& s : module_.structs) scope_.taken.insert(struct_name(s.name));
  if (target_ == Target::cpp && has_barrier(f.body))  // names of the loop over threads
    scope_.taken.insert({"t", "first", "threads", "Thread"});
  for (const Variable& v : f.variables) {
    std::string name = free_name(v.name);
    while (!scope_.taken.insert(name).second) name += "_";
    scope_.names.push_back(name);
  }
  plan_variables();
}

void Emitter::plan_variables() {
  const Function& f = *scope_.function;
  std::vector<Uses> uses(f.variables.size());
  Path path;
  visit(f.body, path, uses);
  scope_.declared_by.assign(uses.size(), nullptr);
  scope_.ahead_of.assign(uses.size(), nullptr);
  for (std::size_t i = static_cast<std::size_t>(f.parameters); i < uses.size(); ++i) {
    const Uses& u = uses[i];
    if (u.depth == 0) continue;
    const auto variable = static_cast<int>(i);
    const Stmt& s = *u.first[u.depth - 1].statement;
    const bool here = u.first.size() == u.depth;
    bool sets = false;
    for (const Expr& t : s.targets) sets |= t.kind == ExprKind::variable && t.index == variable;
    const bool assigns = (s.kind == StmtKind::assign || s.kind == StmtKind::declare_array) && sets && here &&
                         !reads(s.values, variable);
    const bool counts = s.kind == StmtKind::for_ && sets && here && u.one && !reads(s.values, variable);
    (assigns || counts ? scope_.declared_by : scope_.ahead_of)[i] =
        assigns || counts ? &s : u.first[0].statement;
  }
}

void Emitter::declare_before(const Stmt& s) {
  if (scope_.lockstep) return;
  for (std::size_t i = 0; i < scope_.ahead_of.size(); ++i) {
    if (scope_.ahead_of[i] != &s) continue;
    const Variable& v = scope_.function->variables[i];
    for_each_stmt(scope_.function->body, [&](const Stmt& made) {
      if (made.kind == StmtKind::declare_array && !made.shared &&
          made.targets[0].index == static_cast<int>(i))
        array_storage(made, "");
    });
    line(fmt::format("{} {} = {};", type_name(v.type), scope_.names[i], zero(v.type)));
  }
}

bool Emitter::changes(const std::vector<Stmt>& body, int first, int end) const {
  bool found = false;
  const auto root_is = [&](const Expr* e) {
    while (e->kind == ExprKind::component || e->kind == ExprKind::field) e = &e->args[0];
    return e->kind == ExprKind::variable && e->index >= first && e->index < end;
  };
  for_each_stmt(body, [&](const Stmt& s) {
    for (const Expr& t : s.targets) found |= root_is(&t);
  });
  for_each_expr(body, [&](const Expr& e) {
    if (e.kind == ExprKind::apply && info(e.builtin).effect == Effect::updates_first)
      found |= root_is(&e.args[0]);
  });
  return found;
}

/// Whether the place is in an array that this function made only for its thread.
bool Emitter::is_own_array(const Expr& target) const {
  int array = -1;
  for_each_expr(target, [&](const Expr& e) {
    if (e.kind == ExprKind::element && e.args[0].kind == ExprKind::variable) array = e.args[0].index;
  });
  bool own = false;
  for_each_stmt(scope_.function->body, [&](const Stmt& s) {
    own |= s.kind == StmtKind::declare_array && !s.shared && s.targets[0].index == array;
  });
  return own;
}

void Emitter::array_storage(const Stmt& s, const std::string& qualifier) {
  std::int64_t count = 1;
  for (const Expr& extent : s.values) count *= extent.number.integer;
  line(fmt::format("{}{} {}_data[{}]{};", qualifier, type_name(s.targets[0].type.element()),
                   free_name(scope_.function->variables[static_cast<std::size_t>(s.targets[0].index)].name),
                   count, qualifier.empty() ? " = {}" : ""));
}

std::string Emitter::array_view(const Stmt& s) {
  std::vector<std::int64_t> shape, strides;
  for (const Expr& extent : s.values) shape.push_back(extent.number.integer);
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides.insert(strides.begin(), stride);
  const std::string data =
      free_name(scope_.function->variables[static_cast<std::size_t>(s.targets[0].index)].name) + "_data";
  return fmt::format("{{{}{}, {{{}}}, {{{}}}}}", scope_.lockstep && !s.shared ? "t." : "", data,
                     fmt::join(shape, ", "), fmt::join(strides, ", "));
}

void Emitter::declare_array(const Stmt& s) {
  if (s.shared) return;  // made before the threads start
  const auto variable = static_cast<std::size_t>(s.targets[0].index);
  const std::string type = type_name(s.targets[0].type), name = scope_.names[variable];
  const std::string data =
      (scope_.lockstep ? "t." : "") + free_name(scope_.function->variables[variable].name) + "_data";
  if (scope_.declared_by[variable] == &s && !scope_.lockstep) {
    array_storage(s, "");
    line(fmt::format("const {} {} = {};", type, name, array_view(s)));
    return;
  }
  line(fmt::format("for ({}& x : {}) x = {};", type_name(s.targets[0].type.element()), data,
                   zero(s.targets[0].type.element())));
  line(fmt::format("{} = {};", name, array_view(s)));
}

}  // namespace ferrite::kernel
