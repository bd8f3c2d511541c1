// parse(print(m)) == m: on the corpus, and on the forms where parentheses and literals matter.
#include <cmath>

#include "kernel_test.hpp"

namespace ferrite::kernel {
namespace {

void expect_round_trip(const std::string& text) {
  const Module module = parse(text);
  const std::string printed = print(module);
  EXPECT_TRUE(parse(printed) == module) << printed;
  EXPECT_EQ(print(parse(printed)), printed);
}

TEST(KernelPrinter, CorpusRoundTrips) {
  int kernels = 0;
  for (const auto& file : corpus_files()) {
    SCOPED_TRACE(file.filename().string());
    const std::string text = read_file(file);
    expect_round_trip(text);
    kernels += static_cast<int>(parse(text).kernels.size());
  }
  EXPECT_GE(kernels, 50);
}

/// Each line must come back as it is: no parenthesis too many, none too few.
TEST(KernelPrinter, KeepsExpressions) {
  const std::string parameters =
      "out: wp.array[float], x: float, y: float, i: int, j: int, p: bool, q: bool, v: wp.vec3, m: wp.mat33, "
      "a: wp.array2d[wp.vec3]";
  for (const std::string line : {
           "out[0] = x - (y - x)",
           "out[0] = x - y - x",
           "out[0] = -(x + y) * -x",
           "out[0] = (x + y) * (x - y) / (x / y)",
           "out[0] = -x ** 2.0",
           "out[0] = (-x) ** 2.0",
           "out[0] = (-1.5) ** 2.0",
           "out[0] = x ** -y ** 2.0",
           "out[0] = (x ** y) ** 2.0",
           "r = i << j + 1 & ~i | i ^ (i | j)",
           "r = (i << j) + (i & j)",
           "r = i % j // 2 * 3",
           "r = i % (j // 2)",
           "r = (x < y) == (i > j)",
           "r = not x < y and (p or q) or not (p and q)",
           "r = p or (q or p)",
           "r = p and (q and p)",
           "r = x if p else y if q else -x",
           "r = (x if p else y) + 1.0",
           "r = x if (p if q else p) else y",
           "r = -2147483648 + i",
           "r = wp.int64(-9223372036854775808)",
           "r = wp.uint64(18446744073709551615)",
           "r = 1e-45 + 3.4028235e+38 + 16777216.0",
           "r = wp.float64(0.1) + wp.float64(1e+300)",
           "r = -wp.inf + wp.nan",
           "r = wp.float64(-wp.inf)",
           "r = (v + v)[1]",
           "r = (m * v)[i]",
           "r = m[0, i] + m[1][2]",
           "r = a[i, j][2] + wp.normalize(a[i, j]).x",
           "r = a.shape[0] + len(a)",
           "r = wp.identity(n=4, dtype=wp.float64)",
           "r = float(i) + float(bool(x))",
           "assert x > 0.0, \"x is \\\"small\\\"\\n\"",
       }) {
    std::string expected = line;
    if (line.find("m[1][2]") != line.npos) expected = "r = m[0, i] + m[1, 2]";
    if (line.find(".x") != line.npos) expected = "r = a[i, j][2] + wp.normalize(a[i, j])[0]";
    const std::string text = kernel_of(line, parameters);
    const std::string printed = print(parse(text));
    EXPECT_NE(printed.find("    " + expected + "\n"), printed.npos) << line << "\nbecame\n" << printed;
    expect_round_trip(text);
  }
}

TEST(KernelPrinter, LiteralsAreExact) {
  Module module = parse(kernel_of("out[0] = 1.0"));
  Expr& number = module.kernels[0].body[0].values[0];
  const RandomKey key{7, 1};
  for (std::uint64_t i = 0; i < 2000; ++i) {
    number = literal(ScalarType::f32, std::bit_cast<float>(random_block(key, i)[0]));
    if (std::isnan(number.number.real)) continue;
    ASSERT_TRUE(parse(print(module)) == module) << print(module);
  }
}

TEST(KernelPrinter, VariablesThatLoopsChangeBeginWithACast) {
  const std::string printed =
      print(parse(kernel_of("s = 0.0\nt = 1.0\nc = 2\nfor k in range(3):\n    s += t\n"
                            "    c = k\nout[0] = s")));
  EXPECT_NE(printed.find("s = float(0.0)\n    t = 1.0\n    c = int(2)\n"), printed.npos) << printed;
}

TEST(KernelPrinter, PrintsOneExpression) {
  const Module module = parse(kernel_of("y = 2.0\nout[0] = y * (y + 1.0)"));
  const Function& k = module.kernel();
  EXPECT_EQ(print(module, k.body[1].values[0], k), "y * (y + 1.0)");
}

TEST(KernelPrinter, ModuleForms) {
  const std::string text =
      "import warp as wp\n\n\n@wp.struct\nclass S:\n    x: float\n    v: wp.array[wp.vec3]\n\n\n"
      "@wp.func\ndef f(s: S) -> float:\n    return s.x\n\n\n@wp.func\ndef g(s: S):\n    return s.x, 2\n\n\n"
      "@wp.kernel(enable_backward=False)\ndef k(s: S):\n    if s.x > 0.0:\n        pass\n    elif s.x < "
      "1.0:\n"
      "        return\n    else:\n        x, n = g(s)\n        s.v[n] = wp.vec3(x, f(s), 0.0)\n";
  EXPECT_EQ(print(parse(text)), text);
}

}  // namespace
}  // namespace ferrite::kernel
