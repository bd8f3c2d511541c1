// Programs as a whole: constants, parameters and thread numbers, then the body.
#include <algorithm>

#include "kernel/cpu/block/compiler.hpp"

namespace ferrite::kernel {

namespace {

constexpr std::size_t most_instructions = 200'000;    // functions written out many times over
constexpr std::uint32_t most_bytes_per_lane = 65536;  // large local arrays

const Expr& root(const Expr& e) {
  const Expr* at = &e;
  while (at->kind == ExprKind::field || at->kind == ExprKind::component || at->kind == ExprKind::element)
    at = &at->args[0];
  return *at;
}

bool returns_early(const std::vector<Stmt>& body, bool tail) {
  for (std::size_t i = 0; i < body.size(); ++i) {
    const bool last = tail && i + 1 == body.size();
    if (body[i].kind == StmtKind::return_ && !last) return true;
    if (returns_early(body[i].body, false) || returns_early(body[i].orelse, false)) return true;
  }
  return false;
}

}  // namespace

bool has_jump(const std::vector<Stmt>& body) {
  bool found = false;
  for_each_stmt(body, [&](const Stmt& s) {
    found |= s.kind == StmtKind::break_ || s.kind == StmtKind::continue_ || s.kind == StmtKind::return_;
  });
  return found;
}

BlockCompiler::BlockCompiler(BlockCode& program) : program_(program), module_(*program.module) {}

Cell BlockCompiler::take(ScalarType type) { return {type, reserve(lane_bytes(type)), -1}; }
std::uint32_t BlockCompiler::reserve(std::int64_t bytes) {
  if (next_ + bytes > most_bytes_per_lane) throw Unsupported{"its variables and local arrays are too large"};
  const std::uint32_t at = next_;
  next_ += static_cast<std::uint32_t>(bytes);
  program_.bytes_per_lane = std::max(program_.bytes_per_lane, next_);
  return at;
}

void BlockCompiler::scalars_of(Type type, std::vector<ScalarType>& out) const {
  if (type.is_struct()) {
    for (const Variable& f : module_.structs[type.structure].fields) scalars_of(f.type, out);
  } else if (type.kind != Type::Kind::none) {
    out.insert(out.end(), type.is_array() ? 1u : static_cast<std::size_t>(type.components()), type.scalar);
  }
}

/// Registers for a value; cells of arrays in structs stay without one.
Cells BlockCompiler::take(Type type) {
  Cells cells;
  if (type.is_array()) return {Cell{type.scalar, no_register, -1}};
  if (type.is_struct()) {
    for (const Variable& f : module_.structs[type.structure].fields)
      for (const Cell& c : take(f.type)) cells.push_back(c);
    return cells;
  }
  if (type.kind == Type::Kind::none) return cells;
  for (int i = 0; i < type.components(); ++i) cells.push_back(take(type.scalar));
  return cells;
}

int BlockCompiler::size_of(Type type) const {
  std::vector<ScalarType> scalars;
  scalars_of(type, scalars);
  return static_cast<int>(scalars.size());
}

int BlockCompiler::take_mask() {
  program_.masks.push_back(take(ScalarType::bool_).reg);
  return static_cast<int>(program_.masks.size()) - 1;
}

Instruction& BlockCompiler::emit(Execute execute) {
  if (program_.code.size() > most_instructions)
    throw Unsupported{"it is too long with its functions written out"};
  Instruction& i = program_.code.emplace_back();
  i.execute = execute;
  i.mask = mask_;
  return i;
}

Cell BlockCompiler::constant(ScalarType type, Number n) {
  const auto [found, is_new] = constants_.try_emplace({type, n.integer});
  if (is_new) {
    found->second = take(type);
    program_.constants.push_back({found->second, n});
  }
  return found->second;
}

/// Literals and thread indices of all code that the kernel reaches.
void BlockCompiler::collect(const std::vector<Stmt>& statements) {
  for_each_expr(statements, [&](const Expr& e) {
    if (e.kind == ExprKind::literal) constant(e.type.scalar, e.number);
    if (e.kind == ExprKind::apply && info(e.builtin).effect == Effect::updates_first) draws_ = true;
    if (e.kind == ExprKind::apply && e.builtin == Builtin::tid) {
      const std::size_t axes = e.type.is(Type::Kind::tuple) ? e.type.rows : 0;
      if (axes > axes_.size()) axes_.resize(axes);
      if (axes == 0) thread_.array = 0;  // wanted
    }
    if (e.kind != ExprKind::call) return;
    const Function* f = &module_.functions[static_cast<std::size_t>(e.index)];
    if (std::find(reached_.begin(), reached_.end(), f) != reached_.end()) return;
    reached_.push_back(f);
    collect(f->body);
  });
  for_each_stmt(statements,
                [&](const Stmt& s) { program_.blocks |= s.kind == StmtKind::declare_array && s.shared; });
}

void BlockCompiler::bind_parameter(Type type, int parameter, const std::string& name,
                                   const ElementLayout& layout, std::size_t& part, Cells& out) {
  if (type.is_struct()) {
    for (const Variable& f : module_.structs[type.structure].fields)
      bind_parameter(f.type, parameter, name + "." + f.name, layout, part, out);
    return;
  }
  if (type.is_array()) {
    ArraySlot slot;
    slot.name = name;
    slot.type = type;
    slot.layout = layout_of(module_, type.element());
    slot.parameter = parameter;
    slot.offset = layout.parts[part++].offset;
    for (const auto& p : slot.layout.parts)
      if (p.is_array) throw Unsupported{"an array of structs that hold arrays"};
    out.push_back({type.scalar, no_register, static_cast<int>(program_.arrays.size())});
    program_.arrays.push_back(std::move(slot));
    return;
  }
  for (int i = 0; i < type.components(); ++i) {
    const Cell cell = take(type.scalar);
    program_.parameters.push_back({cell, parameter, layout.parts[part++].offset});
    out.push_back(cell);
  }
}

void BlockCompiler::compile() {
  const Function& kernel = *program_.kernel;
  program_.blocks = has_barrier(kernel.body);
  collect(kernel.body);
  std::vector<Cells> parameters(static_cast<std::size_t>(kernel.parameters));
  for (int p = 0; p < kernel.parameters; ++p) {
    const Variable& v = kernel.variables[static_cast<std::size_t>(p)];
    std::size_t part = 0;
    bind_parameter(v.type, p, v.name, layout_of(module_, v.type), part,
                   parameters[static_cast<std::size_t>(p)]);
  }
  uniform_end_ = next_;
  if (thread_.array == 0) {
    thread_ = take(ScalarType::i32);
    emit(control::thread_number).out = thread_.reg;
  }
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    axes_[axis] = take(ScalarType::i32);
    Instruction& i = emit(control::thread_indices);
    i.out = axes_[axis].reg;
    i.detail = static_cast<int>(axis);
  }
  permanent_end_ = next_;
  Scope scope;
  open(scope, kernel);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (scope.assignments[p] == 0) {
      scope.variables[p] = parameters[p];
    } else {
      bind_copies(scope.variables[p], parameters[p]);
    }
  }
  scope_ = &scope;
  if (scope.returns) {
    const int own = take_mask();
    emit(control::set_mask).detail = own;
    scope.chain = {own};
    mask_ = own;
  }
  body(kernel.body);
}

/// A parameter that the function assigns: registers of its own.
void BlockCompiler::bind_copies(Cells& own, const Cells& given) {
  for (std::size_t c = 0; c < given.size(); ++c) {
    if (given[c].array >= 0)
      own[c].array = given[c].array;
    else
      copy(own[c], given[c], -1);
  }
}

/// Registers for the variables of a function, and what it does to them.
void BlockCompiler::open(Scope& scope, const Function& function) {
  scope.function = &function;
  scope.range = IndexRange(function);
  scope.entry_mask = mask_;
  scope.assignments.assign(function.variables.size(), 0);
  scope.defined.assign(function.variables.size(), false);
  for (int p = 0; p < function.parameters; ++p) scope.defined[static_cast<std::size_t>(p)] = true;
  for_each_stmt(function.body, [&](const Stmt& s) {
    for (const Expr& t : s.targets)
      if (root(t).kind == ExprKind::variable && !root(t).type.is_array())
        ++scope.assignments[static_cast<std::size_t>(root(t).index)];
    if (s.kind != StmtKind::declare_array) return;
    if (s.shared && shared_.contains(&s)) return;
    ArraySlot slot;
    slot.kind = s.shared ? ArraySlot::Kind::shared : ArraySlot::Kind::local;
    slot.name = function.variables[static_cast<std::size_t>(s.targets[0].index)].name;
    slot.type = s.targets[0].type;
    slot.layout = layout_of(module_, slot.type.element());
    slot.elements = 1;
    for (std::size_t i = 0; i < s.values.size(); ++i) {
      slot.shape[i] = s.values[i].number.integer;
      slot.elements *= slot.shape[i];
    }
    for (const auto& part : slot.layout.parts) {
      if (part.is_array) throw Unsupported{"an array of structs that hold arrays"};
      slot.part_at.push_back(slot.stride);
      slot.stride += lane_bytes(part.type);
    }
    if (s.shared) {
      slot.memory = program_.shared_bytes;
      program_.shared_bytes += (slot.elements * slot.layout.size + 63) / 64 * 64;
      shared_[&s] = static_cast<int>(program_.arrays.size());
    } else {
      slot.base = reserve(slot.elements * slot.stride);
      local_[{&scope, &s}] = static_cast<int>(program_.arrays.size());
    }
    program_.arrays.push_back(std::move(slot));
  });
  if (draws_)
    for_each_expr(function.body, [&](const Expr& e) {
      if (e.kind == ExprKind::apply && info(e.builtin).effect == Effect::updates_first)
        ++scope.assignments[static_cast<std::size_t>(e.args[0].index)];
    });
  scope.returns = returns_early(function.body, true);
  for (std::size_t v = 0; v < function.variables.size(); ++v) {
    const bool alias = static_cast<int>(v) < function.parameters && scope.assignments[v] == 0;
    scope.variables.push_back(alias ? Cells{} : take(function.variables[v].type));
  }
  scope.zeros = program_.lists.size();
  program_.lists.emplace_back();
  emit(control::zero).detail = static_cast<int>(scope.zeros);
}

void BlockCompiler::body(const std::vector<Stmt>& statements) {
  for (const Stmt& s : statements) {
    const Temporaries temporaries(*this);
    statement(s);
    if (s.kind == StmtKind::return_ || s.kind == StmtKind::break_ || s.kind == StmtKind::continue_) return;
  }
}

}  // namespace ferrite::kernel
