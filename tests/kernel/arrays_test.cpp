// Arrays at their edges: indices from the end, arrays that would outlive their function, arrays never set.
#include "ferrite/kernel/adjoint.hpp"
#include "ferrite/kernel/block.hpp"
#include "packed_test.hpp"

namespace ferrite::kernel {
namespace {

const std::string head = "import warp as wp\n\n";

/// What the interpreter says when the only kernel of a text runs with `out`, four ints, in one thread.
std::string failure(const std::string& text) {
  const Module module = parse(text, "k.py");
  std::vector<Value> arguments{array_value(module, int_type.array(1), {4})};
  try {
    interpret(module, module.kernel(), std::vector<std::int64_t>{1}, arguments);
  } catch (const KernelError& e) {
    return e.what();
  }
  return "";
}
std::string failure_in_blocks(const std::string& text) {
  const Module module = parse(text, "k.py");
  Memory memory({array_value(module, int_type.array(1), {4})});
  try {
    BlockProgram(module, module.kernel()).run(std::vector<std::int64_t>{1}, memory.pointers().data());
  } catch (const KernelError& e) {
    return e.what();
  }
  return "";
}

TEST(KernelArrays, NegativeIndicesCountFromTheEnd) {
  EXPECT_EQ(run_lines("out[-1] = 5.0\nout[-4] = 1.0"), (std::vector<double>{1, 0, 0, 5}));
  EXPECT_EQ(run_lines("i = wp.tid()\nout[i - 1] = 5.0\nwp.atomic_add(out, i - 2, 3.0)\nout[i - 3] += 7.0"),
            (std::vector<double>{0, 7, 3, 5}));
  EXPECT_EQ(run_lines("v = wp.vec3(1.0, 2.0, 3.0)\ni = wp.tid()\nout[0] = v[i - 1]\nv[i - 3] = 9.0\n"
                      "out[1] = v[0]"),
            (std::vector<double>{3, 9, 0, 0}));
  EXPECT_EQ(run_lines("m = wp.mat22(1.0, 2.0, 3.0, 4.0)\ni = wp.tid()\nout[0] = m[i - 1, i - 2]\n"
                      "r = m[i - 2]\nout[1] = r[-1]"),
            (std::vector<double>{3, 2, 0, 0}));
  EXPECT_EQ(run_lines("t = wp.zeros(shape=(2, 3), dtype=float)\nout[0] = float(t.shape[-1])\n"
                      "out[1] = float(t.shape[-2])"),
            (std::vector<double>{3, 2, 0, 0}));
}

TEST(KernelArrays, OneTurnIsAllThatIsTaken) {
  const auto text = [](const std::string& line) {
    return kernel_of("i = wp.tid()\n" + line, "out: wp.array[int]");
  };
  for (const auto& run : {failure, failure_in_blocks}) {
    EXPECT_NE(run(text("out[i - 5] = 1")).find("index [-5] is outside array 'out' of shape [4]"),
              std::string::npos);
    EXPECT_NE(run(text("wp.atomic_add(out, i - 5, 1)")).find("index [-5] is outside"), std::string::npos);
    EXPECT_NE(run(text("v = wp.vec2i(1, 2)\nout[0] = v[i - 3]")).find("index -3 is outside wp.vec2i"),
              std::string::npos);
    EXPECT_EQ(run(text("out[i - 4] = 1")), "");
  }
}

TEST(KernelArrays, TilesEndAtTheFirstElement) {
  const Module module = parse(kernel_of("t = wp.tile_load(x, shape=4, offset=-2)\nwp.tile_store(y, t)",
                                        "x: wp.array[float], y: wp.array[float]"));
  std::vector<Value> arguments{real_array({1, 2, 3, 4}), real_array({9, 9, 9, 9})};
  InterpretOptions options;
  options.block_dim = 4;
  interpret(module, module.kernel(), std::vector<std::int64_t>{4}, arguments, options);
  EXPECT_EQ(reals(arguments[1]), (std::vector<double>{0, 0, 1, 2}));
}

TEST(KernelArrays, EmittedCodeLooksAtTheSignWhereItMayBeNegative) {
  const Module plain =
      parse(kernel_of("i = wp.tid()\n"
                      "for k in range(4):\n"
                      "    y[i] = x[k] + x[i + 1] + x[i % 4] + x[len(x) // 2] + x[wp.min(i, 3)]",
                      "x: wp.array[float], y: wp.array[float]"));
  for (const std::string& text : {emit_cuda(plain), emit_cpp(plain)}) {
    EXPECT_EQ(text.find(".at("), std::string::npos) << text;
    EXPECT_EQ(text.find("from_end"), std::string::npos) << text;
  }
  const Module wraps = parse(
      kernel_of("i = wp.tid()\ny[i - 1] = x[n] + a[i, n - 1] + v[n] + v[i % 3]\nwp.atomic_add(y, 4 * i, 1.0)",
                "x: wp.array[float], y: wp.array[float], a: wp.array2d[float], v: wp.vec3, n: int"));
  for (const std::string& text : {emit_cuda(wraps), emit_cpp(wraps)})
    for (const char* part : {"y.at(i - 1)", "x.at(n)", "a.at(i, n - 1)", "v[from_end(n, 3)]", "v[i % 3]",
                             "y.at(4 * i)", "(i < 0 ? i + shape[0] : i) * strides[0]"})
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(KernelArrays, FunctionsDoNotReturnTheirOwn) {
  const std::string make = "    own = wp.zeros(shape=2, dtype=int)\n";
  const auto refused = [&](const std::string& function, const std::string& at) {
    const std::string message =
        error_of(head + "@wp.struct\nclass S:\n    a: wp.array[int]\n    n: int\n\n" +
                 "@wp.func\ndef same(x: wp.array[int]):\n    return x\n\n" + function);
    EXPECT_NE(message.find("'f' returns its own array 'own', which ends with the call"), std::string::npos)
        << function << message;
    const std::size_t first = message.find('\n'), second = message.rfind('\n');
    ASSERT_NE(first, std::string::npos);
    EXPECT_EQ(message.substr(second + 1).size() - 1, message.substr(first + 1).find(at)) << message;
  };
  refused("@wp.func\ndef f():\n" + make + "    return own\n", "own");
  refused("@wp.func\ndef f():\n" + make + "    b = own\n    c = b\n    return c\n", "c");
  refused("@wp.func\ndef f():\n" + make + "    return 1, own\n", "own");
  refused("@wp.func\ndef f():\n" + make + "    return S(own, 1)\n", "S(");
  refused("@wp.func\ndef f():\n" + make + "    s = S()\n    s.a = own\n    return s\n", "s");
  refused("@wp.func\ndef f():\n" + make + "    s = S()\n    s.a = own\n    return s.a\n", "a");
  refused("@wp.func\ndef f():\n" + make + "    return same(own)\n", "same");
  refused("@wp.func\ndef f(x: wp.array[int], n: int):\n" + make +
              "    b = x\n    if n > 0:\n        b = own\n    return b\n",
          "b");
  const std::string fine =
      head + "@wp.struct\nclass S:\n    a: wp.array[int]\n\n@wp.func\ndef f(x: wp.array[int]):\n" + make +
      "    own[0] = 1\n    return x\n\n@wp.func\ndef g(x: wp.array[int]):\n" + make +
      "    s = S(x)\n    return s, own[0]\n";
  EXPECT_EQ(error_of(fine), "");
}

TEST(KernelArrays, AnArrayThatWasNeverSetIsAnError) {
  const std::string start = head +
                            "@wp.struct\nclass S:\n    n: int\n    a: wp.array2d[int]\n\n"
                            "@wp.func\ndef rows(s: S) -> int:\n    return s.a.shape[1]\n\n"
                            "@wp.kernel\ndef k(out: wp.array[int]):\n    s = S()\n    ";
  for (const char* line :
       {"out[0] = s.a.shape[1]", "out[0] = s.a[0, 0]", "out[0] = len(s.a)", "s.a[0, 0] = 1",
        "out[0] = rows(s)", "wp.atomic_add(s.a, 0, 0, 1)", "s.a[0, 0] += 1", "b = s.a\n    out[0] = b[0, 0]",
        "t = s\n    out[0] = len(t.a)"}) {
    for (const auto& run : {failure, failure_in_blocks}) {
      const std::string message = run(start + line + "\n");
      EXPECT_NE(message.find("this array was never set"), std::string::npos) << line << ": " << message;
      EXPECT_NE(message.find("k.py:"), std::string::npos) << message;
    }
  }
  EXPECT_EQ(failure(start + "out[0] = s.n\n"), "");
}

TEST(KernelArrays, AStructThatHoldsArraysIsGivenByItsFields) {
  const Module module = parse(head +
                              "@wp.struct\nclass S:\n    a: wp.array[int]\n\n@wp.kernel\ndef k(s: S):\n"
                              "    s.a[0] = 1\n");
  std::vector<Value> arguments{{Type::structure_of(0), {from_integer(1)}, {}, {}}};
  EXPECT_THROW(interpret(module, module.kernel(), std::vector<std::int64_t>{1}, arguments), ValueError);
}

TEST(KernelArrays, BlocksFollowAFieldThatTakesAnotherArray) {
  const Module module = parse(head +
                              "@wp.struct\nclass S:\n    a: wp.array[int]\n\n"
                              "@wp.kernel\ndef k(x: wp.array[int], y: wp.array[int]):\n"
                              "    s = S(x)\n    s.a = y\n    s.a[wp.tid()] = 7\n");
  Memory memory({array_value(module, int_type.array(1), {2}), array_value(module, int_type.array(1), {2})});
  BlockProgram(module, module.kernel()).run(std::vector<std::int64_t>{2}, memory.pointers().data());
  EXPECT_EQ(read_packed(ScalarType::i32, memory.data[0].data()).integer, 0);
  EXPECT_EQ(read_packed(ScalarType::i32, memory.data[1].data()).integer, 7);
}

}  // namespace
}  // namespace ferrite::kernel
