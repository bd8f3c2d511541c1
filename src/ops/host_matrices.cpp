// Matrices in host memory, and the shape rules of linear algebra.
#include "ferrite/ops/host_matrices.hpp"

#include <fmt/format.h>

#include "ferrite/tensor/tensor_data.hpp"

namespace ferrite::detail {

HostMatrices::HostMatrices(const Meta& meta, const std::byte* source) {
  const Shape& shape = meta.shape;
  const int rank = shape.rank();
  rows = rank > 1 ? shape[rank - 2] : 1;
  columns = rank > 0 ? shape[rank - 1] : 1;
  if (rank > 2) batch = batch_of(shape);
  count = batch.numel();
  values.resize(static_cast<std::size_t>(shape.numel()));
  convert_elements(meta.dtype, source, DType::f64, values.data(), shape.numel());
}

std::vector<std::byte> HostMatrices::bytes(DType dtype) const {
  std::vector<std::byte> result(values.size() * size_of(dtype));
  convert_elements(DType::f64, values.data(), dtype, result.data(), static_cast<std::int64_t>(values.size()));
  return result;
}

void check_matrices(std::string_view op, std::string_view what, const Meta& x) {
  if (x.dtype != DType::f32 && x.dtype != DType::f64)
    throw DTypeError(fmt::format("[{}] {} is {}: needs f32 or f64, e.g. cast(x, DType::f32)", op, what,
                                 to_string(x.dtype)));
  if (x.shape.rank() < 2)
    throw ShapeError(fmt::format("[{}] {} {}: needs at least two axes", op, what, to_string(x.shape)));
}

void check_square(std::string_view op, std::string_view what, const Meta& x) {
  check_matrices(op, what, x);
  if (x.shape[x.shape.rank() - 2] != x.shape.back())
    throw ShapeError(fmt::format("[{}] {} {}: its matrices must be square", op, what, to_string(x.shape)));
}

Shape batch_of(const Shape& shape) {
  Shape batch = shape;
  for (int i = 0; i < 2; ++i) batch.erase(batch.rank() - 1);
  return batch;
}

Shape with_matrix(const Shape& shape, std::int64_t rows, std::int64_t columns) {
  Shape result = batch_of(shape);
  result.push_back(rows);
  result.push_back(columns);
  return result;
}

Shape broadcast_batches(std::string_view op, std::string_view left, const Shape& a, std::string_view right,
                        const Shape& b) {
  try {
    return broadcast(op, batch_of(a), batch_of(b));
  } catch (const ShapeError&) {
    throw ShapeError(fmt::format("[{}] {} {} and {} {}: batch axes {} and {} must be equal, or 1", op, left,
                                 to_string(a), right, to_string(b), to_string(batch_of(a)),
                                 to_string(batch_of(b))));
  }
}

void throw_bad_matrix(std::string_view op, const Shape& batch, std::int64_t index, std::string_view what) {
  if (batch.rank() == 0) throw ValueError(fmt::format("[{}] the matrix is {}", op, what));
  Shape place = batch;
  for (int i = batch.rank() - 1; i >= 0; --i) {
    place[i] = index % batch[i];
    index /= batch[i];
  }
  throw ValueError(
      fmt::format("[{}] matrix {} of the batch {} is {}", op, to_string(place), to_string(batch), what));
}

}  // namespace ferrite::detail
