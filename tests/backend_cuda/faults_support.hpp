// What the tests of faults share: the GPU must be usable after each of them, and faults that end CUDA in a
// process are met in a child of their own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::testing {

/// An add and a matmul on the GPU equal the Cpu's: whole numbers, exact in f32 in any order of addition.
inline bool is_usable(Cuda& gpu) {
  Cpu cpu;
  Rng rng(5);
  const auto whole = [&](const Shape& shape) {
    return cast(randint(cpu, shape, rng, -8, 9, DType::i64), DType::f32);
  };
  const auto a = whole({64, 96}), b = whole({96, 80}), c = whole({64, 96});
  const auto x = to(gpu, a), y = to(gpu, b), z = to(gpu, c);
  return to_bytes(x + z) == to_bytes(a + c) && to_bytes(matmul(x, y)) == to_bytes(matmul(a, b));
}

/// The text of the error of this type that f throws; what happened else is a failure that the text says.
template <class E, class F>
std::string text_of(F&& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// For the statement of EXPECT_EXIT: code 0 if f comes to its end.
template <class F>
[[noreturn]] void run_as_child(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    std::cerr << error.what() << std::endl;
    std::_Exit(1);
  }
  std::_Exit(0);
}
inline void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

struct CudaFaults : ::testing::Test {
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");  // a child that starts anew, without this one's CUDA
    if (cuda_device_count() == 0) GTEST_SKIP() << cuda_unavailable_reason();
  }
};

}  // namespace ferrite::testing
