// Descriptors of cuDNN's graph interface: created by type, filled with attributes, finalised, destroyed here.
#pragma once

#include <cudnn.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "backend_cuda/runtime/libraries.hpp"

namespace ferrite::cuda {

class DnnDescriptor {
 public:
  explicit DnnDescriptor(cudnnBackendDescriptorType_t type) {
    check(cudnnBackendCreateDescriptor(type, &descriptor_), "cudnn");
  }
  DnnDescriptor(DnnDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  DnnDescriptor& operator=(DnnDescriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~DnnDescriptor() {
    if (descriptor_) static_cast<void>(cudnnBackendDestroyDescriptor(descriptor_));
  }

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::span<const T> values) {
    check(cudnnBackendSetAttribute(descriptor_, name, type, static_cast<std::int64_t>(values.size()),
                                   values.data()),
          "cudnn");
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, std::span<const T>(&value, 1));
  }
  void set(cudnnBackendAttributeName_t name, const DnnDescriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.descriptor_);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values) {
    set(name, CUDNN_TYPE_INT64, values);
  }

  /// False if cuDNN does not support the description.
  [[nodiscard]] bool finalize() { return cudnnBackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS; }

  template <class T>
  T get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    T value{};
    std::int64_t count = 0;
    check(cudnnBackendGetAttribute(descriptor_, name, type, 1, &count, &value), "cudnn");
    return value;
  }
  /// At most `most` values; none if the attribute has none.
  template <class T>
  std::vector<T> list(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      std::int64_t most) const {
    std::vector<T> values(static_cast<std::size_t>(most));
    std::int64_t count = 0;
    if (cudnnBackendGetAttribute(descriptor_, name, type, most, &count, values.data()) !=
        CUDNN_STATUS_SUCCESS)
      count = 0;
    values.resize(static_cast<std::size_t>(std::min(count, most)));
    return values;
  }
  /// The same for descriptors, which cuDNN fills in where it finds empty ones.
  std::vector<DnnDescriptor> list(cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                  std::int64_t most) const {
    std::vector<DnnDescriptor> values;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (std::int64_t i = 0; i < most; ++i) raw.push_back(values.emplace_back(type).get());
    std::int64_t count = 0;
    if (cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &count,
                                 raw.data()) != CUDNN_STATUS_SUCCESS)
      count = 0;
    values.erase(values.begin() + std::min(count, most), values.end());
    return values;
  }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

}  // namespace ferrite::cuda
