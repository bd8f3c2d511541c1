// Runs a group: as one kernel, or op by op if it has only one op or no kernel can do it.
#include "decorators/lazy/recorder_state.hpp"
#include "ferrite/kernel/emit.hpp"

namespace ferrite::lazy {

namespace {

/// The array as the op itself knew it: over the domain's axes, with axes of extent 1 restored.
Array operand_in_memory(const Group& group, const Operand& x) {
  return in_memory(x.op >= 0 ? group.ops[at(x.op)].out : group.arrays[at(x.array)]);
}

}  // namespace

void Recorder::State::run(Group& group, std::string_view who) {
  const auto found =
      std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.get() == &group; });
  const std::unique_ptr<Group> owned = std::move(*found);
  groups.erase(found);
  // Whatever happens, nobody waits for it any more.
  const auto for_each_result = [&](auto&& f) {
    for (const Recorded& r : group.ops) f(*lazy_buffer(r.out));
    for (const Reduction& r : group.reductions) f(*lazy_buffer(r.out));
  };
  for_each_result([&](LazyBuffer& buffer) {
    if (buffer.writer == &group) buffer.writer = nullptr;
    buffer.failed = false;
  });
  if (const auto known = counts.ended.find(who); known != counts.ended.end())
    ++known->second;
  else
    counts.ended.emplace(who, 1);
  try {
    run_group(group);
  } catch (...) {
    for_each_result([](LazyBuffer& buffer) { buffer.failed = true; });
    throw;
  }
}

bool Recorder::State::is_wanted(const Group& group, const Array& out) const {
  long ours = 0;
  const Buffer* buffer = out.buffer().get();
  const auto count = [&](const Array& a) { ours += a.buffer().get() == buffer; };
  if (out.buffer().use_count() == 1) return false;
  for (const Recorded& r : group.ops) count(r.out);
  for (const Array& a : group.arrays) count(a);
  for (const Reduction& r : group.reductions) count(r.out);
  return out.buffer().use_count() > ours;
}

void Recorder::State::run_group(Group& group) {
  Plan plan = make_plan(group, [&](const Array& out) { return is_wanted(group, out); });
  const auto needed = static_cast<std::int64_t>(std::count(plan.needed.begin(), plan.needed.end(), true));
  const auto wanted = needed + static_cast<std::int64_t>(plan.reductions.size());
  counts.never_run += static_cast<std::int64_t>(group.ops.size() + group.reductions.size()) - wanted;
  if (wanted == 0) return;
  for (const int i : plan.reductions) give_memory(*lazy_buffer(group.reductions[at(i)].out));
  plan_reductions(group, plan, device.kind);
  for (const int i : plan.stored) give_memory(*lazy_buffer(group.ops[at(i)].out));
  const auto later = static_cast<std::int64_t>(plan.later.size());
  const bool alone = wanted - later == 1;
  if (!alone) {
    plan_loops(group, plan);
    if (device.kind == DeviceKind::cuda) plan_packs(group, plan);
    if (plan.obstacle.empty()) plan.obstacle = executor.refusal();
    if (!plan.obstacle.empty()) ++counts.unfused[plan.obstacle];
  }
  if (alone || !plan.obstacle.empty()) {
    counts.single += wanted;
    return run_one_by_one(group, plan);
  }
  try {
    launch(group, plan);
  } catch (const BackendError& error) {  // no NVRTC, or a kernel that is new inside a capture
    ++counts.unfused[error.what()];
    counts.single += wanted;
    return run_one_by_one(group, plan);
  }
  for (const int i : plan.later) reduce(group, group.reductions[at(i)]);
  counts.fused += wanted - later;
  counts.single += later;
  counts.not_written += needed - static_cast<std::int64_t>(plan.stored.size());
}

void Recorder::State::reduce(const Group& group, const Reduction& reduction) {
  const Array source = in_memory(group.ops[at(reduction.of)].out);
  const Array* in[] = {&source};
  Array out = in_memory(reduction.out);
  executor.run(op::Reduce{reduction.op.fn, group.reduced_axes}, Ins(in, 1), Outs(&out, 1), Accumulate::none);
}

void Recorder::State::run_one_by_one(const Group& group, const Plan& plan) {
  std::vector<int> reductions = plan.reductions;
  reductions.insert(reductions.end(), plan.later.begin(), plan.later.end());
  std::size_t next = 0;
  const auto reduce_before = [&](std::size_t op) {
    for (; next < reductions.size(); ++next) {
      const Reduction& r = group.reductions[at(reductions[next])];
      if (static_cast<std::size_t>(r.position) > op) return;
      reduce(group, r);
    }
  };
  for (std::size_t i = 0; i < group.ops.size(); ++i) {
    reduce_before(i);
    if (!plan.needed[i]) continue;
    const Recorded& r = group.ops[i];
    give_memory(*lazy_buffer(r.out));
    SmallVector<Array, 4> operands;
    for (const Operand& x : r.operands) operands.push_back(operand_in_memory(group, x));
    SmallVector<const Array*, 4> refs;
    for (const Array& x : operands) refs.push_back(&x);
    Array out = in_memory(r.out);
    executor.run(r.op, Ins(refs.data(), refs.size() - (r.accumulates ? 1 : 0)), Outs(&out, 1),
                 r.accumulates ? Accumulate::first : Accumulate::none);
  }
  reduce_before(group.ops.size());
}

FusedKernel& Recorder::State::kernel_for(const Group& group, const Plan& plan) {
  std::string key = structure_of(group, plan);
  auto found = kernels.find(key);
  if (found == kernels.end()) {
    if (kernels.size() == max_kernels) kernels.clear();
    found = kernels.emplace(std::move(key), std::make_unique<FusedKernel>(build_kernel(group, plan))).first;
  }
  return *found->second;
}

void Recorder::State::launch(const Group& group, const Plan& plan) {
  SmallVector<Array, 2> partials;
  for (const int i : plan.reductions)
    partials.push_back(executor.allocate({plan.partial_shape(), partial_dtype(group.reductions[at(i)])}));

  std::vector<kernel::ArrayArgument> arrays;
  const auto add = [&](const Array& array, const std::int64_t* strides, const std::int64_t* extent,
                       int most_pack) {
    kernel::ArrayArgument& a = arrays.emplace_back();
    const int last = plan.rank - 1, pack = strides[last] != 0 ? most_pack : 1;  // elements are packs
    a.data = array.data<void>();
    for (int i = 0; i < plan.rank; ++i) {
      a.shape[i] = static_cast<std::int32_t>(i == last ? extent[i] / most_pack : extent[i]);
      a.strides[i] = i == last ? strides[i] : strides[i] / pack;
    }
  };
  std::size_t k = 0;
  for (const int i : plan.arrays)
    add(in_memory(group.arrays[at(i)]), plan.strides[k++].data(), plan.extent, plan.pack);
  for (const int i : plan.stored)
    add(in_memory(group.ops[at(i)].out), plan.strides[k++].data(), plan.extent, plan.pack);
  for (const Array& p : partials) add(p, p.layout().strides.begin(), p.shape().begin(), 1);

  std::vector<ScalarArgument> scalars = scalar_arguments(group, plan);
  const auto add_count = [&](std::int64_t n) {
    scalars.push_back({kernel::ScalarType::i32, kernel::from_integer(n)});
  };
  if (plan.axis >= 0) {
    add_count(plan.extent[plan.axis] / plan.pack);
    add_count(plan.partials);
  }
  if (plan.rounds > 1) add_count(plan.threads());
  kernel_for(group, plan).launch(executor, device, plan.grid(), arrays, scalars);
  for (std::size_t i = 0; i < partials.size(); ++i) finish_reduction(group, plan, i, partials[i]);
}

void Recorder::State::finish_reduction(const Group& group, const Plan& plan, std::size_t which,
                                       const Array& partial) {
  const Reduction& reduction = group.reductions[at(plan.reductions[which])];
  const auto& strides = plan.strides[plan.arrays.size() + plan.stored.size() + which];
  Layout kept;
  kept.offset = reduction.out.layout().offset;
  Shape axes;
  for (int i = 0; i < plan.rank; ++i) {
    if (plan.reduced[i]) {
      axes.push_back(i);
    } else {
      kept.shape.push_back(plan.extent[i]);
      kept.strides.push_back(strides[at(i)]);
    }
  }
  Array out = in_memory(reduction.out).with_layout(kept);
  Array wide = out.dtype() == partial.dtype() ? out : executor.allocate({kept.shape, partial.dtype()});
  const Array* in[] = {&partial};
  executor.run(op::Reduce{reduction.op.fn, axes}, Ins(in, 1), Outs(&wide, 1), Accumulate::none);
  if (wide.dtype() == out.dtype()) return;
  const Array* rounded[] = {&wide};
  executor.run(op::Copy{out.dtype()}, Ins(rounded, 1), Outs(&out, 1), Accumulate::none);
}

}  // namespace ferrite::lazy
