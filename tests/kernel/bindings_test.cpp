// Kernels inside Python functions: what they capture, what a caller binds, and what is refused.
#include "kernel_test.hpp"

namespace ferrite::kernel {

namespace {

/// A factory of the kernel around `lines`, with these lines before it.
std::string factory(const std::string& signature, const std::string& before, const std::string& lines,
                    const std::string& parameters = "out: wp.array[float]") {
  std::string text = "import warp as wp\n\nN = 100\n\n\ndef " + signature + ":\n";
  std::istringstream first(before), second(lines);
  for (std::string line; std::getline(first, line);) text += "    " + line + "\n";
  text += "    @wp.kernel\n    def k(" + parameters + "):\n";
  for (std::string line; std::getline(second, line);) text += "        " + line + "\n";
  return text + "\n    return k\n\n\ndef other(N=5):\n    return N\n";
}

std::vector<double> run(const std::string& text, const Bindings& bindings = {}) {
  const Module module = parse(text, "k.py", bindings);
  EXPECT_EQ(parse(print(module)), module);
  std::vector<Value> arguments{real_array({0, 0, 0, 0})};
  interpret(module, module.kernel(), std::vector<std::int64_t>{1}, arguments);
  return reals(arguments[0]);
}

std::string problem(const std::string& text, const Bindings& bindings = {}) {
  try {
    parse(text, "k.py", bindings);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}
void expect_problem(const std::string& text, const std::string& what, const Bindings& bindings = {}) {
  EXPECT_NE(problem(text, bindings).find(what), std::string::npos) << problem(text, bindings);
}

TEST(KernelBindings, LocalsDefaultsAndValues) {
  const std::string text = factory(
      "make(n, scale=0.5, *, mode: str = 'fast', shape=(2, 3))", "M = n * 2\nUP = wp.vec3(1.0, 2.0, 3.0)",
      "out[0] = float(M)\nout[1] = scale * UP[1]\n"
      "if wp.static(mode == 'fast'):\n    out[2] = 1.0\nelse:\n    out[2] = missing\n"
      "out[3] = float(wp.static(N + n))");
  EXPECT_EQ(run(text, {{"make.n", "4"}}), (std::vector<double>{8, 1, 1, 104}));
  EXPECT_EQ(run(text, {{"make.n", "3"}, {"make.scale", "2.0"}}), (std::vector<double>{6, 4, 1, 103}));
  for (const auto& [n, value] : {std::pair("-7 // 2", -4), std::pair("-7 % 3", 2), std::pair("2 ** 3", 8),
                                 std::pair("1 << 4", 16), std::pair("int(7 / 2)", 3)})
    EXPECT_EQ(run(text, {{"make.n", n}})[3], 100 + value) << n;
  expect_problem(text, "division by zero in Python", {{"make.n", "1 // 0"}});
  expect_problem(text, "the value of 'n' comes from Python: bind one to make.n");
  expect_problem(text, "unknown name 'missing'", {{"make.n", "4"}, {"make.mode", "'slow'"}});
}

TEST(KernelBindings, NamesMeanWhatTheyMeanWhereTheyStand) {
  // The top level's M is made of the top level's N; a variable of the kernel hides both.
  std::string text =
      factory("make()", "N = 7", "out[0] = float(M)\nout[1] = float(N)\nn = 2\nout[2] = float(n)");
  text.insert(text.find("def make"), "M = N + 1\n\n\n");
  EXPECT_EQ(run(text), (std::vector<double>{101, 7, 2, 0}));
  // Functions inside functions see those around them; a function without a block has none.
  const std::string nested =
      "import warp as wp\n\n\ndef outer(a=3):\n    def one(): return 1\n    def inner(b=a):\n        if b:\n"
      "            @wp.kernel\n            def k(out: wp.array[float]):\n                out[0] = float(a + "
      "b)\n"
      "        return k\n";
  EXPECT_EQ(run(nested)[0], 6);
  EXPECT_EQ(run(nested, {{"inner.b", "10"}})[0], 13);
}

TEST(KernelBindings, WhatDependsOnTheWayTakenIsNoConstant) {
  for (const char* before :
       {"M = 1\nif N:\n    M = 2", "M = 1\nM += 1", "M = 1\nM: int = 2", "M = host(3)[0] @ 'x'\nM = f'{N}'",
        "if N:\n    M = 3", "L, M = 5, 6", "(L, M) = 5, 6", "for M in range(3):\n    pass", "M: int = 5"}) {
    std::string text = factory("make()", before, "out[0] = float(M)");
    expect_problem(text, "'M' is not a constant that a kernel can use");
    text.insert(text.find("def make"), "M = 2\n\n\n");  // which the function's own hides
    expect_problem(text, "'M' is not a constant that a kernel can use");
  }
  for (const char* lines :
       {"M = 4\nif True:\n    M = 5\n", "M = 1\nM += 3\n", "M = 1\nfor M in [1]:\n    pass\n"}) {
    std::string text = factory("make()", "pass", "out[0] = float(M)");
    text.insert(text.find("def make"), lines);
    expect_problem(text, "'M'");
  }
  // What only reads a constant does not change it, nor what the file does as a script.
  std::string text =
      factory("make()", "print(M, 2)\nif M == 2:\n    pass\nx[M] = 3\ny.M = 4", "out[0] = float(M)");
  text.insert(text.find("def make"), "M = 2\nprint(M)\nwhile M >= 3:\n    pass\n");
  text += "\nif __name__ == \"__main__\":\n    M = int(input())\n    M += 1\n";
  EXPECT_EQ(run(text)[0], 2);
}

TEST(KernelBindings, Types) {
  const std::string text =
      factory("make(dtype, n: int = 4)", "T = dtype",
              "t = wp.tile_load(x, shape=n)\nx[0] = T(t[0]) + dtype(2.0)", "x: wp.array[dtype]");
  for (const char* type : {"float", "wp.float64", "wp.float16"}) {
    const Module module = parse(text, "k.py", {{"make.dtype", type}});
    EXPECT_EQ(to_string(module.kernel().variables[0].type.element()), type);
  }
  expect_problem(text, "bind one to make.dtype");
  expect_problem(text, "unknown type 'dtype'", {{"make.dtype", "3"}});
  expect_problem(text, "the extents are constants",
                 {{"make.dtype", "float"}, {"make.n", "n"}, {"other.N", "1"}});
}

TEST(KernelBindings, AnyTakesTheTypeOfALaunch) {
  const std::string text = kernel_of("i = wp.tid()\nx[i] = s * x[i]", "x: wp.array2d[Any], s: float");
  const std::string one = kernel_of("i = wp.tid()\nx[i] = s * x[i]", "x: wp.array(dtype=Any), s: Any");
  expect_problem(one, "Any stands for the type that a launch gives");
  for (const char* type : {"float", "wp.vec3", "wp.mat22"})
    EXPECT_EQ(
        to_string(parse(one, "k.py", {{"k.x", type}, {"k.s", "float"}}).kernel().variables[0].type.element()),
        type);
  expect_problem(one, "write float", {{"k.x", "float"}, {"k.s", "int"}});
  expect_problem(text, "has 2 axes", {{"k.x", "float"}});
  expect_problem(one, "arrays of arrays", {{"k.x", "wp.array[float]"}, {"k.s", "float"}});
}

TEST(KernelBindings, BindingsThatAreNone) {
  const std::string text = factory("make(n=1)", "", "out[0] = float(n)");
  expect_problem(text, "[k.py] there is no 'make.m'", {{"make.m", "1"}});
  expect_problem(text, "there is no 'n'", {{"n", "1"}});
  expect_problem(text, "expected one value, found ')'", {{"make.n", "1)"}});
  expect_problem(text, "expected an expression", {{"make.n", ""}});
  expect_problem(text, "nested too deep", {{"make.n", std::string(5000, '(')}});
  expect_problem(text, "'n' is not a constant", {{"make.n", "n"}});
}

TEST(KernelBindings, Static) {
  EXPECT_EQ(run_lines("out[0] = wp.static(2.0 * 3.0)\nv = wp.static(wp.vec2(1.0, 2.0))\nout[1] = v[1]")[0],
            6);
  EXPECT_EQ(
      run_lines("if wp.static(2 > 3):\n    out[0] = nothing\nelif wp.static(1.5 <= 2):\n    out[0] = 1.0")[0],
      1);
  expect_error("y = wp.static(x)", "x)", "computed before the kernel runs, and 'x' is a variable of it");
  expect_error("y = wp.static()", "wp.static", "takes one value");
  expect_error("y = wp.static('text')", "'text'", "strings have no place");
}

}  // namespace
}  // namespace ferrite::kernel
