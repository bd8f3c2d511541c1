// The collectives of a group on tensors of any backend. Views that are not dense are copied first. Memory
// that the group does not take (that of a GPU, for a group of the CPU) goes through the host. Results carry
// no gradients.
#pragma once

#include "ferrite/backend/record.hpp"
#include "ferrite/dist/group.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite::dist {

namespace detail {

/// Dense memory of the host.
FERRITE_API Array host_array(const Meta& meta);
/// `shape` with axis 0 divided by `parts`, or multiplied. A 0-d tensor is gathered to one axis. ShapeError if
/// it cannot be divided.
FERRITE_API Shape part_shape(const Shape& shape, int parts);
FERRITE_API Shape gathered_shape(const Shape& shape, int parts);

/// The elements of a tensor as the group takes them.
template <class B>
Array source_of(const Group& group, const Tensor<B>& x) {
  auto& owner = ferrite::detail::kernel_backend(x.backend());
  const Array dense = ferrite::detail::contiguous(owner, ferrite::detail::kernel_array(x.primitive()));
  if (group.takes(dense.device())) return ferrite::detail::array_in_memory(owner, dense);
  const Array host = host_array(dense.meta());
  owner.copy_to_host(dense, host.data());
  return host;
}

/// Where the group writes: the array itself, or memory of the host that commit copies to the array.
template <class K>
class Target {
 public:
  Target(const Group& group, K& owner, const Array& array) : owner_(owner), array_(array) {
    // What follows a buffer elsewhere (Parity) learns only of copies that its backend makes.
    const bool direct =
        array.layout().is_contiguous() && group.takes(array.device()) && !array.buffer()->shadow;
    written_ = direct ? ferrite::detail::array_in_memory(owner, array) : host_array(array.meta());
    copies_ = !direct;
  }
  const Array& array() const { return written_; }
  void commit() {
    if (copies_ && array_.layout().is_contiguous()) {
      owner_.copy_from_host(array_, written_.data());
    } else if (copies_) {
      const Array dense = owner_.allocate(array_.meta());
      owner_.copy_from_host(dense, written_.data());
      const Array* in[] = {&dense};
      evaluate_in_place(owner_, op::Copy{array_.dtype()}, Ins(in, 1), Outs(&array_, 1));
    }
    array_.buffer()->bump_version();
  }

 private:
  K& owner_;
  Array array_, written_;
  bool copies_;
};

/// run(array) writes a new tensor.
template <class B, class Run>
Tensor<B> write_new(const Group& group, B& backend, const Meta& meta, Run&& run) {
  Tensor<B> result = empty(backend, meta.shape, meta.dtype);
  Target target(group, ferrite::detail::kernel_backend(backend),
                ferrite::detail::kernel_array(result.primitive()));
  run(target.array());
  target.commit();
  return result;
}
/// What was recorded (Lazy) and reads the old elements runs first. Who can record a step holds nothing back.
template <class K>
void before_overwriting(K& owner) {
  if (!can_record(owner)) owner.synchronize();
}
/// run(source, array) reads x and overwrites it.
template <class B, class Run>
void overwrite(const Group& group, const Tensor<B>& x, Run&& run) {
  auto& owner = ferrite::detail::kernel_backend(x.backend());
  before_overwriting(owner);
  const Array source = source_of(group, x);
  Target target(group, owner, ferrite::detail::kernel_array(x.primitive()));
  run(source, target.array());
  target.commit();
}

}  // namespace detail

/// The reduction of every rank's x, on all ranks: Group::all_reduce.
template <class B>
Tensor<B> all_reduce(Group& group, const Tensor<B>& x, ReduceOp op = ReduceOp::sum) {
  const Array source = detail::source_of(group, x);
  return detail::write_new(group, x.backend(), x.meta(),
                           [&](const Array& out) { group.all_reduce(source, out, op); });
}
/// The same into the buffer of x, so that every tensor that shares it sees the result. It does not take part
/// in gradients.
template <class B>
void all_reduce_in_place(Group& group, const Tensor<B>& x, ReduceOp op = ReduceOp::sum) {
  detail::overwrite(group, x, [&](const Array& in, const Array& out) { group.all_reduce(in, out, op); });
}

/// x is cut along axis 0 into as many equal parts as there are ranks (ShapeError if it cannot be); each rank
/// gets the reduction of its own part.
template <class B>
Tensor<B> reduce_scatter(Group& group, const Tensor<B>& x, ReduceOp op = ReduceOp::sum) {
  const Meta part{detail::part_shape(x.shape(), group.size()), x.dtype()};
  const Array source = detail::source_of(group, x);
  return detail::write_new(group, x.backend(), part,
                           [&](const Array& out) { group.reduce_scatter(source, out, op); });
}

/// Every rank's x, one after the other along axis 0. 0-d tensors give one axis.
template <class B>
Tensor<B> all_gather(Group& group, const Tensor<B>& x) {
  const Meta all{detail::gathered_shape(x.shape(), group.size()), x.dtype()};
  const Array source = detail::source_of(group, x);
  return detail::write_new(group, x.backend(), all, [&](const Array& out) { group.all_gather(source, out); });
}

/// The x of rank `root`, on all ranks. The others give a tensor of the same shape and dtype.
template <class B>
Tensor<B> broadcast(Group& group, const Tensor<B>& x, int root = 0) {
  if (group.rank() == root) {
    group.broadcast(detail::source_of(group, x), root);
    return x.detach();
  }
  return detail::write_new(group, x.backend(), x.meta(),
                           [&](const Array& out) { group.broadcast(out, root); });
}
/// The same into the buffer of x: parameters of a model, say.
template <class B>
void broadcast_in_place(Group& group, const Tensor<B>& x, int root = 0) {
  if (group.rank() == root) return group.broadcast(detail::source_of(group, x), root);
  detail::overwrite(group, x, [&](const Array&, const Array& out) { group.broadcast(out, root); });
}

/// x to rank `to`, which calls recv. Both wait for each other (Group::send).
template <class B>
void send(Group& group, const Tensor<B>& x, int to) {
  group.send(detail::source_of(group, x), to);
}
/// A tensor of this shape and dtype from rank `from`.
template <class B>
Tensor<B> recv(Group& group, B& backend, const Meta& meta, int from) {
  return detail::write_new(group, backend, meta, [&](const Array& out) { group.recv(out, from); });
}

}  // namespace ferrite::dist
