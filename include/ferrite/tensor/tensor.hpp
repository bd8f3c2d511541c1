// Tensor<B>: a value. Copying shares the buffer; views are metadata. A tensor holds a copy of its backend if
// that is a handle (backend/handle.hpp; all of the library's are), and a pointer to any other.
#pragma once

#include <initializer_list>
#include <iosfwd>
#include <string>
#include <vector>

#include "ferrite/backend/evaluate.hpp"
#include "ferrite/backend/handle.hpp"
#include "ferrite/core/stream.hpp"

namespace ferrite {

class Index;

namespace detail {
/// Stands for gradients on a backend that does not record, so that the compiler prints only one error line.
struct NothingRecorded {
  template <class T>
  T of(const T& leaf) const;
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};
}  // namespace detail

/// A shape, a dtype, and a buffer that copies and views share. Ops do not change it: x += y binds x to a new
/// value. Ops are functions (ops/) and run on the tensor's backend.
template <class B>
class Tensor {
 public:
  using Backend = B;
  using Primitive = typename B::Primitive;

  Tensor() = default;
  Tensor(B& backend, Primitive primitive) : primitive_(std::move(primitive)), backend_(backend) {}
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) = default;
  // Only of variables: x[0] = y would change nothing, so it does not compile. assign() writes into tensors.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & = default;

  bool defined() const { return backend_.defined(); }
  const Shape& shape() const { return primitive_.layout().shape; }
  std::int64_t size(int axis) const { return shape()[normalize_axis("size", axis, rank())]; }
  int rank() const { return shape().rank(); }
  std::int64_t numel() const { return shape().numel(); }
  DType dtype() const { return primitive_.dtype(); }
  Meta meta() const { return {shape(), dtype()}; }
  const Layout& layout() const { return primitive_.layout(); }
  Device device() const { return backend().device(); }

  /// The backend that runs the tensor's ops; throws DeviceError for an undefined tensor. It belongs to the
  /// tensor: copy it (`B b = x.backend();`) to keep it longer.
  B& backend() const {
    if (!backend_.defined())
      throw DeviceError("[tensor] undefined: a default-constructed tensor holds no data");
    return *backend_;
  }
  const Primitive& primitive() const { return primitive_; }
  Primitive& primitive() { return primitive_; }

  /// All elements in row-major order, converted to T.
  template <class T = float>
  std::vector<T> to_vector() const;
  /// The element of a tensor with one element; ShapeError otherwise. A double is exact for every element
  /// except an i64 beyond 2^53.
  template <class T = double>
  T item() const;

  /// x[i], x[{Range(0, 2), 3}], x[mask]: ops/indexing.hpp.
  Tensor operator[](std::int64_t index) const;
  Tensor operator[](std::initializer_list<Index> places) const;
  Tensor operator[](const Tensor& mask) const;

  /// Gradients of all leaves that this scalar depends on (autodiff.hpp).
  auto backward() const {
    constexpr bool records = requires(B & b, const Primitive& p) { b.backward(p); };
    static_assert(records, "backward needs a backend that records: Autodiff<B> in place of B");
    if constexpr (records)
      return backend().backward(primitive_);
    else
      return detail::NothingRecorded{};
  }
  /// The value without its history, on the same backend.
  Tensor detach() const {
    if constexpr (requires(B & b, const Primitive& p) { b.detach(p); })
      return {backend(), backend().detach(primitive_)};
    else
      return *this;
  }

 private:
  Primitive primitive_;
  BackendRef<B> backend_;
};

/// Runs one op on tensors of one backend; returns every output.
template <class Op, class B, class... Rest>
Tensors<B> eval_all(const Op& op, const Tensor<B>& first, const Rest&... rest) {
  const typename B::Primitive* in[] = {&first.primitive(), &rest.primitive()...};
  B& b = first.backend();
  if ((... || !same_backend(rest.backend(), b))) detail::throw_backend_mismatch(op_name(op));
  auto results = evaluate(b, op, Refs<typename B::Primitive>(in, 1 + sizeof...(rest)));
  Tensors<B> out;
  for (auto& r : results) out.push_back(Tensor<B>(b, std::move(r)));
  return out;
}

/// The first output of an op, which most front functions return.
template <class Op, class B, class... Rest>
Tensor<B> eval(const Op& op, const Tensor<B>& first, const Rest&... rest) {
  const typename B::Primitive* in[] = {&first.primitive(), &rest.primitive()...};
  B& b = first.backend();
  if ((... || !same_backend(rest.backend(), b))) detail::throw_backend_mismatch(op_name(op));
  auto results = evaluate(b, op, Refs<typename B::Primitive>(in, 1 + sizeof...(rest)));
  return Tensor<B>(b, std::move(results[0]));
}

/// The same for a list whose length is known at run time (cat, optional inputs, multi-tensor ops).
template <class Op, class B>
Tensors<B> eval_list(const Op& op, TensorSpan<B> in) {
  if (in.empty()) throw ShapeError("[" + std::string(op_name(op)) + "] needs at least one tensor, got none");
  B& b = in[0].backend();
  SmallVector<const typename B::Primitive*, 6> refs;
  for (const Tensor<B>& t : in) {
    if (!same_backend(t.backend(), b)) detail::throw_backend_mismatch(op_name(op));
    refs.push_back(&t.primitive());
  }
  auto results = evaluate(b, op, Refs<typename B::Primitive>(refs.data(), refs.size()));
  Tensors<B> out;
  for (auto& r : results) out.push_back(Tensor<B>(b, std::move(r)));
  return out;
}

/// An op without inputs: creation.
template <class Op, class B>
Tensor<B> create(B& b, const Op& op) {
  auto results = evaluate(b, op, Refs<typename B::Primitive>(nullptr, 0));
  return Tensor<B>(b, std::move(results[0]));
}

/// Printed like NumPy: nested brackets, aligned columns, long axes elided in the middle.
template <class B>
std::string to_string(const Tensor<B>& tensor);
template <class B>
std::ostream& operator<<(std::ostream& out, const Tensor<B>& tensor);

}  // namespace ferrite
