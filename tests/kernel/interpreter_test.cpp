// What kernels mean: order, precision, scope of values, and errors while they run.
#include <algorithm>
#include <cmath>

#include "kernel_test.hpp"

namespace ferrite::kernel {
namespace {

using Reals = std::vector<double>;

std::string run_error(const std::string& text, std::vector<std::int64_t> dim, std::vector<Value> arguments,
                      const InterpretOptions& options = {}) {
  try {
    launch(text, dim, arguments, options);
  } catch (const KernelError& e) {
    return e.what();
  }
  return "";
}

TEST(KernelInterpreter, EveryCorpusKernelAgreesWithItsF64Run) {
  const std::regex launches("# run: (.*)\n@wp\\.kernel.*\ndef (\\w+)");
  int kernels = 0;
  for (const auto& file : corpus_files()) {
    const std::string text = read_file(file);
    const Module module = parse(text, file.filename().string());
    for (std::sregex_iterator found(text.begin(), text.end(), launches), end; found != end;
         ++found, ++kernels) {
      SCOPED_TRACE((*found)[2].str());
      std::map<std::string, std::string> run;
      std::istringstream words((*found)[1].str());
      for (std::string word; words >> word;)
        run[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
      const auto extents = [](std::string text_of) {
        std::replace(text_of.begin(), text_of.end(), 'x', ' ');
        std::istringstream in(text_of);
        return std::vector<std::int64_t>(std::istream_iterator<std::int64_t>(in), {});
      };
      const Function& k = module.kernel((*found)[2].str());
      std::vector<Value> native;
      for (int i = 0; i < k.parameters; ++i) {
        const Variable& p = k.variables[static_cast<std::size_t>(i)];
        const std::string how = run[p.name];
        if (p.type.is_struct()) {  // functions.py: a Material
          native.push_back({p.type, {from_real(2), from_real(1), from_real(2), from_real(3)}, {}, {}});
        } else if (!p.type.is_array()) {
          native.push_back(scalar_value(p.type.scalar, std::stod(how)));
        } else {
          std::vector<std::int64_t> shape = extents(how.substr(how.find(':') + 1));
          shape.resize(p.type.dims);
          native.push_back(array_value(module, p.type, shape));
          for (std::size_t n = 0; n < native.back().numbers.size() && !how.starts_with("zeros"); ++n) {
            const RandomKey key{1, static_cast<std::uint64_t>(i)};
            const double x = how.starts_with("normal") ? normal_at<float>(key, n)
                                                       : static_cast<double>(integer_at(key, n, 0, 100));
            native.back().numbers[n] = scalar_value(p.type.scalar, x).numbers[0];
          }
        }
      }
      std::vector<Value> wide = native;
      InterpretOptions options;
      if (run.contains("block")) options.block_dim = std::stoi(run["block"]);
      interpret(module, k, extents(run["dim"]), native, options);
      options.precision = Precision::f64;
      interpret(module, k, extents(run["dim"]), wide, options);
      for (std::size_t a = 0; a < native.size(); ++a) {
        const Reals got = reals(native[a]), want = reals(wide[a]);
        double largest = 1;
        for (const double x : want) largest = std::max(largest, std::fabs(x));
        const double bound = largest * (k.name == "halves" ? 4e-3 : 64 * 6e-8);
        for (std::size_t n = 0; n < got.size(); ++n)
          ASSERT_NEAR(got[n], want[n], bound) << k.variables[a].name << " " << n;
      }
    }
  }
  EXPECT_GE(kernels, 50);
}

TEST(KernelInterpreter, EveryOperationIsRounded) {
  EXPECT_EQ(run_lines("out[0] = 16777216.0 + 1.0 - 16777216.0")[0], 0);
  EXPECT_EQ(
      run_lines("out[0] = wp.float16(2048.0) + wp.float16(1.0) - wp.float16(2048.0)", ScalarType::f16)[0], 0);
  EXPECT_EQ(
      run_lines("out[0] = wp.bfloat16(256.0) + wp.bfloat16(1.0) - wp.bfloat16(256.0)", ScalarType::bf16)[0],
      0);
  InterpretOptions wide;
  wide.precision = Precision::f64;
  EXPECT_EQ(run_lines("out[0] = 16777216.0 + 1.0 - 16777216.0", ScalarType::f32, wide)[0], 1);
  EXPECT_EQ(run_lines("out[0] = 0.1", ScalarType::f32)[0], 0.1f);
  EXPECT_EQ(run_lines("out[0] = float(16777217)")[0], 16777216);
}

TEST(KernelInterpreter, CastsSaturateAndWrap) {
  EXPECT_EQ(run_lines("out[0] = int(3.0e9)\nout[1] = int(-3.0e9)\nout[2] = int(wp.nan)", ScalarType::i32),
            (Reals{2147483647, -2147483648.0, 0, 0}));
  EXPECT_EQ(run_lines("out[0] = wp.uint8(-3.7)\nn = int(259)\nout[1] = wp.uint8(n)\nout[2] = wp.uint8(700.0)",
                      ScalarType::u8),
            (Reals{0, 3, 255, 0}));
  EXPECT_EQ(run_lines("out[0] = wp.int64(1.0e30)", ScalarType::i64)[0], 9223372036854775807.0);
}

TEST(KernelInterpreter, ValuesAreCopied) {
  EXPECT_EQ(
      run_lines("v = wp.vec3(1.0, 2.0, 3.0)\nw = v\nw[0] = 9.0\nv, w = w, v\nout[0] = v[0]\nout[1] = w[0]"),
      (Reals{9, 1, 0, 0}));
}

TEST(KernelInterpreter, TheLoopOwnsItsRange) {
  EXPECT_EQ(
      run_lines(
          "n = int(3)\nfor k in range(n):\n    n = 10\n    k += 1\n    out[0] += 1.0\nout[1] = float(k)"),
      (Reals{3, 3, 0, 0}));
  EXPECT_EQ(run_lines("for k in range(5, 5):\n    out[0] = 1.0")[0], 0);
  EXPECT_EQ(run_lines("for k in range(2147483646, 2147483647, 5):\n    out[0] += 1.0")[0], 1);
  EXPECT_EQ(
      run_lines(
          "for k in range(wp.uint64(1), wp.uint64(18446744073709551615), wp.uint64(9223372036854775807)):\n"
          "    out[0] += 1.0")[0],
      2);
}

TEST(KernelInterpreter, OnlyOneBranchIsEvaluated) {
  EXPECT_EQ(
      run_lines("if len(out) > 9 and out[9] > 0.0:\n    out[0] = 1.0\nout[1] = 2.0 if True else out[9]"),
      (Reals{0, 2, 0, 0}));
}

TEST(KernelInterpreter, ThreadsRunInOrder) {
  std::vector<Value> arguments{real_array(Reals(6)), real_array({0})};
  launch(kernel_of("i = wp.tid()\nout[i] = wp.atomic_add(total, 0, 1.0)",
                   "out: wp.array[float], total: wp.array[float]"),
         {6}, arguments);
  EXPECT_EQ(reals(arguments[0]), (Reals{0, 1, 2, 3, 4, 5}));
}

TEST(KernelInterpreter, GridOfOtherRankThanTid) {
  std::vector<Value> arguments{real_array(Reals(6))};
  const std::string linear = kernel_of("out[wp.tid()] = float(wp.tid())");
  launch(linear, {2, 3}, arguments);
  EXPECT_EQ(reals(arguments[0]), (Reals{0, 1, 2, 3, 4, 5}));
  EXPECT_THROW(launch(kernel_of("i, j = wp.tid()\nout[i] = float(j)"), {6}, arguments), ShapeError);
  EXPECT_NO_THROW(launch(linear, {0}, arguments));
  EXPECT_THROW(launch(linear, {}, arguments), ShapeError);
  EXPECT_THROW(launch(linear, {-1}, arguments), ShapeError);
  EXPECT_THROW(launch(linear, {1 << 20, 1 << 20}, arguments), ShapeError);
}

TEST(KernelInterpreter, ErrorsWhileRunning) {
  const std::vector<Value> out{real_array(Reals(4))};
  EXPECT_EQ(
      run_error(kernel_of("i = wp.tid()\nout[i + 2] = 1.0"), {2, 3}, out),
      "[kernel] kernel.py:7:8: index [4] is outside array 'out' of shape [4] (thread [0, 2] of grid [2, 3])\n"
      "    out[i + 2] = 1.0\n       ^");
  const auto expect = [&](const std::string& lines, const std::string& problem) {
    InterpretOptions options;
    options.step_limit = 10000;
    const std::string message = run_error(kernel_of(lines), {1}, out, options);
    EXPECT_NE(message.find(problem), std::string::npos) << lines << ": " << message;
  };
  expect("n = int(0)\nm = 3 / n", "3 divided by zero");
  expect("n = int(0)\nm = 3 % n", "3 divided by zero");
  expect("n = int(-2147483648)\nm = n // -1", "-2147483648 / -1 does not fit int");
  expect("n = int(32)\nm = 1 << n", "shift by 32: int has 32 bits");
  expect("n = int(3)\nv = wp.vec3()\nv[n] = 1.0", "index 3 is outside wp.vec3");
  expect("if len(out) > 9:\n    z = 1.0\nout[0] = z", "variable 'z' is read before it was assigned");
  expect("while True:\n    pass", "more than 10000 steps");
  expect("for k in range(2000000000):\n    pass", "more than 10000 steps");
  expect("n = int(0)\nfor k in range(0, 5, n):\n    pass", "the step of a range is zero");
  expect("assert len(out) == 5", "assertion failed");
  expect("assert len(out) == 5, \"five\"", "assertion failed: five");
  expect("wp.expect_eq(2 + 2, 5)", "expected 5, got 4");
  expect("wp.expect_eq(wp.vec2(1.0, 2.0), wp.vec2(1.0, 3.0))", "expected (1, 3), got (1, 2)");
  expect("wp.expect_near(1.0, 1.1, 0.05)", "expected 1.1");
  expect("b = wp.zeros(shape=(2, 2), dtype=float)\nb[1, 2] = 1.0",
         "index [1, 2] is outside array 'b' of shape [2, 2]");
  expect("s = wp.rand_init(1)\nn = wp.randi(s, 3, 3)", "there is no number between 3 and 3");
  EXPECT_EQ(run_error(kernel_of("wp.expect_eq(4, 4)\nwp.expect_near(1.0, 1.0 + 1.0e-7)"), {1}, out), "");
}

TEST(KernelInterpreter, Barriers) {
  InterpretOptions options;
  options.block_dim = 4;
  const std::vector<Value> out{real_array(Reals(8))};
  const auto message = [&](const std::string& lines) {
    return run_error(kernel_of(lines), {8}, out, options);
  };
  EXPECT_NE(message("if wp.tid() == 1:\n    wp.sync_threads()")
                .find("thread 0 of the block does not reach this barrier"),
            std::string::npos);
  EXPECT_NE(message("if wp.tid() == 6:\n    return\nwp.sync_threads()")
                .find("thread 2 of the block does not reach"),
            std::string::npos);
  EXPECT_NE(message("for k in range(wp.tid()):\n    wp.sync_threads()").find("does not reach"),
            std::string::npos);
  EXPECT_EQ(message("for k in range(3):\n    if k == 2:\n        break\n    wp.sync_threads()"), "");
  std::vector<Value> arguments = out;
  EXPECT_THROW(launch(kernel_of("wp.sync_threads()"), {7}, arguments, options), ValueError);
}

TEST(KernelInterpreter, EachBlockHasItsOwnSharedArray) {
  InterpretOptions options;
  options.block_dim = 4;
  std::vector<Value> arguments{real_array(Reals(8))};
  launch(kernel_of("i = wp.tid()\ns = wp.shared_array(shape=1, dtype=float)\ns[0] = s[0] + "
                   "float(i)\nwp.sync_threads()\n"
                   "out[i] = s[0]"),
         {8}, arguments, options);
  EXPECT_EQ(reals(arguments[0]), (Reals{6, 6, 6, 6, 22, 22, 22, 22}));
}

TEST(KernelInterpreter, StructsOfArrays) {
  const std::string text =
      "import warp as wp\n\n\n@wp.struct\nclass P:\n    x: wp.array[float]\n    scale: "
      "float\n\n\n@wp.kernel\ndef k(p: P):\n"
      "    i = wp.tid()\n    p.x[i] = p.x[i] * p.scale\n    p.scale = 0.0\n";
  std::vector<Value> arguments{
      {Type::structure_of(0), {}, {}, {real_array({1, 2}), scalar_value(ScalarType::f32, 3)}}};
  launch(text, {2}, arguments);
  EXPECT_EQ(reals(arguments[0].fields[0]), (Reals{3, 6}));
}

TEST(KernelInterpreter, ArraysOfStructs) {
  const std::string text =
      "import warp as wp\n\n\n@wp.struct\nclass P:\n    x: float\n    v: wp.vec2\n\n\n@wp.kernel\ndef k(p: "
      "wp.array[P]):\n"
      "    i = wp.tid()\n    q = p[i]\n    q.x += 1.0\n    p[i] = q\n    p[i].v[1] = q.x * 2.0\n";
  const Module module = parse(text);
  std::vector<Value> arguments{array_value(module, Type::structure_of(0).array(1), {2})};
  interpret(module, module.kernel(), std::vector<std::int64_t>{2}, arguments);
  EXPECT_EQ(reals(arguments[0]), (Reals{1, 0, 2, 1, 0, 2}));
}

TEST(KernelInterpreter, ArgumentsMustFit) {
  const std::string text = kernel_of("out[0] = x", "out: wp.array[float], x: float");
  std::vector<Value> none, wrong{real_array({1}), real_array({1})},
      doubles{real_array({1}, ScalarType::f64), scalar_value(ScalarType::f32, 1)};
  EXPECT_THROW(launch(text, {1}, none), ValueError);
  EXPECT_THROW(launch(text, {1}, wrong), ValueError);
  EXPECT_THROW(launch(text, {1}, doubles), ValueError);
  std::vector<Value> small{real_array({1}), scalar_value(ScalarType::f32, 1)};
  small[0].shape = {5};
  EXPECT_THROW(launch(text, {1}, small), ShapeError);
}

TEST(KernelValues, TensorsRoundTrip) {
  const std::vector<float> data{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const HostTensor tensor = HostTensor::from(std::span<const float>(data), Shape{4, 3});
  const Value value = value_from(Type::vector(3).array(1), tensor);
  EXPECT_EQ(value.shape, (std::vector<std::int64_t>{4}));
  const HostTensor back = tensor_from(value);
  EXPECT_EQ(back.shape(), tensor.shape());
  EXPECT_TRUE(std::equal(data.begin(), data.end(), back.as<float>().begin()));
  EXPECT_THROW(value_from(Type::vector(4).array(1), tensor), ShapeError);
  EXPECT_THROW(value_from(float_type.array(1), tensor), ShapeError);
  const std::vector<std::int32_t> words{-1, 5};
  const Value unsigned_words = value_from(Type::of(ScalarType::u32).array(1),
                                          HostTensor::from(std::span<const std::int32_t>(words), Shape{2}));
  EXPECT_EQ(reals(unsigned_words), (Reals{4294967295.0, 5}));
  EXPECT_EQ(tensor_from(unsigned_words).as<std::int32_t>()[0], -1);
  const std::vector<std::uint16_t> tokens{65535, 7};
  const Value stored = value_from(Type::of(ScalarType::i32).array(1),
                                  HostTensor::from(std::span<const std::uint16_t>(tokens), Shape{2}));
  EXPECT_EQ(reals(stored), (Reals{65535, 7}));
}

}  // namespace
}  // namespace ferrite::kernel
