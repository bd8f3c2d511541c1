// Block programs against the interpreter: the corpus, every builtin, masks, errors, strides and speed limits.
#include "ferrite/kernel/block.hpp"

#include <gtest/gtest.h>

#include "packed_test.hpp"

namespace ferrite::kernel {

namespace {

PackedLaunch by_blocks(const Module& module, const Function& kernel) {
  return [&](const std::vector<std::int64_t>& dim, void* const* arguments, int block_dim) {
    const BlockProgram program(module, kernel);
    EXPECT_EQ(program.fallback(), "") << kernel.name;
    BlockOptions options;
    options.block_dim = block_dim;
    program.run(dim, arguments, options);
  };
}

/// Runs the only kernel of a text by blocks and by the interpreter, and expects the same bits.
void expect_same(const std::string& text, std::vector<std::int64_t> dim, const std::vector<Value>& values) {
  const Module module = parse(text);
  compare(module, module.kernel(), by_blocks(module, module.kernel()), dim, values, 256, 0);
}

Value random_array(std::int64_t n, ScalarType type = ScalarType::f32) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < n; ++i)
    x.push_back(is_float(type)
                    ? normal_at<float>({3, 1}, static_cast<std::uint64_t>(i))
                    : static_cast<double>(integer_at({3, 2}, static_cast<std::uint64_t>(i), -50, 50)));
  return real_array(x, type);
}

std::string failure(const std::string& text, std::vector<std::int64_t> dim, const std::vector<Value>& values,
                    BlockOptions options = {}) {
  const Module module = parse(text, "k.py");
  Memory memory(values);
  try {
    BlockProgram(module, module.kernel()).run(dim, memory.pointers().data(), options);
  } catch (const KernelError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(BlockProgram, DoesWhatTheInterpreterDoesOnTheCorpus) {
  for (const auto& file : corpus_files())
    for_each_run(file, [&](const Module& module, const Function& kernel, const auto& dim, const auto& values,
                           int block_dim) {
      compare(module, kernel, by_blocks(module, kernel), dim, values, block_dim, 8);
    });
}

TEST(BlockProgram, DoesWhatTheInterpreterDoesForEveryBuiltin) {
  const Module module = parse(builtin_kernels());
  for (const Function& kernel : module.kernels)  // values are f32 or less, stored as f64
    compare(module, kernel, by_blocks(module, kernel), {1}, builtin_arguments(module), 256, 4 * 0x1p29);
}

TEST(BlockProgram, LoopsWithTheSameBoundsInAllThreads) {
  const std::string head =
      "import warp as wp\n\n\n@wp.kernel\ndef k(v: wp.vec3, m: wp.mat22, n: int, x: wp.array[float]):\n    i "
      "= wp.tid()\n    s = float(0.0)\n    if i > 2:\n        for q in range(";
  const std::string tail = "):\n            s += 1.0\n    x[i] = s\n";
  Value v = scalar_value(ScalarType::f32, 1), m = v;
  v.type = Type::vector(3, ScalarType::f32);
  v.numbers = {from_real(1), from_real(2), from_real(9)};
  m.type = Type::matrix(2, ScalarType::f32);
  m.numbers = {from_real(3), from_real(1), from_real(2), from_real(2)};
  for (const char* bound : {"n", "wp.argmax(v)", "int(wp.determinant(m))", "int(wp.trace(m))", "int(v[1])",
                            "n // 2 + 1", "n // (n - 3)", "wp.max(n, 2) * 2"}) {
    SCOPED_TRACE(bound);
    expect_same(head + bound + tail, {70}, {v, m, scalar_value(ScalarType::i32, 4), random_array(70)});
  }
}

TEST(BlockProgram, LocalArraysThatNothingUses) {
  expect_same(
      "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[float]):\n    a = wp.zeros(shape=(4000,), "
      "dtype=float)\n    x[wp.tid()] = 1.0\n",
      {2000}, {random_array(2000)});
}

TEST(BlockProgram, ParametersMayBeAssigned) {
  for (const char* lines : {"    a = a * 2.0\n    y[i] = x[i] * a\n", "    a = x[i]\n    y[i] = a * a\n"})
    expect_same(
        "import warp as wp\n\n\n@wp.kernel\ndef k(a: float, x: wp.array[float], y: wp.array[float]):\n    i "
        "= wp.tid()\n" +
            std::string(lines),
        {100}, {scalar_value(ScalarType::f32, 3), random_array(100), random_array(100)});
}

TEST(BlockProgram, FunctionsOfSixteenBitsAreRounded) {
  for (const ScalarType type : {ScalarType::f16, ScalarType::bf16})
    for (const char* f : {"wp.sqrt(wp.abs(x[i]))", "-x[i]", "wp.floor(x[i])"}) {
      const std::string array = "wp.array[" + to_string(Type::of(type)) + "]";
      expect_same("import warp as wp\n\n\n@wp.kernel\ndef k(x: " + array + ", y: " + array +
                      "):\n    i = wp.tid()\n    y[i] = " + f + "\n",
                  {200}, {random_array(200, type), random_array(200, type)});
    }
}

TEST(BlockProgram, ArithmeticHasTheBitsOfTheInterpreter) {
  for (const ScalarType type : {ScalarType::f16, ScalarType::bf16, ScalarType::f32, ScalarType::f64}) {
    const std::string name = to_string(Type::of(type));
    expect_same(kernel_of("i = wp.tid()\na = x[i]\nb = y[i]\n"
                          "c = a * b + a / b - wp.sqrt(wp.abs(a)) * wp.lerp(a, b, a)\n"
                          "c += wp.smoothstep(a, b, c) + wp.min(a, b) * wp.clamp(c, a, b) + a // b + a % b\n"
                          "y[i] = wp.where(a < b, c, wp.round(c) - wp.pow(wp.abs(a), b))",
                          "x: wp.array[" + name + "], y: wp.array[" + name + "]"),
                {1000}, {random_array(1000, type), random_array(1000, type)});
  }
  for (const ScalarType type : {ScalarType::i8, ScalarType::u8, ScalarType::i16, ScalarType::u16,
                                ScalarType::i32, ScalarType::u32, ScalarType::i64, ScalarType::u64}) {
    const std::string name = to_string(Type::of(type)), one = name + "(1)";
    expect_same(kernel_of("i = wp.tid()\na = x[i]\nb = y[i] | " + one +
                              "\nc = a * b + a / b - a % b\nc += a // b ^ ~a & b\n"
                              "d = c << (a & " +
                              name +
                              "(3))\n"
                              "y[i] = d - (c >> (b & " +
                              name + "(3))) + wp.min(a, b) * wp.abs(a) + wp.sign(b)",
                          "x: wp.array[" + name + "], y: wp.array[" + name + "]"),
                {1000}, {random_array(1000, type), random_array(1000, type)});
  }
}

TEST(BlockProgram, MasksHoldInNestedLoopsAndFunctions) {
  const std::string text = R"(import warp as wp


@wp.func
def search(x: wp.array[int], wanted: int):
    for k in range(x.shape[0]):
        if x[k] == wanted:
            return k
        if k > 40:
            break
    return -1


@wp.kernel
def k(x: wp.array[int], y: wp.array[int]):
    i = wp.tid()
    if i % 7 == 3:
        return
    total = int(0)
    n = i % 13
    while n > 0:
        n -= 1
        if n % 3 == 1:
            continue
        for j in range(n, -4, -2):
            if j == 1 and x[j] > 0:
                break
            total += search(x, j + n) * (j if x[wp.abs(j)] < 3 else x[wp.abs(j)])
        if total > 90:
            y[i] = total
            return
    y[i] = -total
)";
  expect_same(text, {700}, {random_array(700, ScalarType::i32), random_array(700, ScalarType::i32)});
}

TEST(BlockProgram, LoopsInBranchesLeaveTheOtherLanesAlone) {
  expect_same(kernel_of("i = wp.tid()\nfor k in range(3):\n    x[i] = x[i] + 1.0\nif i % 2 == 0:\n"
                        "    for k in range(5):\n        x[i] = x[i] * 2.0\nx[i] = x[i] + float(k)",
                        "x: wp.array[float]"),
              {100}, {random_array(100)});
}

TEST(BlockProgram, ThreadsThatAddToOneElementAllCount) {
  const Module module = parse(kernel_of("i = wp.tid()\nv[0][i % 3] += 1.0", "v: wp.array[wp.vec3]"));
  const BlockProgram program(module, module.kernel());
  const auto run = [&](const std::vector<std::int64_t>& dim, void* const* arguments, int) {
    program.run(dim, arguments);
  };
  compare(module, module.kernel(), run, {99}, {array_value(module, Type::vector(3).array(1), {1})}, 256, 0);
}

TEST(BlockProgram, PartsWithComputedIndices) {
  expect_same(kernel_of("i = wp.tid()\nv = wp.vec3(x[i], 1.0, 2.0)\nm = wp.mat33(1.0)\n"
                        "v[i % 3] = 5.0\nm[i % 3, (i + 1) % 3] += v[(i + 1) % 3]\nm[i % 2] = v\n"
                        "w = wp.vec3(v[1], v[2], v[0])\nv = wp.vec3(w[2], w[0], w[1])\n"
                        "a = wp.zeros(shape=(3, 2), dtype=float)\na[i % 3, 1] = v[0]\na[1, i % 2] += 2.0\n"
                        "x[i] = m[1, i % 3] + m[i % 2][i % 3] + a[i % 3, 1] * a[1, 0] + w[i % 3]",
                        "x: wp.array[float]"),
              {200}, {random_array(200)});
}

TEST(BlockProgram, ReadsAndWritesThroughStrides) {
  const Module module = parse(kernel_of("i, j = wp.tid()\ny[i, j] = x[i, j] * 2.0 + b[i, j]",
                                        "x: wp.array2d[float], b: wp.array2d[float], y: wp.array2d[float]"));
  std::vector<float> x(300 * 7), b{1, 2, 3, 4, 5, 6, 7}, y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  ArrayArgument arrays[3] = {
      {x.data(), {7, 300}, {1, 7}}, {b.data(), {7, 300}, {1, 0}}, {y.data(), {7, 300}, {300, 1}}};
  void* arguments[] = {&arrays[0], &arrays[1], &arrays[2]};
  BlockProgram(module, module.kernel()).run(std::vector<std::int64_t>{7, 300}, arguments);
  for (int i = 0; i < 7; ++i)
    for (int j = 0; j < 300; ++j)
      ASSERT_EQ(y[static_cast<std::size_t>(i * 300 + j)], static_cast<float>(2 * (j * 7 + i) + i + 1));
}

TEST(BlockProgram, AtomicsOfManyThreadsAddUp) {
  expect_same(kernel_of("i = wp.tid()\nat = wp.atomic_add(n, 0, 1)\nn[at + 1] = i\nwp.atomic_max(n, 1, i)",
                        "n: wp.array[int]"),
              {5000}, {array_value({}, int_type.array(1), {5001})});
}

TEST(BlockProgram, ErrorsNameThePlaceTheThreadAndTheValues) {
  const std::string parameters = "x: wp.array[float], n: wp.array[int]";
  const std::vector<Value> values{random_array(20), array_value({}, int_type.array(1), {20})};
  const auto lines = [&](const std::string& text, BlockOptions options = {}) {
    return failure(kernel_of(text, parameters), {32}, values, options);
  };
  EXPECT_NE(lines("x[wp.tid()] = 1.0")
                .find("index [20] is outside array 'x' of shape [20] (thread [20] of grid [32])"),
            std::string::npos);
  EXPECT_NE(lines("i = wp.tid()\nx[i - 21] = 1.0").find("index [-21] is outside array 'x'"),
            std::string::npos);
  EXPECT_NE(lines("i = wp.tid()\nif i < 20:\n    n[i] = 7 / (i - 4)").find("7 divided by zero (thread [4]"),
            std::string::npos);
  EXPECT_NE(lines("i = wp.tid()\nassert i < 9, \"few\"").find("assertion failed: few (thread [9]"),
            std::string::npos);
  EXPECT_NE(lines("v = wp.vec3(1.0)\nx[0] = v[wp.tid()]").find("index 3 is outside"), std::string::npos);
  EXPECT_EQ(lines("i = wp.tid()\nif i < 20 and x[i] < 99.0:\n    n[i] = 7"), "");
  BlockOptions limited;
  limited.step_limit = 1000;
  EXPECT_NE(lines("i = wp.tid()\nwhile i >= 0:\n    n[0] = i", limited).find("more than 1000 steps"),
            std::string::npos);
  BlockOptions blocks;
  blocks.block_dim = 16;
  EXPECT_NE(lines("i = wp.tid()\nif i != 5:\n    wp.sync_threads()", blocks)
                .find("thread 5 of the block does not reach this barrier (thread [0]"),
            std::string::npos);
}

TEST(BlockProgram, TheInterpreterTakesWhatBlocksCannot) {
  const Module module = parse(kernel_of("a = x\nif wp.tid() > 2:\n    a = y\na[wp.tid()] = 4.0",
                                        "x: wp.array[float], y: wp.array[float]"));
  const BlockProgram program(module, module.kernel());
  EXPECT_NE(program.fallback(), "");
  const std::vector<Value> values{random_array(5), random_array(5)};
  const auto run = [&](const std::vector<std::int64_t>& dim, void* const* arguments, int) {
    program.run(dim, arguments);
  };
  compare(module, module.kernel(), run, {5}, values, 256, 0);
}

}  // namespace ferrite::kernel
