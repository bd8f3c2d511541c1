// DLPack: the structures describe the tensor's own memory, which lives as long as the consumer wants.
#include "ferrite/interop/dlpack.hpp"

#include <gtest/gtest.h>

#include <cstddef>

#include "ferrite/models/priors/priors.h"
#include "ferrite/ops/views.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

TEST(Dlpack, StructuresHaveTheLayoutOfTheSpecification) {
  static_assert(sizeof(DLDevice) == 8 && sizeof(DLDataType) == 4);
  static_assert(sizeof(DLTensor) == 48 && offsetof(DLTensor, shape) == 24 &&
                offsetof(DLTensor, byte_offset) == 40);
  static_assert(sizeof(DLManagedTensor) == 64 && offsetof(DLManagedTensor, deleter) == 56);
  static_assert(offsetof(DLManagedTensorVersioned, flags) == 24 &&
                offsetof(DLManagedTensorVersioned, dl_tensor) == 32);
}

TEST(Dlpack, SharesMemoryOfAnyLayoutAndKeepsItAlive) {
  Cpu b;
  const std::size_t before = b.memory_stats().in_use;
  DLManagedTensor* managed = nullptr;
  {
    const auto x = transpose(from_vector(b, std::vector<float>{0, 1, 2, 3, 4, 5}, {2, 3}), 0, 1);
    managed = to_dlpack(x);
    EXPECT_EQ(managed->dl_tensor.data, x.primitive().data<void>());
  }
  const DLTensor& t = managed->dl_tensor;
  EXPECT_GT(b.memory_stats().in_use, before);
  ASSERT_EQ(t.ndim, 2);
  EXPECT_EQ(t.shape[0], 3);
  EXPECT_EQ(t.strides[0], 1);
  EXPECT_EQ(t.strides[1], 3);
  EXPECT_EQ(t.device.device_type, kDLCPU);
  EXPECT_EQ(t.dtype.code, kDLFloat);
  EXPECT_EQ(t.dtype.bits, 32);
  EXPECT_EQ(static_cast<const float*>(t.data)[2 * t.strides[0] + 1 * t.strides[1]], 5);
  managed->deleter(managed);
  EXPECT_EQ(b.memory_stats().in_use, before);
}

TEST(Dlpack, WhatGoesBackwardsIsRefused) {
  Cpu b;
  const auto x = flip(ones(b, {2, 3}), 0);
  EXPECT_THROW(to_dlpack(x), ValueError);
  DLManagedTensor* managed = to_dlpack(clone(x));
  managed->deleter(managed);
}

TEST(Dlpack, NamesEveryDtypeAndItsVersion) {
  Cpu b;
  const std::pair<DType, DLDataTypeCode> known[] = {
      {DType::f32, kDLFloat}, {DType::f64, kDLFloat}, {DType::f16, kDLFloat}, {DType::bf16, kDLBfloat},
      {DType::i32, kDLInt},   {DType::i64, kDLInt},   {DType::u8, kDLUInt},   {DType::bool_, kDLBool}};
  for (const auto& [dtype, code] : known) {
    DLManagedTensorVersioned* managed = to_dlpack_versioned(zeros(b, {2}, dtype));
    EXPECT_EQ(managed->version.major, 1u);
    EXPECT_EQ(managed->flags, 0u);
    EXPECT_EQ(managed->dl_tensor.dtype.code, code);
    EXPECT_EQ(managed->dl_tensor.dtype.bits, 8 * size_of(dtype));
    managed->deleter(managed);
  }
}

TEST(Dlpack, TakesTensorsOfDecoratedBackends) {
  Autodiff<Cpu> b;
  DLManagedTensor* managed = to_dlpack(ones(b, {3}));
  EXPECT_EQ(static_cast<float*>(managed->dl_tensor.data)[2], 1);
  managed->deleter(managed);
}

TEST(PriorsCInterface, MakesTensorsOrSaysWhatIsWrong) {
  DLManagedTensor* out[FERRITE_PRIOR_TENSORS] = {};
  ASSERT_EQ(ferrite_priors_generate("cpu", R"({"rows": 64, "post": {"classes": 2}})", 1, 0, 3, out), 0)
      << ferrite_priors_error();
  EXPECT_EQ(out[0]->dl_tensor.ndim, 3);
  EXPECT_EQ(out[0]->dl_tensor.shape[1], 64);
  EXPECT_EQ(out[1]->dl_tensor.dtype.code, kDLInt);
  EXPECT_EQ(out[2]->dl_tensor.dtype.code, kDLBool);
  for (DLManagedTensor* managed : out) managed->deleter(managed);
  EXPECT_EQ(ferrite_priors_generate("cpu", R"({"rowz": 64})", 1, 0, 3, out), 1);
  EXPECT_NE(std::string(ferrite_priors_error()).find("rowz: unknown key"), std::string::npos);
  EXPECT_EQ(ferrite_priors_generate("gpu", "{}", 1, 0, 3, out), 1);
  EXPECT_NE(std::string(ferrite_priors_error()).find("[backend] 'gpu': must be one of cpu, cpu-openblas"),
            std::string::npos);
  EXPECT_EQ(ferrite_priors_generate(nullptr, "{}", 1, 0, 3, out), 1);
  EXPECT_EQ(ferrite_priors_generate("cpu", nullptr, 1, 0, 3, out), 1);
  EXPECT_EQ(ferrite_priors_generate("cpu", "{}", 1, 0, 3, nullptr), 1);
  EXPECT_NE(std::string(ferrite_priors_error()).find("null pointer"), std::string::npos);
}

}  // namespace
}  // namespace ferrite
