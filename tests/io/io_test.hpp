// What the tests of the file formats share: a scratch folder, errors whose message is read, raw files.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/core/error.hpp"
#include "ferrite/io/host_tensor.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {

namespace fs = std::filesystem;

inline std::string slurp(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void spill(const fs::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// The little-endian bytes of integers, for files built by hand.
template <class T>
std::string le(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

/// Runs `body`, which must throw an E whose message holds all `parts`.
template <class E, class Body>
void expect_error(Body&& body, std::initializer_list<std::string_view> parts) {
  try {
    body();
  } catch (const E& error) {
    for (const std::string_view part : parts)
      EXPECT_NE(std::string_view(error.what()).find(part), std::string_view::npos)
          << "message: " << error.what() << "\nlacks:   " << part;
    return;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another type of error: " << error.what();
    return;
  }
  ADD_FAILURE() << "no error";
}

inline void expect_equal(const HostTensor& a, const HostTensor& b) {
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.bytes().size(), b.bytes().size());
  EXPECT_TRUE(std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin()));
}

/// Bytes that are different for each element, and valid for bool.
inline HostTensor sample(DType dtype, const Shape& shape) {
  return HostTensor::make(dtype, shape, [&](std::span<std::byte> out) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<std::byte>(dtype == DType::bool_ ? i % 3 == 0 : i * 7 + 1);
  });
}

inline const Shape sample_shapes[] = {{}, {0}, {1}, {5}, {2, 3}, {3, 0, 2}, {2, 1, 3, 2, 1, 2, 1, 2}};

}  // namespace ferrite::testing
