// Warp's form: golden texts, which tests/peers/warp_form_peer.py finds equal to Warp's own, and what Warp
// refuses.
#include "ferrite/models/irsynth/emit_warp.hpp"

#include "kernel/kernel_test.hpp"
#include "paths.hpp"

namespace ferrite::irsynth {

namespace {

using namespace kernel;

namespace fs = std::filesystem;

const fs::path warp_folder = test_paths::source_folder() + "/tests/models/irsynth/warp_form";

std::string emitted(const std::string& lines, const std::string& parameters = "x: wp.array[float], n: int",
                    const WarpOptions& options = {}) {
  return emit_warp(parse(kernel_of(lines, parameters)), options);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The line that a refused kernel is refused at.
int refused(const std::string& lines, const std::string& parameters = "x: wp.array[float], n: int") {
  try {
    emitted(lines, parameters);
  } catch (const KernelError& e) {
    return e.place().line - 5;
  }
  return -1;
}

}  // namespace

TEST(EmitWarp, ReadsAsGoldenTextsDo) {
  const fs::path folder = warp_folder / "golden";
  const Module module = parse(read_file(test_paths::source_folder() + "/tests/kernel/golden/small.py"));
  std::string all;
  for (const Function& k : module.kernels) {
    const std::string golden = read_file(folder / (k.name + ".warp.cu"));
    EXPECT_EQ(emit_warp(module, k), golden);
    all += golden;
  }
  EXPECT_EQ(emit_warp(module), all);
  EXPECT_EQ(emit_warp(module, module.kernel("saxpy"), {.device = Device::cpu}),
            read_file(folder / "saxpy.warp.cpp"));
}

TEST(EmitWarp, TakesEveryKernelThatWarpTakes) {
  int kernels = 0;
  for (const fs::path& folder : {corpus_folder(), warp_folder})
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".py" || entry.path().stem() == "shared") continue;
      if (entry.path().stem() == "tiles") continue;  // Warp's form of them is not written
      const Module module = parse(read_file(entry.path()));
      Module printed = parse(print(module));
      printed.source = nullptr;  // as if a program had made it
      for (const Function& k : module.kernels) {
        ++kernels;
        for (const Device device : {Device::cuda, Device::cpu}) {
          EXPECT_NO_THROW(emit_warp(module, k, {.device = device})) << k.name;
          EXPECT_NO_THROW(emit_warp(printed, printed.kernel(k.name), {.device = device})) << k.name;
        }
      }
    }
  EXPECT_GT(kernels, 110);
}

TEST(EmitWarp, WritesTheModuleAsItIsNow) {
  Module module = parse(kernel_of("x[n] = 2.0", "x: wp.array[float], n: int"));
  module.kernels[0].body[0].values[0].number = from_real(3.5);
  const std::string text = emit_warp(module);
  EXPECT_TRUE(has(text, "const wp::float32 var_0 = 3.5;")) << text;
  EXPECT_TRUE(has(text, "// x[n] = 3.5 ")) << text;
}

TEST(EmitWarp, DependsOnHowItIsWritten) {
  const std::string chained = emitted("if 0 < n < 9:\n    x[n] = 1.0");
  const std::string joined = emitted("if 0 < n and n < 9:\n    x[n] = 1.0");
  EXPECT_TRUE(has(chained, "var_2 = ((var_0 < var_n) && (var_n < var_1));")) << chained;
  EXPECT_TRUE(has(joined, "var_0 = var_0 && var_4;")) << joined;
  EXPECT_TRUE(has(emitted("x[n] = wp.sin(wp.pi)"), "var_2 = wp::sin(var_1);"));  // the constant twice
}

TEST(EmitWarp, UnrollsUpToSixteenConstants) {
  const std::string loop = "s = float(0.0)\nfor k in range({}):\n    s += x[k]\nx[n] = s";
  const auto of = [&](const std::string& range) {
    return emitted(std::regex_replace(loop, std::regex("\\{\\}"), range));
  };
  EXPECT_FALSE(has(of("16"), "goto"));
  EXPECT_TRUE(has(of("17"), "if (var_2 >= 17) goto end_for_0;"));
  EXPECT_TRUE(has(of("n"), "if (iter_cmp(var_2) == 0) goto end_for_0;"));
  EXPECT_FALSE(has(of("0"), "var_2"));
}

TEST(EmitWarp, OptionsChooseTheFrame) {
  const std::string lines = "if n > 3:\n    return\nx[n] = 1.0", parameters = "x: wp.array[float], n: int";
  const std::string strided = emitted(lines), lean = emitted(lines, parameters, {.grid_stride = false});
  EXPECT_TRUE(has(strided, "_idx < dim.size;") && has(strided, "continue;") && !has(strided, "return;"));
  EXPECT_TRUE(has(lean, "if (_idx >= dim.size) return;") && !has(lean, "continue;"));
  EXPECT_TRUE(has(strided, "k_cuda_kernel_backward"));
  EXPECT_FALSE(has(emitted(lines, parameters, {.backward = false}), "backward"));
  EXPECT_TRUE(has(emitted(lines, parameters, {.device = Device::cpu}), "static void k_cpu_kernel_forward("));
}

TEST(EmitWarp, BoundsWhatItUnrolls) {
  std::string lines, indent;
  for (int k = 0; k < 8; ++k, indent += "    ")
    lines += indent + "for k" + std::to_string(k) + " in range(16):\n";
  EXPECT_EQ(refused(lines + indent + "pass"), 9);
}

TEST(EmitWarp, RefusesWhatWarpRefuses) {
  EXPECT_EQ(refused("s = 0.0\nfor k in range(n):\n    s += x[k]\nx[n] = s"), 3);
  EXPECT_EQ(refused("a = x[0]\na, b = x[1], x[2]\nx[n] = a + b"), 2);
  EXPECT_EQ(refused("wp.sync_threads()\nx[n] = 1.0"), 1);
  EXPECT_EQ(refused("v[n].x *= 2.0", "v: wp.array[wp.vec3], n: int"), 1);
  EXPECT_EQ(refused("x[n] = wp.norm_l1(wp.vec3(1.0))"), 1);
  EXPECT_EQ(refused("a = wp.zeros(shape=2 * 2, dtype=float)\nx[n] = a[0]"), 1);
}

TEST(EmitWarp, HasWhatACallerBinds) {
  const std::string text =
      "import warp as wp\n\n\ndef make(n, dtype):\n    M = n * 2\n\n    @wp.kernel\n"
      "    def k(out: wp.array[dtype]):\n        out[wp.tid() % M] = dtype(1.0)\n\n    return k\n";
  const std::string form = emit_warp(parse(text, "k.py", {{"make.n", "4"}, {"make.dtype", "wp.float64"}}));
  EXPECT_TRUE(has(form, "const wp::int32 var_2 = 8;")) << form;
  EXPECT_TRUE(has(form, "wp::array_t<wp::float64> var_out")) << form;
}

TEST(EmitWarp, WritesNoBackwardFormOfCustomGradients) {
  const Module module = parse(
      "import warp as wp\n\n@wp.func\ndef relu(x: float):\n    return wp.max(x, 0.0)\n\n"
      "@wp.func_grad(relu)\ndef adj_relu(x: float, adj_ret: float):\n    wp.adjoint[x] += adj_ret\n\n"
      "@wp.kernel\ndef k(x: wp.array[float]):\n    x[0] = relu(x[0])\n");
  EXPECT_THROW(emit_warp(module), KernelError);
  EXPECT_TRUE(has(emit_warp(module, {.backward = false}), "relu_0("));
}

}  // namespace ferrite::irsynth
