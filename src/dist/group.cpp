#include "ferrite/dist/group.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "core/to_number.hpp"
#include "ferrite/dist/collectives.hpp"

namespace ferrite::dist {

namespace {

void check_reduction(std::string_view call, ReduceOp op, DType dtype) {
  const bool adds = op == ReduceOp::sum || op == ReduceOp::mean;
  if (is_storage(dtype))
    throw DTypeError(fmt::format("[{}] {} of {}: a dtype for storage cannot be reduced; cast it first", call,
                                 to_string(op), to_string(dtype)));
  if (dtype == DType::bool_ && adds)
    throw DTypeError(
        fmt::format("[{}] {} of bool: bool has max (any rank) and min (all ranks); cast it to count", call,
                    to_string(op)));
  if (op == ReduceOp::mean && !is_floating(dtype))
    throw DTypeError(fmt::format("[{}] mean of {}: needs floats; cast it first", call, to_string(dtype)));
}

void check_equal(std::string_view call, const Array& in, const Array& out, const Shape& needed) {
  if (out.dtype() != in.dtype())
    throw DTypeError(fmt::format("[{}] in is {} and out is {}: needs the same dtype", call,
                                 to_string(in.dtype()), to_string(out.dtype())));
  if (!(out.shape() == needed))
    throw ShapeError(fmt::format("[{}] in {}, out {}: out needs the shape {}", call, to_string(in.shape()),
                                 to_string(out.shape()), to_string(needed)));
}

std::string reduction_call(std::string_view name, ReduceOp op, const Array& in) {
  return fmt::format("{}({}) of {}", name, to_string(op), to_string(in.meta()));
}

}  // namespace

std::string_view to_string(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::mean:
      return "mean";
    case ReduceOp::max:
      return "max";
    default:
      return "min";
  }
}

std::chrono::milliseconds default_timeout() {
  const char* const given = std::getenv("FERRITE_DIST_TIMEOUT");
  if (given == nullptr || *given == '\0') return std::chrono::minutes(10);
  const auto seconds = to_number<double>(given);
  if (!seconds || !(*seconds >= 0.001 && *seconds <= 1e9))
    throw ValueError(
        fmt::format("[dist] FERRITE_DIST_TIMEOUT={}: needs seconds above 0, for example 600", given));
  return std::chrono::milliseconds(std::llround(*seconds * 1000));
}

/// Of about thirty years: a clock can still add it to the time.
constexpr std::chrono::milliseconds longest_timeout{std::int64_t{1'000'000'000} * 1000};

void Group::set_timeout(std::chrono::milliseconds timeout) {
  if (timeout.count() <= 0) throw ValueError("[dist] set_timeout: the timeout must be above 0");
  timeout_ = std::min(timeout, longest_timeout);
}

void Group::check_array(std::string_view op, std::string_view name, const Array& array) const {
  if (!array.defined()) throw ValueError(fmt::format("[{}] {} is undefined: give it memory first", op, name));
  if (!takes(array.device()))
    throw DeviceError(fmt::format("[{}] {} is on {}: this group ({}) does not take its memory", op, name,
                                  to_string(array.device()), describe()));
  if (!array.layout().is_contiguous())
    throw ValueError(fmt::format("[{}] {} is not dense: copy it first", op, name));
}

void Group::check_peer(std::string_view op, int peer) const {
  if (peer < 0 || peer >= size())
    throw ValueError(fmt::format("[{}] there is no rank {}: ranks are 0 to {}", op, peer, size() - 1));
}

void Group::all_reduce(const Array& in, const Array& out, ReduceOp op) {
  check_array("all_reduce", "in", in);
  check_array("all_reduce", "out", out);
  check_equal("all_reduce", in, out, in.shape());
  check_reduction("all_reduce", op, in.dtype());
  run_all_reduce(reduction_call("all_reduce", op, in), in, out, op);
}

void Group::reduce_scatter(const Array& in, const Array& out, ReduceOp op) {
  check_array("reduce_scatter", "in", in);
  check_array("reduce_scatter", "out", out);
  check_equal("reduce_scatter", in, out, detail::part_shape(in.shape(), size()));
  check_reduction("reduce_scatter", op, in.dtype());
  run_reduce_scatter(reduction_call("reduce_scatter", op, in), in, out, op);
}

void Group::all_gather(const Array& in, const Array& out) {
  check_array("all_gather", "in", in);
  check_array("all_gather", "out", out);
  check_equal("all_gather", in, out, detail::gathered_shape(in.shape(), size()));
  run_all_gather(fmt::format("all_gather of {}", to_string(in.meta())), in, out);
}

void Group::broadcast(const Array& array, int root) {
  check_array("broadcast", "the array", array);
  check_peer("broadcast", root);
  run_broadcast(fmt::format("broadcast of {} from rank {}", to_string(array.meta()), root), array, root);
}

void Group::barrier() { run_barrier("barrier"); }

void Group::send(const Array& array, int to) {
  check_array("send", "the array", array);
  check_peer("send", to);
  if (to == rank()) throw ValueError(fmt::format("[send] rank {} sends to itself: copy the array", to));
  run_send(array, to);
}

void Group::recv(const Array& array, int from) {
  check_array("recv", "the array", array);
  check_peer("recv", from);
  if (from == rank())
    throw ValueError(fmt::format("[recv] rank {} receives from itself: copy the array", from));
  run_recv(array, from);
}

namespace detail {

Array host_array(const Meta& meta) {
  return {host_allocator().allocate(meta.bytes()), Layout::contiguous(meta.shape), meta.dtype};
}

Shape part_shape(const Shape& shape, int parts) {
  if (shape.rank() == 0 || shape[0] % parts != 0)
    throw ShapeError(
        fmt::format("[reduce_scatter] {}: axis 0 must have a multiple of {} elements, one part for each rank",
                    to_string(shape), parts));
  Shape part = shape;
  part[0] /= parts;
  return part;
}

Shape gathered_shape(const Shape& shape, int parts) {
  if (shape.rank() == 0) return {parts};
  Shape all = shape;
  all[0] *= parts;
  return all;
}

}  // namespace detail

}  // namespace ferrite::dist
