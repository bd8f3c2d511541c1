// Which definition a name means, and what one wrong definition does to the others.
#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/kernel.hpp"
#include "kernel_test.hpp"

namespace ferrite::kernel {
namespace {

const std::string imports = "import warp as wp\n\n";

/// x after the kernel ran in one thread on {3, 5}.
std::vector<double> after(const Module& module, std::string_view kernel = {}) {
  std::vector<Value> arguments{real_array({3, 5})};
  interpret(module, module.kernel(kernel), std::vector<std::int64_t>{1}, arguments);
  return reals(arguments[0]);
}

TEST(KernelDefinitions, OneNameInTwoPythonFunctions) {
  const auto inside = [](const std::string& function, const std::string& value) {
    return "def " + function + "():\n    F = " + value +
           "\n\n    @wp.func\n    def f(x: float):\n        return x + F\n\n"
           "    @wp.kernel\n    def k(x: wp.array[float]):\n        x[0] = f(x[0])\n\n";
  };
  const std::string text = imports + inside("test_a", "10.0") + inside("test_b", "20.0") +
                           "@wp.func\ndef f(x: float):\n    return -x\n\n"
                           "@wp.kernel\ndef top(x: wp.array[float]):\n    x[0] = f(x[0])\n";
  const Module module = parse(text);
  EXPECT_EQ(after(module, "test_a.k")[0], 13);
  EXPECT_EQ(after(module, "test_b_k")[0], 23);
  EXPECT_EQ(after(module, "top")[0], -3);
  EXPECT_TRUE(parse(print(module)) == module) << print(module);
  EXPECT_NE(emit_cpp(module).find("test_b_k_kernel("), std::string::npos);
  EXPECT_EQ(Kernel::from_source(text, "test_a.k").name(), "test_a_k");
  try {
    (void)module.kernel("k");
    FAIL() << "'k' is not one kernel";
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("test_a_k, test_b_k"), std::string::npos) << e.what();
  }
  const std::string methods = imports +
                              "class A:\n    def test(self):\n        @wp.kernel\n        def k(x: "
                              "wp.array[float]):\n            x[0] = 1.0\n\n"
                              "class B:\n    def test(self):\n        @wp.kernel\n        def k(x: "
                              "wp.array[float]):\n            x[0] = 2.0\n";
  EXPECT_EQ(after(parse(methods), "B.test.k")[0], 2);
  const std::string again =
      imports + inside("test_a", "1.0") + "    @wp.kernel\n    def k():\n        pass\n";
  EXPECT_NE(error_of(again).find("'k' is defined twice, first in line"), std::string::npos)
      << error_of(again);
}

TEST(KernelDefinitions, ANameThatStandsAloneKeepsIt) {
  const Module module =
      parse(imports + "def make():\n    @wp.kernel\n    def k(x: wp.array[float]):\n        x[0] = 1.0\n");
  EXPECT_EQ(module.kernel().name, "k");
}

TEST(KernelDefinitions, WhatIsWrongElsewhereDoesNotMatter) {
  const std::string text = imports +
                           "@wp.kernel\ndef good(x: wp.array[float]):\n    x[0] = 1.0\n\n"
                           "@wp.func\ndef broken(x: float):\n    return unknown\n\n"
                           "@wp.kernel\ndef bad(x: wp.array[float]):\n    x[0] = broken(x[0])\n\n"
                           "@wp.kernel\ndef worse(x: wp.array[float]):\n    x[0] = [1]\n";
  EXPECT_EQ(after(parse_for("good", text), "good")[0], 1);
  EXPECT_EQ(Kernel::from_source(text, "good").name(), "good");
  const auto problem = [&](const std::string& kernel) -> std::string {
    try {
      parse_for(kernel, text);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(problem("bad").find("kernel.py:9:12: unknown name 'unknown'"), std::string::npos)
      << problem("bad");
  EXPECT_NE(problem("worse").find("kernel.py:17:12: lists"), std::string::npos) << problem("worse");
  EXPECT_NE(problem("").find("unknown name"), std::string::npos);
  EXPECT_NE(problem("none").find("'none' is not among the kernels: good"), std::string::npos)
      << problem("none");
  const Parsed parsed = parse_all(text);
  ASSERT_EQ(parsed.errors.size(), 2u);
  EXPECT_EQ(parsed.errors[0].definition(), "broken");
  EXPECT_EQ(parsed.errors[1].definition(), "worse");
  EXPECT_EQ(parsed.causes.at("bad"), "broken");
}

/// As Warp 1.19: a function called add is what + of its types means, but for atomics and components.
TEST(KernelDefinitions, AFunctionWithTheNameOfAnOperator) {
  const std::string add = imports + "@wp.func\ndef add(x: float, y: float) -> float:\n    return x * y\n\n";
  const auto run = [&](const std::string& lines) {
    const Module module = parse(add + kernel_of(lines, "x: wp.array[float]").substr(imports.size()));
    EXPECT_TRUE(parse(print(module)) == module) << print(module);
    return after(module)[0];
  };
  EXPECT_EQ(run("x[0] = x[0] + x[1]"), 15);
  EXPECT_EQ(run("s = x[0]\ns += x[1]\nx[0] = s"), 15);
  EXPECT_EQ(run("x[0] += x[1]"), 8);
  EXPECT_EQ(run("x[0] = wp.add(x[0], x[1])"), 8);
  EXPECT_EQ(run("x[0] = add(x[0], x[1])"), 15);
  EXPECT_EQ(run("x[0] = float(3 + 4)"), 7);
  EXPECT_EQ(run("v = wp.vec2(x[0], 0.0) + wp.vec2(x[1], 0.0)\nx[0] = v[0]"), 8);
  EXPECT_EQ(run("v = wp.vec2(x[0], 0.0)\nv[0] += x[1]\nx[0] = v[0]"), 8);
  const std::string itself = imports + "@wp.func\ndef add(x: float, y: float):\n    return x + y\n";
  EXPECT_NE(
      error_of(itself).find("k.py:5:14: '+' of float and float is the function 'add' here, which would call "
                            "itself: write wp.add(...)"),
      std::string::npos)
      << error_of(itself);
}

TEST(KernelDefinitions, TilesAreAddedToNumbersAlone) {
  const auto problem = [](const std::string& type) {
    return error_of(
        "import warp as wp\n\n@wp.struct\nclass S:\n    a: float\n\n@wp.kernel\ndef good(x: "
        "wp.array[float]):\n"
        "    x[wp.tid()] = 1.0\n\n@wp.kernel\ndef k(x: wp.array[" +
        type + "], y: wp.array[" + type + "]):\n    wp.tile_atomic_add(y, wp.tile_load(x, shape=8))\n");
  };
  EXPECT_NE(problem("bool").find("k.py:13:24: wp.tile_atomic_add to wp.array[bool]: it adds numbers"),
            std::string::npos)
      << problem("bool");
  EXPECT_NE(problem("S").find("k.py:13:24: wp.tile_atomic_add to wp.array[S]"), std::string::npos)
      << problem("S");
  EXPECT_EQ(problem("wp.vec3"), "");
}

}  // namespace
}  // namespace ferrite::kernel
