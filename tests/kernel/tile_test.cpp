// Tile programs against the interpreter: arithmetic, choices, functions, rests of rows, broadcasting, and
// what they leave to others.
#include "kernel/cpu/executor.hpp"

#include <gtest/gtest.h>

#include "ferrite/kernel/block.hpp"
#include "packed_test.hpp"

namespace ferrite::kernel {

namespace {

Value random_values(std::vector<std::int64_t> shape, ScalarType type = ScalarType::f32) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  std::vector<double> x;
  for (std::int64_t i = 0; i < n; ++i) x.push_back(normal_at<float>({3, 1}, static_cast<std::uint64_t>(i)));
  Value v = real_array(x, type);
  v.type = v.type.array(static_cast<int>(shape.size()));
  v.shape = std::move(shape);
  return v;
}

/// Runs the only kernel of a text by tiles and by the interpreter; `roundings` as compare() has it.
void expect_same_tiles(const std::string& text, std::vector<std::int64_t> dim,
                       const std::vector<Value>& values, double roundings = 0) {
  const Module module = parse(text);
  const auto program = executor().compile_tiles(module.kernel());
  ASSERT_EQ(program->obstacle(), "");
  const PackedLaunch launch = [&](const std::vector<std::int64_t>& grid, void* const* arguments, int) {
    EXPECT_TRUE(program->fits(grid, arguments));
    program->run(grid, arguments);
  };
  compare(module, module.kernel(), launch, dim, values, 256, roundings);
}

std::string obstacle(const std::string& text) {
  const Module module = parse(text);
  return executor().compile_tiles(module.kernel())->obstacle();
}

std::string one_axis(const std::string& lines) {
  return "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[float], y: wp.array[float], z: "
         "wp.array[float], s: float):\n"
         "    i = wp.tid()\n    a = x[i]\n    b = y[i]\n" +
         lines;
}

}  // namespace

TEST(Tile, Arithmetic) {
  for (const char* lines :
       {"    z[i] = a * s + b", "    z[i] = s - a / b", "    z[i] = (a - b) * (a + b) - (s - (b - a))",
        "    z[i] = -wp.abs(a) / (2.0 + a * a)", "    v = a + b\n    w = v * v\n    z[i] = w - v * s + w",
        "    z[i] = wp.sqrt(wp.abs(a)) + wp.floor(b) - wp.ceil(a) * wp.rint(b * 3.0)",
        "    z[i] = wp.min(a, b) - wp.max(s, a * b) * wp.min(a, s)",
        "    z[i] = wp.max(wp.sqrt(a), s) + wp.min(b, wp.sqrt(b)) + wp.max(a, wp.sqrt(-a))",
        "    z[i] = a * x[0] + y[0]", "    v = a\n    w = v + 1.0\n    v = v * s\n    z[i] = w + v",
        "    v = a * 1.0\n    w = v\n    v = v + b\n    z[i] = w - v", "    z[i] = z[i] * s + a",
        "    z[i] = wp.where(a < b, a, b)", "    z[i] = wp.where(a <= 0.0, 0.0, a)",
        "    z[i] = wp.where(s > a, s, a)", "    z[i] = wp.where(b >= a, b - a, a) + wp.where(a == a, s, b)",
        "    z[i] = wp.where(wp.isnan(a), s, wp.where(wp.isfinite(b / 0.0), a, b))",
        "    t = a < s\n    u = wp.where(t, b < s, t)\n    z[i] = wp.where(u, a, wp.where(not t, b, s))"})
    for (const std::int64_t n : {1, 3, 31, 32, 128, 5000}) {
      SCOPED_TRACE(std::string(lines) + " of " + std::to_string(n));
      expect_same_tiles(
          one_axis(lines), {n},
          {random_values({n}), random_values({n}), random_values({n}), scalar_value(ScalarType::f32, 0.75)});
    }
}

/// More tiles than may stand on the stack, if each calls the next.
TEST(Tile, LongRows) {
  const std::int64_t n = 1 << 20;
  const Module module = parse(one_axis("    z[i] = a * s + b"));
  const auto program = executor().compile_tiles(module.kernel());
  std::vector<float> x(n, 2), y(n, 1), z(n);
  float s = 3;
  ArrayArgument arrays[] = {{x.data(), {n}, {1}}, {y.data(), {n}, {1}}, {z.data(), {n}, {1}}};
  void* arguments[] = {&arrays[0], &arrays[1], &arrays[2], &s};
  const std::int64_t dim[] = {n};
  program->run(dim, arguments, false);
  EXPECT_EQ(std::count(z.begin(), z.end(), 7.0f), n);
}

TEST(Tile, Functions) {
  for (const double scale : {1.0, 3e8})
    for (const char* f : {"exp", "log", "tanh", "erf", "sin", "cos"}) {
      SCOPED_TRACE(f);
      expect_same_tiles(one_axis("    z[i] = wp." + std::string(f) + "(a * s) + b"), {333},
                        {random_values({333}), random_values({333}), random_values({333}),
                         scalar_value(ScalarType::f32, scale)},
                        6);
    }
}

TEST(Tile, ResultsMayGoWhereOperandsCameFrom) {
  const Module module = parse(
      "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[float], y: wp.array[float]):\n    i = wp.tid()\n"
      "    a = x[i]\n    b = y[i]\n    x[i] = a + b\n    y[i] = a - b\n");
  const auto program = executor().compile_tiles(module.kernel());
  std::vector<float> x(100), y(100);
  for (int i = 0; i < 100; ++i)
    x[static_cast<std::size_t>(i)] = static_cast<float>(i), y[static_cast<std::size_t>(i)] = 1;
  ArrayArgument arrays[] = {{x.data(), {100}, {1}}, {y.data(), {100}, {1}}};
  void* arguments[] = {&arrays[0], &arrays[1]};
  const std::int64_t dim[] = {100};
  program->run(dim, arguments);
  EXPECT_EQ(x[70], 71);
  EXPECT_EQ(y[70], 69);
}

TEST(Tile, RowsBroadcastAndSixteenBits) {
  const std::string text =
      "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array2d[wp.bfloat16], y: wp.array2d[float], z: "
      "wp.array2d[wp.bfloat16]):\n"
      "    i, j = wp.tid()\n    z[i, j] = wp.bfloat16(float(wp.bfloat16(float(x[i, j]) * y[i, j])) + 1.5)\n";
  expect_same_tiles(text, {5, 77},
                    {random_values({5, 77}, ScalarType::bf16), random_values({5, 77}),
                     random_values({5, 77}, ScalarType::bf16)});

  const Module module = parse(text);
  const auto program = executor().compile_tiles(module.kernel());
  std::vector<float> one = {2, 3};
  std::vector<BFloat16> x(2 * 64, to_bfloat16(1.25f)), z(2 * 64);
  ArrayArgument arrays[] = {
      {x.data(), {2, 64}, {64, 1}}, {one.data(), {2, 64}, {1, 0}}, {z.data(), {2, 64}, {64, 1}}};
  void* arguments[] = {&arrays[0], &arrays[1], &arrays[2]};
  const std::int64_t dim[] = {2, 64};
  ASSERT_TRUE(program->fits(dim, arguments));
  program->run(dim, arguments);
  EXPECT_EQ(to_float(z[40]), 4);
  EXPECT_EQ(to_float(z[100]), 5.25f);
  arrays[0].strides[1] = 2;  // every second element
  EXPECT_FALSE(program->fits(dim, arguments));
}

/// Every pair of these numbers, by maximum(x, s) and minimum(x, s) as Lazy writes them.
TEST(Tile, ExtremesOfZerosAndNaNs) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const std::vector<double> numbers = {0.0, -0.0, 1, -1, inf, -inf, nan};
  for (const char* line :
       {"    z[i] = 1.0 / wp.where(a <= s, s, a)", "    z[i] = 1.0 / wp.where(s <= a, s, a)",
        "    z[i] = 1.0 / wp.where(a <= 0.0, 0.0, a)", "    z[i] = 1.0 / wp.where(0.0 <= a, 0.0, a)",
        "    z[i] = wp.where(a <= -0.0, -0.0, a) * wp.where(s <= b, s, b)"})
    for (const double s : numbers) {
      SCOPED_TRACE(line);
      const Value x = real_array(numbers, ScalarType::f32);
      expect_same_tiles(one_axis(line), {7}, {x, x, x, scalar_value(ScalarType::f32, s)});
    }
}

TEST(Tile, LongChainsDoNotRecur) {
  std::string text =
      "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[float], y: wp.array[float]):\n    i = wp.tid()\n "
      "   v0 = x[i]\n";
  const int n = 20000;
  for (int i = 1; i <= n; ++i)
    text += "    v" + std::to_string(i) + " = v" + std::to_string(i - 1) + " * 1.0001\n";
  expect_same_tiles(text + "    y[i] = v" + std::to_string(n) + "\n", {3},
                    {random_values({3}), random_values({3})});
}

TEST(Tile, WhatTheyLeaveToBlocks) {
  EXPECT_NE(obstacle(one_axis("    z[i] = wp.pow(a, b)")), "");
  EXPECT_NE(obstacle(one_axis("    z[i + 1] = a")), "");
  EXPECT_NE(obstacle(one_axis("    if a > b:\n        z[i] = a")), "");
  EXPECT_NE(obstacle(one_axis("    z[i] = float(wp.float64(a) * wp.float64(b))")), "");
  EXPECT_EQ(obstacle(one_axis("    z[i] = a\n    y[i] = z[i]")), "a read behind a store");
  EXPECT_EQ(obstacle(one_axis("    s = s * 2.0\n    z[i] = a * s")), "a parameter that is assigned");
  EXPECT_EQ(obstacle(one_axis("    c = x[0]\n    x[i] = c + a")), "an array at two places");
  EXPECT_EQ(obstacle(one_axis("    z[0] = a")), "an array at two places");
  EXPECT_EQ(
      obstacle("import warp as wp\n\n\n@wp.kernel\ndef k(n: int, z: wp.array[float], c: wp.array[int]):\n"
               "    c[0] = wp.tid()\n    z[n] = 2.0\n"),
      "no thread index");
  EXPECT_EQ(
      obstacle("import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[float], y: wp.array[float], n: int):\n"
               "    i = wp.tid()\n    s = float(0.0)\n    for k in range(n):\n        s = s + x[i]\n"
               "    y[i] = s\n"),
      "more than assignments");
}

/// What only blocks can report, or do right, goes to them.
TEST(Tile, BlockProgramsUseThemWhereTheyFit) {
  const Module module = parse(one_axis("    z[i] = a * s + b"));
  const BlockProgram program(module, module.kernel());
  std::vector<float> x(100, 1), y(100, 2), z(100);
  float s = 3;
  ArrayArgument arrays[] = {{x.data(), {100}, {1}}, {y.data(), {100}, {1}}, {z.data(), {100}, {1}}};
  void* arguments[] = {&arrays[0], &arrays[1], &arrays[2], &s};
  std::int64_t dim[] = {100};
  program.run(dim, arguments);
  EXPECT_EQ(z[99], 5);
  arrays[1].shape[0] = 99;
  EXPECT_THROW(program.run(dim, arguments), KernelError);
  const Module unused = parse(one_axis("    z[i] = a"));
  EXPECT_THROW(BlockProgram(unused, unused.kernel()).run(dim, arguments), KernelError);  // b = y[i]
  arrays[1] = {y.data(), {50}, {2}};                                                     // not dense
  dim[0] = 50;
  y[98] = 7;
  program.run(dim, arguments);
  EXPECT_EQ(z[49], 10);
}

}  // namespace ferrite::kernel
