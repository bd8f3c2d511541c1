// Shapes, broadcasting and axis checks, with the messages users see when they do not fit.
#include "ferrite/core/shape.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

[[noreturn]] void throw_rank(std::size_t rank) {
  throw ShapeError(fmt::format("[shape] rank {}: at most {} axes are supported", rank, max_rank));
}

}  // namespace

Shape::Shape(std::span<const std::int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  if (dims.size() > max_rank) throw_rank(dims.size());
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

Shape Shape::filled(int rank, std::int64_t value) {
  if (rank < 0 || rank > max_rank) throw_rank(static_cast<std::size_t>(rank));
  Shape shape;
  shape.rank_ = rank;
  std::fill_n(shape.dims_.begin(), rank, value);
  return shape;
}

void Shape::push_back(std::int64_t dim) { insert(rank_, dim); }

void Shape::insert(int position, std::int64_t dim) {
  if (rank_ == max_rank) throw_rank(max_rank + 1);
  if (position < 0 || position > rank_) {
    throw ShapeError(
        fmt::format("[shape] insert at {} into rank {}: must be in [0, {}]", position, rank_, rank_));
  }
  const auto at = dims_.begin() + position;
  std::copy_backward(at, dims_.begin() + rank_, dims_.begin() + rank_ + 1);
  *at = dim;
  ++rank_;
}

void Shape::erase(int position) {
  if (position < 0 || position >= rank_) {
    throw ShapeError(fmt::format("[shape] erase at {} from rank {}: no such axis", position, rank_));
  }
  const auto at = dims_.begin() + position;
  std::copy(at + 1, dims_.begin() + rank_, at);
  --rank_;
}

std::string to_string(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", "));
}

void check_extents(std::string_view op, const Shape& shape) {
  // An empty extent counts as 1, so that strides and partial products of empty shapes cannot overflow either.
  std::int64_t bytes = 8;
  for (std::int64_t extent : shape) {
    if (extent < 0) {
      throw ShapeError(fmt::format("[{}] shape {}: extents must not be negative", op, to_string(shape)));
    }
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes)) {
      throw ShapeError(fmt::format("[{}] shape {}: size must stay below 2^63 bytes", op, to_string(shape)));
    }
  }
}

Shape broadcast(std::string_view op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  const bool a_longer = a.rank() >= b.rank();
  const Shape& shorter = a_longer ? b : a;
  Shape result = a_longer ? a : b;
  const int lead = result.rank() - shorter.rank();
  for (int i = 0; i < shorter.rank(); ++i) {
    std::int64_t& extent = result[lead + i];
    if (extent == 1) {
      extent = shorter[i];
    } else if (shorter[i] != 1 && shorter[i] != extent) {
      throw ShapeError(fmt::format(
          "[{}] shapes {} and {}: extents {} and {} of axis {} differ and neither is 1", op, to_string(a),
          to_string(b), a_longer ? extent : shorter[i], a_longer ? shorter[i] : extent, i - shorter.rank()));
    }
  }
  return result;
}

int normalize_axis(std::string_view op, std::int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  if (rank == 0) throw ShapeError(fmt::format("[{}] axis {} of rank 0: a scalar has no axes", op, axis));
  throw ShapeError(
      fmt::format("[{}] axis {} of rank {}: must be in [{}, {}]", op, axis, rank, -rank, rank - 1));
}

Shape normalize_axes(std::string_view op, const Shape& axes, int rank) {
  bool chosen[max_rank] = {};
  for (std::int64_t given : axes) {
    const int axis = normalize_axis(op, given, rank);
    if (chosen[axis]) {
      throw ShapeError(
          fmt::format("[{}] axes {} of rank {}: axis {} is named twice", op, to_string(axes), rank, axis));
    }
    chosen[axis] = true;
  }
  Shape result;
  for (int i = 0; i < rank; ++i) {
    if (axes.empty() || chosen[i]) result.push_back(i);
  }
  return result;
}

}  // namespace ferrite
