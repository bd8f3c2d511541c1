// What fused kernels ask of the CUDA emitter: vectors that are moved whole, products that round by
// themselves.
#include <gtest/gtest.h>

#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/parse.hpp"

namespace ferrite::kernel {

namespace {

Module vectors() {
  return parse(
      "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[wp.vec4], y: wp.array[wp.vec3], n: "
      "wp.array[wp.int64]):\n"
      "    i = wp.tid()\n    v = x[i]\n    x[i] = wp.vec4(v[0] * v[1] + v[2], v[1], v[2], v[3])\n"
      "    y[i] = wp.vec3(1.0, 2.0, 3.0)\n    n[i] = wp.int64(v[0])\n");
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST(EmitOptions, VectorsAreAlignedWhereAsked) {
  const std::string plain = emit_cuda(vectors());
  EXPECT_FALSE(has(plain, "__align__"));
  EmitOptions options;
  options.aligned_vectors = true;
  const std::string aligned = emit_cuda(vectors(), options);
  EXPECT_TRUE(has(aligned, "struct __align__(16) vec4 {"));
  EXPECT_TRUE(has(aligned, "struct vec3 {"));
}

TEST(EmitOptions, ProductsRoundByThemselvesWhereAsked) {
  EXPECT_TRUE(has(emit_cuda(vectors()), "v[0] * v[1] + v[2]"));
  EmitOptions options;
  options.separate_products = true;
  EXPECT_TRUE(has(emit_cuda(vectors(), options), "__fmul_rn(v[0], v[1]) + v[2]"));
  EXPECT_FALSE(has(emit_cpp(vectors(), options), "__fmul_rn"));
}

TEST(EmitOptions, BoundsOfWideIntegersAreFloats) {
  EXPECT_TRUE(has(emit_cuda(vectors()), "if (x >= 9.223372036854776e+18f) return 9223372036854775807ll;"));
}

}  // namespace ferrite::kernel
