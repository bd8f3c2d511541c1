// The structural form: what makes two kernels the same, and the questions about trees.
#include "ferrite/kernel/structure.hpp"
#include "kernel_test.hpp"

namespace ferrite::kernel {
namespace {

std::string form(const std::string& lines, Literals literals = Literals::erased) {
  const Module module =
      parse(kernel_of(lines, "out: wp.array[float], x: float, y: float, m: wp.mat22, k: wp.mat22"));
  return structural_form(module, module.kernel(), literals);
}

TEST(KernelStructure, NamesDoNotCount) {
  EXPECT_EQ(form("a = x * 2.0\nout[0] = a - y"), form("b = x * 3.0\nout[1] = b - y"));
  EXPECT_NE(form("a = x * 2.0", Literals::kept), form("a = x * 3.0", Literals::kept));
  EXPECT_NE(form("out[0] = x - y"), form("out[0] = y - x"));
  EXPECT_NE(form("out[0] = x - y"), form("out[0] = x + y"));
  EXPECT_NE(form("a = 1.0"), form("a = 1"));
}

TEST(KernelStructure, CommutativeOperandsAreSorted) {
  EXPECT_EQ(form("out[0] = wp.sin(x) + x"), form("out[0] = x + wp.sin(x)"));
  EXPECT_EQ(form("out[0] = wp.max(2.0, x)"), form("out[0] = wp.max(x, 2.0)"));
  EXPECT_NE(form("a = m * wp.inverse(k)"), form("a = wp.inverse(k) * m"));
  EXPECT_NE(form("out[0] = wp.sin(x) - x"), form("out[0] = x - wp.sin(x)"));
}

TEST(KernelStructure, FunctionsCountByWhatTheyDo) {
  const auto with = [](const std::string& name, const std::string& body) {
    const Module module =
        parse("import warp as wp\n\n@wp.func\ndef " + name + "(x: float):\n    return " + body +
              "\n\n@wp.kernel\ndef k(out: wp.array[float]):\n    out[0] = " + name + "(out[1])\n");
    return structural_form(module, module.kernel(), Literals::erased);
  };
  EXPECT_EQ(with("f", "x * x"), with("g", "x * x"));
  EXPECT_NE(with("f", "x * x"), with("f", "x + x"));
}

TEST(KernelStructure, CorpusKernelsDiffer) {
  std::map<std::string, std::string> seen;
  for (const auto& file : corpus_files()) {
    const Module module = parse(read_file(file));
    for (const Function& k : module.kernels) {
      const auto [found, is_new] = seen.emplace(structural_form(module, k, Literals::erased), k.name);
      EXPECT_TRUE(is_new) << k.name << " and " << found->second;
    }
  }
}

TEST(KernelTree, Questions) {
  const Module module = parse(
      "import warp as wp\n\n@wp.func\ndef pure(x: float):\n    y = x\n    return y\n\n@wp.func\n"
      "def writes(a: wp.array[float]):\n    a[0] = 1.0\n    return 2.0\n\n@wp.kernel\ndef k(a: "
      "wp.array[float]):\n"
      "    i, j, l = wp.tid()\n    b = pure(a[i])\n    c = writes(a)\n    if i > 0:\n        "
      "wp.sync_threads()\n\n"
      "@wp.kernel\ndef none():\n    pass\n");
  const Function& k = module.kernel("k");
  EXPECT_EQ(tid_dims(k), 3);
  EXPECT_EQ(tid_dims(module.kernel("none")), 0);
  EXPECT_TRUE(is_pure(module, k.body[1].values[0]));
  EXPECT_FALSE(is_pure(module, k.body[2].values[0]));
  EXPECT_TRUE(has_barrier(k.body));
  EXPECT_FALSE(has_barrier(k.body[0]));
  EXPECT_THROW(module.kernel(), ValueError);
  EXPECT_THROW(module.kernel("other"), ValueError);
}

}  // namespace
}  // namespace ferrite::kernel
