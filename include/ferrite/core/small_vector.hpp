// SmallVector: a vector whose first N elements live inline, for the short lists on the path of every op.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace ferrite {

template <class T, std::size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> values) {
    reserve(values.size());
    for (const T& v : values) push_back(v);
  }
  SmallVector(const SmallVector& other) {
    reserve(other.size_);
    for (const T& v : other) push_back(v);
  }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(SmallVector other) noexcept {
    release();
    take(other);
    return *this;
  }
  ~SmallVector() { release(); }

  void reserve(std::size_t n) {
    if (n > capacity_) grow(n);
  }
  T& push_back(T value) {
    if (size_ == capacity_) grow(2 * capacity_);
    return *std::construct_at(data_ + size_++, std::move(value));
  }
  void resize(std::size_t n) {
    reserve(n);
    while (size_ < n) std::construct_at(data_ + size_++);
    while (size_ > n) std::destroy_at(data_ + --size_);
  }
  void clear() { resize(0); }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  operator std::span<T>() { return {data_, size_}; }
  operator std::span<const T>() const { return {data_, size_}; }

 private:
  T* inline_data() { return std::launder(reinterpret_cast<T*>(storage_)); }

  void grow(std::size_t n) {
    T* fresh = std::allocator<T>().allocate(n);
    std::uninitialized_move(data_, data_ + size_, fresh);
    std::destroy(data_, data_ + size_);
    free_heap();
    data_ = fresh;
    capacity_ = n;
  }
  void free_heap() {
    if (data_ != inline_data()) std::allocator<T>().deallocate(data_, capacity_);
  }
  void release() {
    std::destroy(data_, data_ + size_);
    free_heap();
    data_ = inline_data();
    size_ = 0;
    capacity_ = N;
  }
  void take(SmallVector& other) {
    if (other.data_ == other.inline_data()) {
      std::uninitialized_move(other.data_, other.data_ + other.size_, data_);
      size_ = other.size_;
      other.resize(0);
    } else {
      data_ = std::exchange(other.data_, other.inline_data());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
    }
  }

  alignas(T) std::byte storage_[N * sizeof(T)];
  T* data_ = inline_data();
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
};

}  // namespace ferrite
