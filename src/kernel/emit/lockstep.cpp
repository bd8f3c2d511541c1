// Kernels with blocks on the CPU: code between two barriers is a loop over the threads of the block, whose
// variables are in a record per thread. Branches and loops around a barrier are the same for all threads
// (otherwise some would not reach it), so the first thread decides.
#include <fmt/format.h>

#include "kernel/emit/emitter.hpp"
#include "kernel/emit/names.hpp"

namespace ferrite::kernel {

namespace {

/// A statement that leaves the thread or a loop around it; null if there is none.
const Stmt* leaves(const Stmt& s, bool in_loop) {
  if (s.kind == StmtKind::return_) return &s;
  if ((s.kind == StmtKind::break_ || s.kind == StmtKind::continue_) && !in_loop) return &s;
  const bool inner = in_loop || s.kind == StmtKind::for_ || s.kind == StmtKind::while_;
  for (const auto* body : {&s.body, &s.orelse})
    for (const Stmt& below : *body)
      if (const Stmt* found = leaves(below, inner)) return found;
  return nullptr;
}
const Stmt* returns_in_loop(const Stmt& s, bool in_loop) {
  if (s.kind == StmtKind::return_ && in_loop) return &s;
  const bool inner = in_loop || s.kind == StmtKind::for_ || s.kind == StmtKind::while_;
  for (const auto* body : {&s.body, &s.orelse})
    for (const Stmt& below : *body)
      if (const Stmt* found = returns_in_loop(below, inner)) return found;
  return nullptr;
}

bool mentions_thread(const Stmt& s) {
  bool found = false;
  const auto look = [&](const Expr& e) { found |= e.kind == ExprKind::apply && e.builtin == Builtin::tid; };
  for (const Expr& e : s.values) for_each_expr(e, look);
  for (const Expr& e : s.targets) for_each_expr(e, look);
  for_each_expr(s.body, look);
  for_each_expr(s.orelse, look);
  return found;
}

}  // namespace

/// Variables are members of `record`; parameters and the block's arrays keep their names.
void Emitter::name_threads(const std::string& record) {
  const Function& f = *scope_.function;
  for (std::size_t i = static_cast<std::size_t>(f.parameters); i < f.variables.size(); ++i) {
    const std::string plain = scope_.names[i].substr(scope_.names[i].rfind('.') + 1);
    bool shared = false;
    for (const Stmt& s : f.body) shared |= s.shared && s.targets[0].index == static_cast<int>(i);
    if (!shared) scope_.names[i] = record + plain;
  }
}

void Emitter::lockstep_kernel(const Function& kernel) {
  for (int i = 0; i < kernel.parameters; ++i)
    if (changes(kernel.body, i, i + 1))
      fail(kernel.place, "a kernel with blocks that changes a parameter: assign to a new variable");
  scope_.lockstep = true;
  scope_.declared_by.assign(kernel.variables.size(), nullptr);  // the record declares them
  const std::string given = parameters(), comma = given.empty() ? "" : ", ";
  line(fmt::format("extern \"C\" void {}(const Launch* launch{}{}) {{", entry_name(kernel), comma, given));
  ++indent_;
  line("struct Thread {");
  for (std::size_t i = static_cast<std::size_t>(kernel.parameters); i < kernel.variables.size(); ++i) {
    bool shared = false;
    for_each_stmt(kernel.body, [&](const Stmt& s) {
      if (s.kind != StmtKind::declare_array || s.targets[0].index != static_cast<int>(i)) return;
      shared = s.shared;
      ++indent_;
      if (!shared) array_storage(s, "");
      --indent_;
    });
    if (!shared)
      line(fmt::format("  {} {} = {};", type_name(kernel.variables[i].type), scope_.names[i],
                       zero(kernel.variables[i].type)));
  }
  line("};");
  line("for (int thread = 0; thread < launch->size; thread += launch->block_dim) {");
  ++indent_;
  line("std::vector<Thread> threads(std::min(launch->block_dim, launch->size - thread));");
  for (const Stmt& s : kernel.body) {
    if (!s.shared) continue;
    array_storage(s, "");
    line(fmt::format("const {} {} = {};", type_name(s.targets[0].type),
                     scope_.names[static_cast<std::size_t>(s.targets[0].index)], array_view(s)));
  }
  lockstep(kernel.body, true);
  --indent_;
  line("}");
  --indent_;
  line("}");
  close_cpp(kernel);
}

void Emitter::lockstep(const std::vector<Stmt>& body, bool outermost) {
  const Stmt* const end = body.data() + body.size();
  for (const Stmt* at = body.data(); at != end;) {
    if (has_barrier(*at)) {
      lockstep(*at++);
      continue;
    }
    const Stmt* const first = at;
    while (at != end && !has_barrier(*at)) ++at;
    phase(first, at, outermost && at == end);
  }
}

void Emitter::phase(const Stmt* first, const Stmt* end, bool final) {
  bool empty = true;
  for (const Stmt* s = first; s != end; ++s) {
    empty &= s->shared;
    const Stmt* const bad = final ? returns_in_loop(*s, false) : leaves(*s, false);
    if (bad != nullptr)
      fail(bad->place,
           "this could part the threads of a block before a barrier: the CPU form cannot follow it");
  }
  if (empty) return;
  line("for (int lane = 0; lane < int(threads.size()); ++lane) {");
  ++indent_;
  line("Thread& t = threads[lane];");
  bool asks = false;
  for (const Stmt* s = first; s != end; ++s) asks |= mentions_thread(*s);
  if (asks) {
    line("const int first = thread;");
    line("const int thread = first + lane;");
  }
  name_threads("t.");
  scope_.on_return = "continue;";
  for (const Stmt* s = first; s != end; ++s) statement(*s);
  --indent_;
  line("}");
}

void Emitter::lockstep(const Stmt& s) {
  if (s.kind == StmtKind::evaluate) return line("// barrier");
  name_threads("threads[0].");
  for (const Expr& v : s.values)
    if (!is_pure(module_, v)) fail(s.place, "a condition with effects around a barrier: compute it before");
  if (s.kind == StmtKind::if_) {
    line(fmt::format("if ({}) {{", value(s.values[0])));
    ++indent_;
    lockstep(s.body, false);
    --indent_;
    if (!s.orelse.empty()) {
      line("} else {");
      ++indent_;
      lockstep(s.orelse, false);
      --indent_;
    }
    return line("}");
  }
  if (s.kind == StmtKind::while_) {
    line(fmt::format("while ({}) {{", value(s.values[0])));
    ++indent_;
  } else {
    const auto variable = static_cast<std::size_t>(s.targets[0].index);
    const std::string counter = scope_.names[variable].substr(scope_.names[variable].rfind('.') + 1);
    line(range_head(s, counter_type(s.targets[0].type), counter));
    ++indent_;
    line(fmt::format("for (Thread& t : threads) t.{0} = {0};", counter));
  }
  lockstep(s.body, false);
  --indent_;
  line("}");
}

}  // namespace ferrite::kernel
