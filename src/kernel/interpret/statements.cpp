// Statements of one thread.
#include <fmt/format.h>

#include "kernel/interpret/machine.hpp"

#include <algorithm>

namespace ferrite::kernel {

void Interpreter::step(Place place) {
  place_ = place;
  if (++steps_ > options_.step_limit)
    fail(fmt::format("more than {} steps: a loop that does not end?", options_.step_limit));
}

Interpreter::Flow Interpreter::execute(const std::vector<Stmt>& body) {
  for (const Stmt& s : body) {
    const Flow flow = execute(s);
    if (flow != Flow::next) return flow;
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::execute(const Stmt& s) {
  step(s.place);
  const Arena::Scope scope(arena_);
  switch (s.kind) {
    case StmtKind::assign:
      assign(s);
      return Flow::next;
    case StmtKind::update:
      update(s);
      return Flow::next;
    case StmtKind::evaluate: {
      const Expr& e = s.values[0];
      int size = size_of(e.type);
      if (e.type.is(Type::Kind::tuple)) {
        size = 0;
        for (const Type t : module_.functions[static_cast<std::size_t>(e.index)].results) size += size_of(t);
      }
      evaluate(e, arena_.take(static_cast<std::size_t>(size)));
      return Flow::next;
    }
    case StmtKind::declare_array:
      declare_array(s);
      return Flow::next;
    case StmtKind::if_:
      return execute(truth(s.values[0]) ? s.body : s.orelse);
    case StmtKind::for_:
      return for_loop(s);
    case StmtKind::while_:
      return while_loop(s);
    case StmtKind::break_:
      return Flow::break_;
    case StmtKind::continue_:
      return Flow::continue_;
    case StmtKind::return_: {
      Number* out = frame_.results;
      for (const Expr& v : s.values) {
        evaluate(v, out);
        out += size_of(v.type);
      }
      return Flow::return_;
    }
    case StmtKind::assert_:
      if (!truth(s.values[0])) {
        place_ = s.place;
        fail(s.text.empty() ? "assertion failed" : "assertion failed: " + s.text);
      }
      return Flow::next;
  }
  return Flow::next;
}

void Interpreter::assign(const Stmt& s) {
  // All values first, then all targets; a tuple lies in memory as its parts do.
  std::size_t size = 0;
  for (const Expr& t : s.targets) size += static_cast<std::size_t>(size_of(t.type));
  Number* values = arena_.take(size);
  Number* next = values;
  for (std::size_t i = 0; i < s.values.size(); ++i) {
    evaluate(s.values[i], next);
    next += size_of(s.targets[i].type);
  }
  next = values;
  for (const Expr& t : s.targets) {
    const int n = size_of(t.type);
    Number* place = place_of(t);
    note(t, place, n, Race::Access::write,
         std::equal(next, next + n, place, [](Number a, Number b) { return a.integer == b.integer; }));
    std::copy(next, next + n, place);
    next += n;
  }
}

void Interpreter::update(const Stmt& s) {
  // First the indices of the target, then the value, then the element is read, as in an atomic.
  const Expr& target = s.targets[0];
  Number* place = numbers(target);
  Number* right = arena_.take(static_cast<std::size_t>(size_of(s.values[0].type)));
  evaluate(s.values[0], right);
  const auto n = static_cast<std::size_t>(size_of(target.type));
  using enum Builtin;
  const bool atomic = s.builtin == add || s.builtin == sub || s.builtin == bit_and || s.builtin == bit_or ||
                      s.builtin == bit_xor;
  note(target, place, static_cast<int>(n), atomic ? Race::Access::atomic : Race::Access::write);
  Number* before = arena_.take(n);
  std::copy(place, place + n, before);
  const Type types[2] = {target.type, s.values[0].type};
  Number* const values[2] = {before, right};
  place_ = s.place;
  BuiltinCall call{*this, options_.precision, target.type, types, values, place};
  info(s.builtin).evaluate(call);
}

void Interpreter::declare_array(const Stmt& s) {
  const Expr& target = s.targets[0];
  const auto index = static_cast<std::size_t>(target.index);
  const bool known = frame_.written[index];
  Number* slot = variable_of(target, true);
  if (s.shared) {
    if (const auto found = shared_.find(&s); found != shared_.end()) {
      slot->integer = found->second;
      return;
    }
  }
  if (!known || s.shared) {
    ArrayView array;
    array.name = frame_.function->variables[index].name;
    array.stride = size_of(target.type.element());
    std::size_t count = static_cast<std::size_t>(array.stride);
    for (const Expr& extent : s.values) {
      array.shape.push_back(extent.number.integer);
      count *= static_cast<std::size_t>(extent.number.integer);
    }
    array.own.resize(count);
    slot->integer = add_array(std::move(array));
    arrays_.back().data = arrays_.back().own.data();
    if (s.shared) shared_[&s] = slot->integer;
    if (s.shared && races_)
      races_->add_array(arrays_.back().name, arrays_.back().shape, arrays_.back().stride, arrays_.back().data,
                        true);
  }
  ArrayView& array = array_of(*slot);
  std::fill(array.own.begin(), array.own.end(), Number{});
}

Interpreter::Range Interpreter::range_of(const Stmt& s) {
  const std::int64_t start = integer(s.values[0]), stop = integer(s.values[1]), by = integer(s.values[2]);
  place_ = s.place;
  if (by == 0) fail("the step of a range is zero");
  if (s.values[0].type.scalar == ScalarType::u64) {  // its numbers are those of i64 with other signs
    const auto a = static_cast<std::uint64_t>(start), b = static_cast<std::uint64_t>(stop),
               d = static_cast<std::uint64_t>(by);
    return {start, by, a < b ? (b - a - 1) / d + 1 : 0};
  }
  const bool some = by > 0 ? start < stop : start > stop;
  const auto distance = by > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                               : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
  const auto stride = by > 0 ? static_cast<std::uint64_t>(by) : 0 - static_cast<std::uint64_t>(by);
  return {start, by, some ? (distance - 1) / stride + 1 : 0};
}

void Interpreter::set_loop_variable(const Stmt& s, std::int64_t value) {
  place_of(s.targets[0])->integer = value;
}

Interpreter::Flow Interpreter::for_loop(const Stmt& s) {
  Range range = range_of(s);
  for (; range.count > 0; --range.count) {
    step(s.place);
    set_loop_variable(s, range.value);
    const Flow flow = execute(s.body);
    if (flow == Flow::return_) return flow;
    if (flow == Flow::break_) break;
    range.value = static_cast<std::int64_t>(static_cast<std::uint64_t>(range.value) +
                                            static_cast<std::uint64_t>(range.step));
  }
  return Flow::next;
}

Interpreter::Flow Interpreter::while_loop(const Stmt& s) {
  while (truth(s.values[0])) {
    step(s.place);
    const Flow flow = execute(s.body);
    if (flow == Flow::return_) return flow;
    if (flow == Flow::break_) break;
  }
  return Flow::next;
}

}  // namespace ferrite::kernel
