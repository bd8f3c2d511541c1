// Recording: finds the group of an op, and runs what must come before it, so that every read sees the value
// it would have seen if each op had run at once.
#include <cmath>

#include "decorators/lazy/recorder_state.hpp"

namespace ferrite::lazy {

namespace {

/// Whether the op has an expression in the kernel language for these dtypes.
bool can_fuse(const RecordedOp& op, Ins in, const Array& out, bool accumulates) {
  if (is_storage(in.size() > 0 ? in[0].dtype() : out.dtype()) || is_storage(out.dtype())) return false;
  if (accumulates && out.dtype() == DType::bool_) return false;  // an error, which the backend reports
  if (const auto* binary = std::get_if<op::Binary>(&op)) {
    const bool extremum = binary->fn == op::BinaryFn::maximum || binary->fn == op::BinaryFn::minimum;
    if (extremum && binary->side != op::ScalarSide::none && std::isnan(binary->scalar.to_double()))
      return false;
    Metas metas;
    for (std::size_t i = 0; i < in.size(); ++i) metas.push_back(in[i].meta());
    return has_expression(binary->fn, compute_dtype(binary->operand_dtype(metas)));
  }
  return true;
}

}  // namespace

Recorder::Recorder(Executor& executor, const LazyConfig& config, Device device)
    : state_(std::make_unique<State>(executor, config, device)) {}
Recorder::~Recorder() = default;

Array Recorder::allocate(const Meta& meta) {
  return {std::make_shared<LazyBuffer>(meta.bytes(), state_->device), Layout::contiguous(meta.shape),
          meta.dtype};
}

bool Recorder::record(const RecordedOp& op, Ins in, Outs out, Accumulate mask) {
  const std::lock_guard lock(state_->mutex);
  if (out[0].shape().numel() == 0 || lazy_buffer(out[0]) == nullptr) return false;
  if (const auto* reduce = std::get_if<op::Reduce>(&op))
    return mask == Accumulate::none && state_->record_reduction(*reduce, in[0], out[0]);
  if (!can_fuse(op, in, out[0], accumulates(mask, 0))) return false;
  state_->record_elementwise(op, in, out[0], accumulates(mask, 0));
  return true;
}

Array Recorder::to_read(const Array& array, std::string_view who) {
  const std::lock_guard lock(state_->mutex);
  LazyBuffer* buffer = lazy_buffer(array);
  if (!buffer) return array;
  if (buffer->writer) state_->run(*buffer->writer, who);
  buffer->check_computed();
  state_->give_memory(*buffer);
  return in_memory(array);
}

Array Recorder::to_write(const Array& array, std::string_view who) {
  const std::lock_guard lock(state_->mutex);
  state_->run_users(array.buffer().get(), who);
  LazyBuffer* buffer = lazy_buffer(array);
  if (!buffer) return array;
  buffer->failed = false;
  state_->give_memory(*buffer);
  return in_memory(array);
}

void Recorder::flush(std::string_view who) {
  const std::lock_guard lock(state_->mutex);
  while (!state_->groups.empty()) state_->run(*state_->groups.front(), who);
}

Settled::Settled(Recorder& recorder, std::string_view who, Ins in, Outs out) {
  ins_.reserve(in.size());
  outs_.reserve(out.size());
  for (std::size_t i = 0; i < in.size(); ++i) refs_.push_back(&ins_.push_back(recorder.to_read(in[i], who)));
  for (const Array& y : out) outs_.push_back(recorder.to_write(y, who));
}

void LazyBuffer::check_computed() const {
  if (failed)
    throw BackendError("[lazy] this value was never computed: the ops that lead to it failed when they ran");
}

void Recorder::State::give_memory(LazyBuffer& buffer) {
  if (buffer.memory) return;
  const auto bytes = static_cast<std::int64_t>(buffer.bytes());
  buffer.memory = executor.allocate({{bytes}, DType::u8}).buffer();
}

void Recorder::State::run_users(const Buffer* buffer, std::string_view who) {
  for (std::size_t i = 0; i < groups.size();) {
    if (groups[i]->reads(buffer) || writes(*groups[i], buffer))
      run(*groups[i], who);  // which removes it from the list
    else
      ++i;
  }
}

bool Recorder::State::writes(const Group& group, const Buffer* buffer) const {
  return is_lazy(buffer) && static_cast<const LazyBuffer*>(buffer)->writer == &group;
}

Group* Recorder::State::find(const Shape& domain) {
  for (const auto& g : groups)
    if (g->domain == domain) return g.get();
  return nullptr;
}

Group& Recorder::State::group_for(const Shape& domain, std::size_t arrays_needed) {
  if (Group* g = find(domain)) {
    const auto ops = static_cast<int>(g->ops.size());
    const auto arrays = static_cast<int>(g->arrays.size() + arrays_needed);
    if (ops < config.max_ops && arrays <= config.max_arrays) return *g;
    run(*g, ops < config.max_ops ? "the limit of arrays" : "the limit of ops");
  }
  if (groups.size() == max_groups) run(*groups.front(), "the limit of groups");
  groups.push_back(std::make_unique<Group>());
  groups.back()->domain = domain;
  return *groups.back();
}

bool Recorder::State::fits(const Array& array, const Layout& layout, const Shape& domain) const {
  const LazyBuffer* buffer = lazy_buffer(array);
  if (!buffer || !buffer->writer) return true;
  if (!(buffer->writer->domain == domain) || buffer->value < 0) return false;
  const Recorded& op = buffer->writer->ops[static_cast<std::size_t>(buffer->value)];
  return op.out.dtype() == array.dtype() && same_places(op.out.layout(), layout);
}

void Recorder::State::record_elementwise(const RecordedOp& op, Ins in, Array& out, bool accumulates) {
  const Shape domain = without_unit_axes(out.shape());
  LazyBuffer& target = *lazy_buffer(out);
  SmallVector<Array, 4> operands;
  for (std::size_t i = 0; i < in.size(); ++i)
    operands.push_back(in[i].with_layout(over_domain(in[i].layout(), out.shape())));
  const Array result = out.with_layout(over_domain(out.layout(), out.shape()));
  if (accumulates) operands.push_back(result);

  // A value is read from memory unless the same thread of the kernel has just computed it.
  for (const Array& x : operands)
    if (!fits(x, x.layout(), domain)) run(*lazy_buffer(x)->writer, reason_for_reading(x, domain));
  if (target.memory || target.writer) run_unless_in_place(result, domain);

  Group& group = group_for(domain, operands.size());
  Recorded recorded{op, {}, result, accumulates, false};
  for (const Array& x : operands) recorded.operands.push_back(operand_of(group, x));
  if (target.writer) group.ops[static_cast<std::size_t>(target.value)].overwritten = true;
  target.writer = &group;
  target.value = static_cast<int>(group.ops.size());
  group.ops.push_back(std::move(recorded));
  ++counts.recorded;
}

std::string_view Recorder::State::reason_for_reading(const Array& array, const Shape& domain) const {
  const LazyBuffer& buffer = *lazy_buffer(array);
  if (buffer.value < 0) return "the result of a reduction is read";
  return buffer.writer->domain == domain ? "a view is read" : "a value of another shape is read";
}

void Recorder::State::run_unless_in_place(const Array& result, const Shape& domain) {
  // In one kernel, each thread reads its own element before it writes it. This keeps the order of the ops
  // only if nobody uses the buffer through another view.
  const Buffer* buffer = result.buffer().get();
  for (std::size_t i = 0; i < groups.size();) {
    Group& g = *groups[i];
    bool clash = writes(g, buffer) && !fits(result, result.layout(), domain);
    for (const Array& a : g.arrays)
      if (a.buffer().get() == buffer)
        clash = clash || !(g.domain == domain) || !same_places(a.layout(), result.layout()) ||
                a.dtype() != result.dtype();
    if (clash)
      run(g, "what it reads or writes is overwritten");
    else
      ++i;
  }
}

Operand Recorder::State::operand_of(Group& group, const Array& array) {
  LazyBuffer* buffer = lazy_buffer(array);
  if (buffer && buffer->writer) return {buffer->value, -1};
  for (std::size_t i = 0; i < group.arrays.size(); ++i) {
    const Array& known = group.arrays[i];
    if (known.buffer() == array.buffer() && known.dtype() == array.dtype() &&
        same_places(known.layout(), array.layout()))
      return {-1, static_cast<int>(i)};
  }
  if (buffer) {
    buffer->check_computed();
    give_memory(*buffer);
  }
  group.arrays.push_back(array);
  return {-1, static_cast<int>(group.arrays.size()) - 1};
}

bool Recorder::State::record_reduction(const op::Reduce& op, const Array& in, Array& out) {
  LazyBuffer *source = lazy_buffer(in), &target = *lazy_buffer(out);
  if (!source || !source->writer || target.memory || target.writer) return false;
  const Shape domain = without_unit_axes(in.shape());
  if (!fits(in, over_domain(in.layout(), in.shape()), domain)) return false;
  const Shape given = normalize_axes(op.name(), op.axes, in.shape().rank());
  Shape axes;
  for (int i = 0, axis = 0; i < in.shape().rank(); ++i) {
    if (in.shape()[i] == 1) continue;
    if (std::find(given.begin(), given.end(), i) != given.end()) axes.push_back(axis);
    ++axis;
  }
  Group& group = *source->writer;
  if (axes.empty() || (!group.reductions.empty() && !(group.reduced_axes == axes))) return false;
  group.reduced_axes = axes;
  const Shape kept = without_unit_axes(out.shape());
  group.reductions.push_back(
      {op, source->value, out.with_layout(Layout::contiguous(kept)), static_cast<int>(group.ops.size())});
  target.writer = &group;
  target.value = -static_cast<int>(group.reductions.size());
  ++counts.recorded;
  return true;
}

}  // namespace ferrite::lazy
