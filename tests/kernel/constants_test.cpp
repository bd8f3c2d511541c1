// Numbers and constants keep all digits of the type they are wanted in, through every form of the kernel.
#include <cmath>
#include <limits>

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

/// What wp.static(expression) is as a float of 64 bits.
double static_value(const std::string& expression) {
  const std::string text =
      "import math\nimport warp as wp\n\nN = 7 // -2\nUP = wp.vec2(1.0, 7 / 2)\n\n\n"
      "@wp.func\ndef same(x: float):\n    return x\n\n\n@wp.kernel\n"
      "def k(out: wp.array[wp.float64]):\n    out[0] = wp.float64(wp.static(" +
      expression + "))\n";
  EXPECT_EQ(error_of(text), "") << expression;
  if (!error_of(text).empty()) return std::nan("");
  std::vector<Value> arguments{real_array({0}, ScalarType::f64)};
  launch(text, {1}, arguments);
  return reals(arguments[0])[0];
}

TEST(KernelConstants, StaticIsPython) {
  const std::pair<const char*, double> cases[] = {
      {"7 / 2", 3.5},
      {"-7 // 2", -4},
      {"-7 % 3", 2},
      {"7 % -3", -2},
      {"-7.5 % 2.0", 0.5},
      {"7.5 // -2", -4},
      {"2 ** 10", 1024},
      {"-2 ** 2", -4},
      {"2 ** -1", 0.5},
      {"1 << 40", 1099511627776},
      {"-1 << 63", -9223372036854775808.},
      {"-5 >> 100", -1},
      {"2147483647 * 4 + 1", 8589934589},
      {"True + True", 2},
      {"True & False", 0},
      {"~True", -2},
      {"3 or 4", 3},
      {"3 and 0.5", 0.5},
      {"0 and 1 / 0", 0},
      {"1 < 2 < 3", 1},
      {"3 > 2 > 2", 0},
      {"2 < 1 < 1 / 0", 0},
      {"9007199254740993 == 9007199254740992.0", 0},
      {"9007199254740993 > 9007199254740992.0", 1},
      {"3 if 1 > 2 else 4.5", 4.5},
      {"'a' < 'b' < 'c'", 1},
      {"int(2.5e9)", 2500000000},
      {"round(2.5)", 2},
      {"round(-2.5)", -2},
      {"round(-1e-20)", 0},
      {"round(-0.49999999999999994)", 0},
      {"0.0 ** -math.inf", std::numeric_limits<double>::infinity()},
      {"max(3, 4.5, 4)", 4.5},
      {"abs(N)", 4},
      {"math.floor(-2.5)", -3},
      {"UP[1]", 3.5},
      {"(UP if N < 0 else missing)[0]", 1},
      {"same(0.5)", 0.5},
  };
  for (const auto& [expression, value] : cases) EXPECT_EQ(static_value(expression), value) << expression;
}

TEST(KernelConstants, StaticRefusesWhatIsNotPython) {
  const std::pair<const char*, const char*> cases[] = {
      {"1 / 0", "division by zero in Python"},
      {"1.0 / 0.0", "division by zero in Python"},
      {"5 % 0", "division by zero in Python"},
      {"0 ** -1", "division by zero in Python"},
      {"2 ** 63", "this integer needs more than 64 bits"},
      {"1 << 64", "this integer needs more than 64 bits"},
      {"1 << 63", "this integer needs more than 64 bits"},
      {"9223372036854775807 + 1", "this integer needs more than 64 bits"},
      {"(-9223372036854775807 - 1) // -1", "this integer needs more than 64 bits"},
      {"9223372036854775807 / 3", "of more than 53 bits"},
      {"1 << -1", "a negative shift"},
      {"1.5 << 2", "'<<' is for integers in Python"},
      {"(-8.0) ** 0.5", "is complex in Python"},
      {"10.0 ** 400", "too large for Python's float"},
      {"int(1e400)", "infinity and NaN are no integers"},
      {"math.sqrt(-1.0)", "math.sqrt of -1 is an error in Python"},
      {"wp.int32(7) / wp.int32(2)", "Python computes this"},
      {"half(7)", "Python itself would run 'half'"},
  };
  const std::string before =
      "import math\nimport warp as wp\n\n\n@wp.func\ndef half(x: int):\n    return x / 2\n\n\n";
  for (const auto& [expression, problem] : cases) {
    const std::string message =
        error_of(before + "@wp.kernel\ndef k():\n    x = wp.static(" + expression + ")\n");
    EXPECT_NE(message.find(problem), std::string::npos) << expression << ": " << message;
    EXPECT_NE(message.find("k.py:12:"), std::string::npos) << expression << ": " << message;
  }
}

TEST(KernelConstants, ArithmeticOfTheKernelIsNotPythons) {
  EXPECT_EQ(run_lines("out[0] = float(-(7 / 2))\nout[1] = float(-(2147483647 + 1))"),
            (std::vector<double>{-3, -2147483648., 0, 0}));
  const auto with_global = [](const std::string& lines) { return "N = 5\n" + kernel_of(lines); };
  std::vector<Value> arguments{real_array({0})};
  launch(with_global("N = 3\nout[0] = float(-(N + 1))"), {1}, arguments);
  EXPECT_EQ(reals(arguments[0])[0], -4);
  EXPECT_NE(
      error_of(with_global("N = 3\nt = wp.zeros(shape=N, dtype=float)")).find("the extents are constants"),
      std::string::npos);
  EXPECT_NE(error_of(with_global("N = 3\nm = wp.identity(n=N, dtype=float)")).find("needs n, a constant"),
            std::string::npos);
}

TEST(KernelConstants, ANameIsAConstantOrAVariable) {
  const auto problem = [](const std::string& lines) { return error_of("N = 5\n" + kernel_of(lines)); };
  for (const char* lines :
       {"out[0] = float(N)\nN = 4", "N = N + 1", "for i in range(2):\n    out[i] = float(N)\n    N = 4",
        "if out[0] > 0.0:\n    out[1] = float(N)\nelse:\n    N = 3", "x = N\nfor N in range(3):\n    pass"})
    EXPECT_NE(problem(lines).find("'N' is read above as a constant"), std::string::npos) << lines;
  EXPECT_EQ(problem("N = wp.static(N + 1)\nout[0] = float(N)"), "");
}

TEST(KernelConstants, IntegersFitTheirType) {
  const auto problem = [](const std::string& value) {
    return error_of("N = 300\nB = 1 << 40\nM = -1\n" + kernel_of("x = " + value));
  };
  for (const auto& [value, part] : {std::pair("wp.uint8(N)", "300 does not fit wp.uint8"),
                                    {"wp.int8(-N)", "-300 does not fit wp.int8"},
                                    {"int(B)", "1099511627776 does not fit int"},
                                    {"wp.vec2i(B, 1)", "1099511627776 does not fit int"},
                                    {"wp.uint64(M)", "-1 does not fit wp.uint64"},
                                    {"wp.static(wp.uint8(200 + 100))", "300 does not fit wp.uint8"}})
    EXPECT_NE(problem(value).find(part), std::string::npos) << value << ": " << problem(value);
  for (const char* value : {"wp.int16(N)", "wp.uint16(N)", "wp.int64(B)", "wp.uint64(B)", "wp.int8(M)",
                            "wp.int8(wp.static(-128))", "wp.uint8(wp.static(255))"})
    EXPECT_EQ(problem(value), "") << value;
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
