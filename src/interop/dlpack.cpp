// One allocation per export: the structure, shape and strides, and the array that keeps the buffer alive.
#include "ferrite/interop/dlpack.hpp"

#include <fmt/format.h>

#include <array>
#include <memory>

#include "ferrite/backend/foreign_use.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::detail {
namespace {

DLDataType dl_type(DType dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * size_of(dtype));
  switch (dtype) {
    case DType::f16:
    case DType::f32:
    case DType::f64:
      return {kDLFloat, bits, 1};
    case DType::bf16:
      return {kDLBfloat, bits, 1};
    case DType::i32:
    case DType::i64:
    case DType::i8:
      return {kDLInt, bits, 1};
    case DType::u8:
    case DType::u16:
    case DType::u32:
      return {kDLUInt, bits, 1};
    case DType::bool_:
      return {kDLBool, bits, 1};
  }
  return {};
}

template <class Managed>
struct Export {
  Managed managed{};
  std::array<std::int64_t, max_rank> shape{}, strides{};
  Array array;
};

template <class Managed>
Managed* make(const Array& array) {
  std::unique_ptr<Export<Managed>> owner(new Export<Managed>{{}, {}, {}, array});
  const Layout& layout = array.layout();
  for (int i = 0; i < layout.shape.rank(); ++i) {
    if (layout.strides[i] < 0)
      throw ValueError(fmt::format(
          "[to_dlpack] {} with strides {}: other libraries cannot go backwards; export a clone() of it",
          to_string(layout.shape), to_string(layout.strides)));
    owner->shape[static_cast<std::size_t>(i)] = layout.shape[i];
    owner->strides[static_cast<std::size_t>(i)] = layout.strides[i];
  }
  const Device device = array.device();
  owner->managed.dl_tensor = {array.data<void>(),
                              {device.kind == DeviceKind::cuda ? kDLCUDA : kDLCPU, device.index},
                              layout.shape.rank(),
                              dl_type(array.dtype()),
                              owner->shape.data(),
                              owner->strides.data(),
                              0};
  owner->managed.manager_ctx = owner.get();
  owner->managed.deleter = [](Managed* self) {
    auto* const own = static_cast<Export<Managed>*>(self->manager_ctx);
    cuda::wait_for_consumer(own->array);
    delete own;
  };
  return &owner.release()->managed;
}

}  // namespace

DLManagedTensor* export_dlpack(const Array& array) { return make<DLManagedTensor>(array); }

DLManagedTensorVersioned* export_dlpack_versioned(const Array& array) {
  DLManagedTensorVersioned* managed = make<DLManagedTensorVersioned>(array);
  managed->version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  return managed;
}

}  // namespace ferrite::detail
