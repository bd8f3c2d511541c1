// Numbers and constants keep all digits of the type they are wanted in, through every form of the kernel.
#include "ferrite/kernel/block.hpp"
#include "ferrite/kernel/emit.hpp"
#include "packed_test.hpp"

namespace ferrite::kernel {
namespace {

const std::string constants_text = R"(import math
import warp as wp

C = wp.constant(wp.float64(0.1))
D = 0.1
V = wp.vec3d(0.1, 0.2, 0.3)
N = 1234567890123
R = D * 3.0


@wp.struct
class Pair:
    a: wp.float64
    b: wp.int64


@wp.kernel
def k(out: wp.array[wp.float64]):
    v = wp.vec3d(0.1, 0.2, 0.3)
    m = wp.mat22d(0.1, -0.2, D, -D)
    q = wp.quatd(0.1, 0.2, 0.3, 0.4)
    w = wp.vec2d(0.1)
    p = Pair(0.1, N)
    out[0] = v[0]
    out[1] = C
    out[2] = -C
    out[3] = wp.float64(D)
    out[4] = V[0]
    out[5] = wp.float64(-0.1)
    out[6] = wp.float64(wp.pi)
    out[7] = wp.float64(-math.pi)
    out[8] = m[0, 0]
    out[9] = m[0, 1]
    out[10] = m[1, 1]
    out[11] = q[3]
    out[12] = w[1]
    out[13] = p.a
    out[14] = wp.float64(p.b)
    out[15] = wp.float64(N)
    out[16] = wp.float64(R)
    out[17] = wp.float64(wp.static(D / 3.0))
    out[18] = wp.float64(0.1 * 3.0)
    out[19] = wp.float64(0.1) * wp.float64(D)
)";

std::vector<double> wanted() {
  constexpr double pi = 3.141592653589793;
  const auto in_float = static_cast<double>(0.1f * 3.0f);  // arithmetic of the kernel, on two floats
  return {0.1,
          0.1,
          -0.1,
          0.1,
          0.1,
          -0.1,
          pi,
          -pi,
          0.1,
          -0.2,
          -0.1,
          0.4,
          0.1,
          0.1,
          1234567890123.,
          1234567890123.,
          0.1 * 3.0,
          0.1 / 3.0,
          in_float,
          0.1 * 0.1};
}

TEST(KernelConstants, KeepAllDigits) {
  const Module module = parse(constants_text);
  std::vector<Value> arguments{array_value(module, Type::of(ScalarType::f64).array(1), {20})};
  Memory memory(arguments);
  interpret(module, module.kernel(), std::vector<std::int64_t>{1}, arguments);
  EXPECT_EQ(reals(arguments[0]), wanted());

  BlockProgram(module, module.kernel()).run(std::vector<std::int64_t>{1}, memory.pointers().data());
  for (std::size_t i = 0; i < wanted().size(); ++i)
    EXPECT_EQ(read_packed(ScalarType::f64, memory.data[0].data() + 8 * i).real, wanted()[i]) << i;
}

TEST(KernelConstants, ArePrintedAndEmittedWithAllDigits) {
  const Module module = parse(constants_text);
  EXPECT_TRUE(parse(print(module)) == module) << print(module);
  for (const std::string& emitted : {emit_cuda(module), emit_cpp(module)})
    for (const char* part :
         {"vec3d{0.1, 0.2, 0.3}", "3.141592653589793", "1234567890123ll", "quatd{0.1, 0.2, 0.3, 0.4}"})
      EXPECT_NE(emitted.find(part), std::string::npos) << part << "\n" << emitted;
}

TEST(KernelConstants, StaticSeesNoVariables) {
  const std::string global =
      "import warp as wp\n\ni = 999\nn = 3\n\n\n@wp.kernel\ndef k(out: wp.array[int]):\n";
  const auto problem = [&](const std::string& lines) { return error_of(global + lines); };
  const std::string refused = "wp.static is computed before the kernel runs, and 'i' is a variable of it";
  EXPECT_NE(problem("    for i in range(3):\n        out[i] = wp.static(i)\n").find("k.py:10:28: " + refused),
            std::string::npos);
  EXPECT_NE(problem("    for i in range(3):\n        out[i] = wp.static(i * i + 1)\n").find(refused),
            std::string::npos);
  EXPECT_NE(problem("    i = 5\n    if wp.static(i == 5):\n        out[0] = 1\n").find(refused),
            std::string::npos);
  EXPECT_NE(problem("    i = 5\n    v = wp.vec2d(wp.static(i))\n").find(refused), std::string::npos);
  EXPECT_EQ(problem("    for k in range(3):\n        out[k] = wp.static(i)\n"), "");
}

}  // namespace
}  // namespace ferrite::kernel
