// Texts made to break the parser: an error with a place, or a kernel, never a crash.
#include "kernel_test.hpp"

#include <algorithm>

#include "ferrite/kernel/adjoint.hpp"
#include "ferrite/kernel/emit.hpp"

namespace ferrite::kernel {
namespace {

std::string repeat(const std::string& part, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += part;
  return all;
}

TEST(KernelHostile, DeepNestingIsAnError) {
  const int deep = 100000;
  const std::string hint = "nested too deep";
  for (const std::string& expression :
       {repeat("(", deep) + "x" + repeat(")", deep), repeat("-", deep) + "x", repeat("not ", deep) + "x",
        "x" + repeat(" + x", deep), "x" + repeat(" ** x", deep), "x" + repeat("[0]", deep),
        "x" + repeat(".a", deep), repeat("wp.sin(", deep) + "x" + repeat(")", deep),
        "x" + repeat(" if x else x", deep), "x" + repeat(" and x", deep), "x" + repeat("(x)", deep)}) {
    const std::string message = error_of(kernel_of("y = " + expression, "x: float"));
    EXPECT_NE(message.find(hint), std::string::npos)
        << expression.substr(0, 20) << ": " << message.substr(0, 200);
    EXPECT_LT(message.size(), 1000u);
  }
  std::string blocks = "@wp.kernel\ndef k():\n";
  for (int i = 1; i < 500; ++i) blocks += repeat(" ", i) + "if True:\n";
  EXPECT_NE(error_of(blocks + repeat(" ", 500) + "pass\n").find("blocks nested too deep"), std::string::npos);
  const std::string chain = "if x > 0.0:\n    pass\n" + repeat("elif x > 1.0:\n    pass\n", 5000);
  EXPECT_NE(error_of(kernel_of(chain, "x: float")).find("too many branches"), std::string::npos);
}

TEST(KernelHostile, WhatIsDeepButFairWorks) {
  EXPECT_EQ(error_of(kernel_of("y = x" + repeat(" + x", 140), "x: float")), "");
  EXPECT_EQ(error_of(kernel_of("y = " + repeat("(", 50) + "x" + repeat(")", 50), "x: float")), "");
  EXPECT_EQ(
      error_of(kernel_of("if x > 0.0:\n    pass\n" + repeat("elif x > 1.0:\n    pass\n", 50), "x: float")),
      "");
}

TEST(KernelHostile, ConstantsThatNeedThemselves) {
  EXPECT_NE(error_of("A = B\nB = A\n\n@wp.kernel\ndef k():\n    y = A\n"), "");
  EXPECT_NE(error_of("A = A + 1\n\n@wp.kernel\ndef k():\n    y = A\n"), "");
  EXPECT_NE(error_of("A = A + A + A + A\n\n@wp.kernel\ndef k():\n    y = A\n"), "");
  std::string doubled = "A0 = 1\n";
  for (int i = 1; i < 31; ++i) {
    const std::string before = "A" + std::to_string(i - 1);
    doubled += "A" + std::to_string(i) + " = " + before + " + " + before + "\n";
  }
  EXPECT_EQ(error_of(doubled + "\n@wp.kernel\ndef k():\n    y = A30\n"), "");
  EXPECT_NE(error_of("A = wp.vec3(A)\n\n@wp.kernel\ndef k():\n    y = A\n"), "");
}

TEST(KernelHostile, HostCodeIsPassedOver) {
  const std::string text =
      "#!/usr/bin/env python\n'''doc\n@wp.kernel\n'''\nimport warp as wq, sys\nimport warp as wq\nfrom "
      "typing import Any\n\n"
      "x = {'a': [1, 2, lambda q: q]}; y = f\"{x!r:>10}\"\n@decorator\nclass Host(Base):\n    def "
      "method(self, *args, **kw):\n"
      "        async with foo as bar:\n            yield from (z for z in $ ? `)\n\n    @wq.kernel\n    def "
      "inner(o: wq.array[float]):\n"
      "        o[0] = 1.0\n\nif __name__ == '__main__':\n    sys.exit(0)\n\n@wq.kernel\ndef outer(o: "
      "wq.array[float]):\n"
      "    o[1] = 2.0\n";
  const Module module = parse(text);
  ASSERT_EQ(module.kernels.size(), 2u);
  EXPECT_EQ(module.kernels[0].name, "inner");
  EXPECT_EQ(module.kernels[1].name, "outer");
}

TEST(KernelHostile, NothingAtAll) {
  using namespace std::string_literals;
  for (const std::string& text :
       {""s, "\n"s, "   "s, "\t\n \n"s, "#"s, "\\"s, "\xef\xbb\xbf"s, "@"s, "@wp.kernel"s, "@wp.kernel\n"s,
        "def"s, "'''"s, "@wp.kernel\ndef k("s, "@wp.kernel\ndef k():"s, "@wp.struct\nclass"s, "\0\0"s})
    EXPECT_NO_THROW(parse_all(text));
  EXPECT_TRUE(parse("").kernels.empty());
}

/// 2^59 calls when they are written out, and as many ways from the kernel to the first function.
TEST(KernelHostile, FunctionsThatCallTheOneBeforeTwice) {
  std::string text = "import warp as wp\n\n\n@wp.func\ndef f0(x: float):\n    return wp.sin(x)\n";
  for (int i = 1; i < 60; ++i) {
    const std::string name = "f" + std::to_string(i), before = "f" + std::to_string(i - 1);
    text +=
        "\n\n@wp.func\ndef " + name + "(x: float):\n    return " + before + "(x) + " + before + "(x * 0.5)\n";
  }
  text += "\n\n@wp.kernel\ndef k(y: wp.array[float]):\n    y[wp.tid()] = f59(1.0)\n";
  const Module module = parse(text, "k.py");
  EXPECT_LT(emit_cpp(module).size(), 100'000u);
  try {
    adjoint(module, module.kernel());
    FAIL();
  } catch (const KernelError& e) {
    const std::string message = e.what();
    EXPECT_NE(message.find("more than 4096 statements; call them from a loop"), std::string::npos) << message;
    EXPECT_NE(message.find("k.py:"), std::string::npos) << message;
  }
}

/// Corpus files with bytes changed, cut and doubled: every error has a place in the text, and whatever still
/// parses prints and reads back.
TEST(KernelHostile, MutatedCorpus) {
  std::uint64_t draws = 0;
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(integer_at(RandomKey{11, 3}, draws++, 0, static_cast<std::int64_t>(n)));
  };
  const std::string letters = "()[]{}:=,.+-*/%<>!~&|^@#'\"\\ \n\t0159xefijkwp_";
  int parsed = 0;
  for (const auto& file : corpus_files()) {
    const std::string original = read_file(file);
    for (int round = 0; round < 60; ++round) {
      std::string text = original;
      for (std::size_t change = 0; change <= below(4); ++change) {
        const std::size_t at = below(text.size()), size = 1 + below(30);
        switch (below(4)) {
          case 0:
            text[at] = letters[below(letters.size())];
            break;
          case 1:
            text.erase(at, size);
            break;
          case 2:
            text.insert(at, text.substr(below(text.size()), size));
            break;
          default:
            text.insert(at, 1, letters[below(letters.size())]);
        }
      }
      const Parsed result = parse_all(text);
      const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
      for (const KernelError& e : result.errors)
        ASSERT_TRUE(e.place().line >= 1 && e.place().line <= lines) << e.what();
      const std::string printed = print(result.module);
      ASSERT_TRUE(parse(printed) == result.module) << printed;
      parsed += result.errors.empty();
    }
  }
  EXPECT_GT(parsed, 20);
}

}  // namespace
}  // namespace ferrite::kernel
