// @wp.func_grad and @wp.func_replay. The numbers are those that Warp 1.19 gives for the same kernels.
#include "ferrite/kernel/adjoint.hpp"
#include "kernel_test.hpp"

namespace ferrite::kernel {
namespace {

using Numbers = std::vector<double>;

/// The adjoint of x, the first parameter, where those of all others are 1.
Numbers slope(const std::string& definitions, const std::string& kernel, const Numbers& x,
              const std::string& element = "float") {
  const Module module = parse("import warp as wp\n\n" + definitions + "\n\n@wp.kernel\ndef k(x: wp.array[" +
                                  element + "], y: wp.array[float]):\n    i = wp.tid()\n" + kernel,
                              "k.py");
  EXPECT_TRUE(parse(print(module)) == module) << print(module);
  const Module back = adjoint(module, module.kernel());
  EXPECT_TRUE(parse(print(back)) == back) << print(back);
  EXPECT_EQ(back.kernel().variables[2].name, "adj_x");
  const Type type = module.kernel().variables[0].type;
  const auto threads = static_cast<std::int64_t>(x.size()) / type.element().components();
  Value given = real_array(x);
  given.type = type;
  given.shape = {threads};
  Value zeros = given;
  for (Number& n : zeros.numbers) n = from_real(0);
  const Value ones = real_array(Numbers(static_cast<std::size_t>(threads), 1));
  std::vector<Value> arguments{given, ones, zeros, ones};
  interpret(back, back.kernel(), std::vector<std::int64_t>{threads}, arguments);
  return reals(arguments[2]);
}

const std::string straight_through =
    "@wp.func\ndef relu(x: float):\n    return wp.max(x, 0.0)\n\n"
    "@wp.func_grad(relu)\ndef adj_relu(x: float, adj_ret: float):\n    wp.adjoint[x] += adj_ret\n";

TEST(CustomGradient, TakesThePlaceOfTheDerivative) {
  EXPECT_EQ(slope(straight_through, "    y[i] = relu(x[i])\n", {-1, 2}), (Numbers{1, 1}));
  EXPECT_EQ(slope(straight_through, "    y[i] = 3.0 * relu(x[i] * x[i])\n", {-1, 2}), (Numbers{-6, 12}));
  const std::string rounding =
      "@wp.func\ndef whole(x: float):\n    return wp.round(x)\n\n"
      "@wp.func_grad(whole)\ndef adj_whole(x: float, adj_ret: float):\n    wp.adjoint[x] += adj_ret\n";
  EXPECT_EQ(slope(rounding, "    y[i] = whole(x[i])\n", {-1.2, 2.6}), (Numbers{1, 1}));
}

TEST(CustomGradient, IsUsedInsideFunctionsLoopsAndBranches) {
  const std::string twice =
      straight_through + "\n@wp.func\ndef twice(x: float):\n    return relu(x) + relu(x)\n";
  EXPECT_EQ(slope(twice, "    y[i] = twice(x[i])\n", {-1, 2}), (Numbers{2, 2}));
  EXPECT_EQ(slope(straight_through,
                  "    s = float(1.0)\n    for q in range(3):\n        s = s * relu(x[i])\n    y[i] = s\n",
                  {-1, 2}),
            (Numbers{0, 12}));
  EXPECT_EQ(slope(straight_through,
                  "    a = x[i]\n    if a < 0.0:\n        a = relu(a * 4.0)\n    y[i] = a\n", {-1, 2}),
            (Numbers{4, 1}));
}

TEST(CustomGradient, AddsToTheArgument) {
  const std::string product =
      "@wp.func\ndef product(x: float, y: float):\n    return x * y\n\n"
      "@wp.func_grad(product)\ndef adj(x: float, y: float, adj_ret: float):\n"
      "    wp.adjoint[x] += adj_ret * 3.0\n    wp.adjoint[y] -= 2.0 * adj_ret\n";
  EXPECT_EQ(slope(product, "    a = x[i]\n    y[i] = product(a, a) + a\n", {-1, 2}), (Numbers{2, 2}));
  EXPECT_EQ(slope(product, "    y[i] = product(x[i] * x[i], 3.0)\n", {-1, 2}), (Numbers{-6, 12}));
}

TEST(CustomGradient, TakesStatementsCallsAndLocalArrays) {
  const std::string own =
      "@wp.func\ndef helper(t: float):\n    return t * 4.0\n\n@wp.func\ndef own(x: float):\n    return x\n\n"
      "@wp.func_grad(own)\ndef adj(x: float, adj_ret: float):\n    g = helper(adj_ret)\n"
      "    if x > 1.0:\n        g = g * 2.0\n    a = wp.zeros(shape=2, dtype=float)\n    a[-1] = g\n"
      "    for q in range(2):\n        wp.adjoint[x] += a[1]\n";
  EXPECT_EQ(slope(own, "    y[i] = own(x[i])\n", {-1, 2}), (Numbers{8, 16}));
}

TEST(CustomGradient, OfSeveralResultsVectorsArraysAndStructs) {
  const std::string two =
      "@wp.func\ndef two(x: float):\n    return x * 2.0, x * x\n\n@wp.func_grad(two)\n"
      "def adj(x: float, a: float, b: float):\n    wp.adjoint[x] += 10.0 * a + 100.0 * b\n";
  EXPECT_EQ(slope(two, "    p, q = two(x[i])\n    y[i] = p + q\n", {-1, 2}), (Numbers{110, 110}));
  const std::string vector =
      "@wp.func\ndef first(v: wp.vec3):\n    return v[0]\n\n@wp.func_grad(first)\n"
      "def adj(v: wp.vec3, adj_ret: float):\n    wp.adjoint[v][2] += adj_ret\n"
      "    wp.adjoint[v] += wp.vec3(0.0, 2.0 * adj_ret, 0.0)\n";
  EXPECT_EQ(slope(vector, "    y[i] = first(x[i])\n", {1, 2, 3}, "wp.vec3"), (Numbers{0, 2, 1}));
  const std::string array =
      "@wp.func\ndef load(a: wp.array[float], i: int):\n    return a[i]\n\n@wp.func_grad(load)\n"
      "def adj(a: wp.array[float], i: int, adj_ret: float):\n    wp.adjoint[a][i] += 5.0 * adj_ret\n"
      "    wp.atomic_add(wp.adjoint[a], i, adj_ret)\n";
  EXPECT_EQ(slope(array, "    y[i] = load(x, i)\n", {-1, 2}), (Numbers{6, 6}));
  const std::string parts =
      "@wp.struct\nclass P:\n    a: float\n    v: wp.vec2\n    n: int\n\n@wp.func\ndef f(p: P):\n    return "
      "p.a\n\n"
      "@wp.func_grad(f)\ndef adj(p: P, adj_ret: float):\n    wp.adjoint[p.a] += 2.0 * adj_ret\n"
      "    wp.adjoint[p.v][1] += 3.0 * adj_ret\n";
  EXPECT_EQ(slope(parts, "    t = x[i]\n    y[i] = f(P(t, wp.vec2(t, t), 1))\n", {-1, 2}), (Numbers{5, 5}));
  const std::string none =
      "@wp.func\ndef put(a: wp.array[float], i: int, v: float):\n    a[i] = v\n\n@wp.func_grad(put)\n"
      "def adj(a: wp.array[float], i: int, v: float):\n    wp.adjoint[v] += 9.0\n";
  EXPECT_EQ(slope(none, "    put(y, i, x[i])\n", {-1, 2}), (Numbers{9, 9}));
}

TEST(CustomGradient, ReplayComputesTheFunctionAgain) {
  const std::string counted =
      "@wp.func\ndef f(x: float):\n    return x * x\n\n@wp.func_replay(f)\ndef again(x: float):\n"
      "    return x * 10.0\n\n@wp.func_grad(f)\ndef adj(x: float, adj_ret: float):\n"
      "    wp.adjoint[x] += adj_ret\n";
  EXPECT_EQ(slope(counted, "    t = f(x[i])\n    y[i] = t * t\n", {-1, 2}), (Numbers{-20, 40}));
  const Module module = parse(
      "import warp as wp\n\n@wp.func\ndef f(x: float):\n    return x * x\n\n@wp.func_replay(f)\n"
      "def again(x: float):\n    return x\n\n@wp.kernel\ndef k(x: wp.array[float]):\n"
      "    x[0] = f(x[0])\n",
      "k.py");
  try {
    adjoint(module, module.kernel());
    FAIL() << "not refused";
  } catch (const KernelError& e) {
    EXPECT_NE(std::string(e.what()).find(
                  "k.py:13:12: no gradient: 'f' has a @wp.func_replay, but no @wp.func_grad"),
              std::string::npos)
        << e.what();
  }
}

TEST(CustomGradient, MustFitItsFunction) {
  const std::string f = "import warp as wp\n\n@wp.func\ndef f(x: float, n: int):\n    return x\n\n";
  const auto refused = [&](const std::string& gradient, const std::string& problem) {
    const std::string message = error_of(f + gradient);
    EXPECT_NE(message.find(problem), std::string::npos) << gradient << message;
    EXPECT_NE(message.find("k.py:"), std::string::npos) << message;
  };
  refused("@wp.func_grad(f)\ndef g(x: float, r: float):\n    pass\n",
          "the gradient of 'f' takes (float, int, float): its parameters, then the adjoints of its results");
  refused("@wp.func_grad(h)\ndef g(x: float, r: float):\n    pass\n", "there is no @wp.func 'h'");
  refused("@wp.func_grad(wp.sin)\ndef g(x: float, r: float):\n    pass\n",
          "@wp.func_grad names its function");
  refused("@wp.func_grad(f)\ndef g(x: float, n: int, r: float):\n    wp.adjoint[n] += 1\n",
          "int has no adjoint");
  refused("@wp.func_grad(f)\ndef g(x: float, n: int, r: float):\n    y = x\n    wp.adjoint[y] += r\n",
          "wp.adjoint is of a parameter of 'f'");
  const std::string added = "is only added to: write += or -=";
  refused("@wp.func_grad(f)\ndef g(x: float, n: int, r: float):\n    wp.adjoint[x] = r\n", added);
  refused("@wp.func_grad(f)\ndef g(x: float, n: int, r: float):\n    wp.adjoint[x] *= r\n", added);
  refused("@wp.func_grad(f)\ndef g(x: float, n: int, r: float):\n    y = wp.adjoint[x]\n", added);
  refused("@wp.func_grad(f)\ndef g(x: float, n: int, r: float):\n    return r\n",
          "returns nothing, here float");
  refused(
      "@wp.func_grad(f)\ndef g(x: float, n: int, r: float):\n    pass\n\n"
      "@wp.func_grad(f)\ndef g2(x: float, n: int, r: float):\n    pass\n",
      "'f' has two gradients");
  refused("@wp.func_replay(f)\ndef g(x: float, n: int):\n    return n\n",
          "the replay of 'f' returns other types");
  refused("@wp.kernel\ndef k(x: wp.array[float]):\n    wp.adjoint[x][0] += 1.0\n",
          "wp.adjoint stands only in a gradient");
}

TEST(CustomGradient, AWrongOneSpoilsTheKernelsThatNeedIt) {
  const std::string text =
      "import warp as wp\n\n@wp.func\ndef f(x: float):\n    return x\n\n@wp.func_grad(f)\ndef g(x: float, r: "
      "float):\n"
      "    wp.adjoint[x] += nothing\n\n@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = f(x[0])\n";
  EXPECT_THROW(parse_for("k", text), KernelError);
}

}  // namespace
}  // namespace ferrite::kernel
