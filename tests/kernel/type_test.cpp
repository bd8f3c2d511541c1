// Types: their names, here and in Warp, and the questions one can ask them.
#include "kernel_test.hpp"

namespace ferrite::kernel {
namespace {

TEST(KernelType, NamesReadBack) {
  for (int i = 0; i < scalar_type_count; ++i) {
    const auto scalar = static_cast<ScalarType>(i);
    const std::string name = to_string(Type::of(scalar));
    const std::string plain = name.starts_with("wp.") ? name.substr(3) : name;
    EXPECT_EQ(type_from_name(plain), Type::of(scalar)) << name;
  }
  for (const int n : {2, 3, 4}) {
    for (const auto scalar : {ScalarType::f16, ScalarType::f32, ScalarType::f64}) {
      for (const Type t : {Type::vector(n, scalar), Type::matrix(n, scalar), Type::quaternion(scalar)})
        EXPECT_EQ(type_from_name(to_string(t).substr(3)), t) << to_string(t);
    }
    for (const auto scalar : {ScalarType::i8, ScalarType::u8, ScalarType::i16, ScalarType::u16,
                              ScalarType::i32, ScalarType::u32, ScalarType::i64, ScalarType::u64})
      EXPECT_EQ(type_from_name(to_string(Type::vector(n, scalar)).substr(3)), Type::vector(n, scalar));
  }
}

TEST(KernelType, ShowsWhatKernelsWrite) {
  EXPECT_EQ(to_string(float_type), "float");
  EXPECT_EQ(to_string(Type::of(ScalarType::u32)), "wp.uint32");
  EXPECT_EQ(to_string(Type::vector(3)), "wp.vec3");
  EXPECT_EQ(to_string(Type::matrix(2, ScalarType::f64)), "wp.mat22d");
  EXPECT_EQ(to_string(Type::vector(3).array(2)), "wp.array2d[wp.vec3]");
  EXPECT_EQ(to_string(Type::structure_of(1).array(1), std::vector<std::string>{"A", "B"}), "wp.array[B]");
}

TEST(KernelType, RefusesOtherNames) {
  for (const char* name : {"vec5", "vec", "mat23", "mat33i", "quati", "float31", "", "vec3x", "transform"})
    EXPECT_EQ(type_from_name(name), std::nullopt) << name;
}

TEST(KernelType, WarpsOtherNames) {
  EXPECT_EQ(type_from_name("vec3f"), Type::vector(3));
  EXPECT_EQ(type_from_name("mat44f"), Type::matrix(4));
  EXPECT_EQ(type_from_name("quatf"), Type::quaternion());
  EXPECT_EQ(type_from_name("float"), float_type);
}

}  // namespace
}  // namespace ferrite::kernel
