// Which values cannot be computed again from the arguments: a thread has changed the array in between.
#include <fmt/format.h>

#include "kernel/transform/lower.hpp"

namespace ferrite::kernel {

namespace {

/// Finds reads of parameters' elements that were or may have been written before.
class StaleReads {
 public:
  explicit StaleReads(Lowered& lowered) : l_(lowered) {}

  void run() {
    for_each_stmt(l_.function.body, [&](const Stmt& s) {
      if (s.kind != StmtKind::evaluate || s.values[0].kind != ExprKind::apply) return;
      const Expr& e = s.values[0];
      if (e.builtin == Builtin::atomic_min || e.builtin == Builtin::atomic_max)
        extrema_.emplace(e.args[0].index, s.place);
    });
    walk(l_.function.body);
  }

 private:
  bool is_parameter(const Expr& e) const { return e.index < l_.function.parameters; }
  void write(const Expr& array, Place place) {
    if (is_parameter(array)) written_.emplace(array.index, place);
  }
  void mark(const Stmt& s) {
    if (const CustomCall* call = l_.custom(s)) {
      for_each_stmt(call->forward, [&](const Stmt& inner) { mark(inner); });
      return;
    }
    for (const Expr& t : s.targets)
      if (in_array(t)) write(root_of(t), s.place);
    for (const Expr& v : s.values)
      if (v.kind == ExprKind::apply && info(v.builtin).effect == Effect::writes_array)
        write(v.args[0], s.place);
  }
  void walk(const std::vector<Stmt>& body) {
    for (const Stmt& s : body) {
      if (const CustomCall* call = l_.custom(s)) {
        walk(call->forward);
        walk(call->gradient);
        continue;
      }
      if (s.kind == StmtKind::assign && s.values[0].kind == ExprKind::element) read(s);
      mark(s);
      if (s.kind == StmtKind::for_ || s.kind == StmtKind::while_)
        for_each_stmt(s.body, [&](const Stmt& inner) { mark(inner); });
      walk(s.body);
      walk(s.orelse);
    }
  }
  void read(const Stmt& s) {
    const Expr& array = s.values[0].args[0];
    const std::string& name = l_.function.variables[static_cast<std::size_t>(array.index)].name;
    const auto refuse = [&](std::string reason) {
      l_.unrepeatable[s.targets[0].index] = {s.values[0].place, std::move(reason)};
    };
    if (const auto found = extrema_.find(array.index); found != extrema_.end())
      return refuse(
          fmt::format("no gradient: it needs '{}' as it was before wp.atomic_min or atomic_max", name));
    if (const auto found = written_.find(array.index); found != written_.end())
      refuse(fmt::format(
          "no gradient: it needs '{}' here as the kernel has changed it (line {}); keep that value "
          "in a variable",
          name, found->second.line));
  }

  Lowered& l_;
  std::map<int, Place> extrema_, written_;
};

}  // namespace

void find_stale_reads(Lowered& lowered) { StaleReads(lowered).run(); }

}  // namespace ferrite::kernel
