// ferrite kernel check | run, as a user sees them.
#include <fstream>

#include "cli_test.hpp"
#include "ferrite/io/npy.hpp"

namespace ferrite::testing {
namespace {

class KernelCli : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    std::ofstream(path) << text;
    return "'" + path.string() + "'";
  }
  std::string saxpy() {
    return write(
        "saxpy.py",
        "import warp as wp\n\n@wp.kernel\ndef saxpy(a: float, x: wp.array[float], y: wp.array[float]):\n"
        "    i = wp.tid()\n    y[i] = a * x[i] + y[i]\n");
  }
  ScratchFolder folder_;
};

TEST_F(KernelCli, Check) {
  const Reply reply = run_ferrite("kernel check " + saxpy());
  EXPECT_EQ(reply.code, 0);
  EXPECT_EQ(reply.output, "kernel saxpy(a: float, x: wp.array[float], y: wp.array[float])\n");
  expect_contains(run_ferrite("kernel check --print " + saxpy()).output, "    y[i] = a * x[i] + y[i]\n");
  expect_contains(run_ferrite("kernel check --json " + saxpy()).output, "\"errors\": []");
}

TEST_F(KernelCli, RunDoesNotWriteOverItsArrays) {
  const std::vector<float> values{1, 2};
  write_npy(folder_ / "y.npy", HostTensor::from(std::span<const float>(values), {2}));
  const std::string run =
      "kernel run " + saxpy() + " --dim 2 --arg a=2 --arg y=" + (folder_ / "y.npy").string() + " --out ";
  const Reply reply = run_ferrite(run + (folder_ / "").string());
  EXPECT_EQ(reply.code, 2);
  expect_contains(reply.output, "y.npy would be written over by 'y': choose another folder");
  EXPECT_EQ(run_ferrite(run + (folder_ / "results").string()).code, 0);
}

TEST_F(KernelCli, Adjoint) {
  const Reply reply = run_ferrite("kernel adjoint " + saxpy());
  EXPECT_EQ(reply.code, 0);
  expect_contains(reply.output,
                  "def saxpy_backward(a: float, x: wp.array[float], y: wp.array[float], adj_a: ");
  expect_contains(reply.output, "wp.atomic_add(adj_x, i, adj_x_at)");
}

TEST_F(KernelCli, CheckShowsAllErrors) {
  const std::string file =
      write("bad.py",
            "import warp as wp\n\n@wp.kernel\ndef a(x: float):\n    y = x + 1\n\n@wp.kernel\ndef b():\n"
            "    y = z\n");
  const Reply reply = run_ferrite("kernel check " + file);
  EXPECT_EQ(reply.code, 2);
  expect_contains(reply.output, "bad.py:5:11: '+' of float and int");
  expect_contains(reply.output, "    y = x + 1\n          ^\n");
  expect_contains(reply.output, "bad.py:9:9: unknown name 'z'");
}

TEST_F(KernelCli, SaysWhatIsNoKernel) {
  const auto refused = [](const std::string& arguments, const std::string& message) {
    const Reply reply = run_ferrite("kernel " + arguments);
    EXPECT_EQ(reply.code, 2) << arguments;
    expect_contains(reply.output, message);
  };
  const std::string junk = write("junk.py", std::string("\0\x7f\xfe junk \0", 10));
  refused("check " + junk, "junk.py: nothing to check; kernels are marked with @wp.kernel");
  refused("run " + junk + " --dim 3", "there is no kernel: mark a function with @wp.kernel");
  refused("check /", "/: is a folder; give a Python file in it");
  const Reply ptx = run_ferrite("kernel emit " + saxpy() + " --target ptx --arch 10");
  EXPECT_EQ(ptx.code, 2);
  if (ptx.output.find("install NVRTC") == std::string::npos)
    expect_contains(ptx.output, "architecture 10 (--arch): this NVRTC compiles for ");
}

TEST_F(KernelCli, OneUnsupportedKernelDoesNotSpoilTheOthers) {
  const std::string file =
      write("mixed.py",
            "import warp as wp\n\n@wp.kernel\ndef good(x: wp.array[float]):\n    x[wp.tid()] = 1.0\n\n"
            "@wp.kernel\ndef prints(m: wp.uint64):\n    wp.printf(\"%d\", m)\n");
  const Reply good = run_ferrite("kernel run " + file + " --kernel good --dim 2 --arg x=zeros:2");
  EXPECT_EQ(good.code, 0) << good.output;
  expect_contains(good.output, "x wp.array[float] [2]: 1 1\n");
  for (const char* command : {"emit ", "adjoint "})
    EXPECT_EQ(run_ferrite("kernel " + std::string(command) + file + " --kernel good").code, 0) << command;
  const Reply bad = run_ferrite("kernel run " + file + " --kernel prints --dim 2");
  EXPECT_EQ(bad.code, 2);
  expect_contains(bad.output, "'wp.printf' is not part of the kernel language");
  EXPECT_EQ(run_ferrite("kernel check " + file).code, 2);
  expect_contains(run_ferrite("kernel check --json " + file).output, "\"definition\": \"prints\"");
}

TEST_F(KernelCli, EmitKeepsTheFileWhereThereIsNothingToEmit) {
  const std::string kept = write("kept.cu", "kept"),
                    bad = write("bad.py", "import warp as wp\n\n@wp.kernel\n");
  const std::string function =
      write("function.py", "import warp as wp\n\n@wp.func\ndef f(x: float):\n    return x + 1.0\n");
  const auto text_of = [](const std::filesystem::path& file) {
    std::ifstream in(file);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  for (const std::string& file : {write("empty.py", ""), function})
    for (const char* target : {"cuda", "cpp", "ptx", "warp"}) {
      const Reply reply = run_ferrite("kernel emit " + file + " --target " + target + " --out " + kept);
      EXPECT_EQ(reply.code, 2) << reply.output;
      expect_contains(reply.output, ".py: there is no kernel: mark a function with @wp.kernel");
    }
  EXPECT_EQ(run_ferrite("kernel emit " + bad + " --out " + kept).code, 2);
  EXPECT_EQ(text_of(folder_ / "kept.cu"), "kept");
  EXPECT_EQ(run_ferrite("kernel emit " + saxpy() + " --out " + kept).code, 0);
  EXPECT_EQ(text_of(folder_ / "kept.cu"), run_ferrite("kernel emit " + saxpy()).output);
}

TEST_F(KernelCli, AnArrayThatWasNeverSetIsAnErrorOfTheRun) {
  const std::string file = write("unset.py",
                                 "import warp as wp\n\n@wp.struct\nclass S:\n    a: wp.array2d[float]\n\n"
                                 "@wp.kernel\ndef k(out: wp.array[int]):\n    s = S()\n"
                                 "    out[0] = s.a.shape[1]\n");
  const Reply reply = run_ferrite("kernel run " + file + " --dim 1");
  EXPECT_EQ(reply.code, 2) << reply.output;
  expect_contains(reply.output, "unset.py:10:23: this array was never set");
}

TEST_F(KernelCli, WarnsOfRaces) {
  const std::string file =
      write("last.py",
            "import warp as wp\n\n@wp.kernel\ndef last(x: wp.array[float], y: wp.array[float]):\n"
            "    i = wp.tid()\n    y[0] = x[i]\n");
  const Reply run = run_ferrite("kernel run " + file + " --dim 4 --arg x=iota:4 --arg y=zeros:1");
  EXPECT_EQ(run.code, 0) << run.output;
  expect_contains(run.output, "warning: [kernel] ");
  expect_contains(run.output,
                  "last.py:6:6: race in 'last': thread 1 writes y[0], which thread 0 writes in line 6");
  for (const char* command : {"check ", "adjoint "}) {
    const Reply text = run_ferrite("kernel " + std::string(command) + file);
    EXPECT_EQ(text.code, 0) << text.output;
    expect_contains(text.output, "race in 'last': every thread writes y[0]");
  }
  expect_contains(run_ferrite("kernel check --json " + file).output,
                  "race in 'last': every thread writes y[0]");
}

TEST_F(KernelCli, RunReadsAndWritesArrays) {
  const std::vector<float> data{1, 2, 3};
  write_npy(folder_ / "x.npy", HostTensor::from(std::span<const float>(data), Shape{3}));
  const std::string out = (folder_ / "out").string();
  const Reply reply =
      run_ferrite("kernel run " + saxpy() + " --dim 3 --arg a=2 --arg 'x=" + (folder_ / "x.npy").string() +
                  "' --arg y=iota:3 --out '" + out + "'");
  EXPECT_EQ(reply.code, 0) << reply.output;
  expect_contains(reply.output, "y wp.array[float] [3]: 2 5 8\n");
  EXPECT_EQ(read_npy(std::filesystem::path(out) / "y.npy").as<float>()[2], 8);
}

/// The interpreter's result, from every backend that needs no GPU.
TEST_F(KernelCli, RunsOnBackends) {
  const std::string arguments =
      "kernel run " + saxpy() + " --dim 300 --arg a=2 --arg x=iota:300 --arg y=iota:300";
  for (const char* const backend : {"cpu", "reference", "lazy-cpu", "parity"}) {
    const Reply reply = run_ferrite(arguments + " --backend " + backend);
    EXPECT_EQ(reply.code, 0) << reply.output;
    expect_contains(reply.output, "ran on ");
    expect_contains(reply.output, "y wp.array[float] [300]: 0 3 6 9 12 15 18 21 ...\n");
  }
  const Reply gpu = run_ferrite(arguments + " --backend cuda");
  if (gpu.code == 0)
    expect_contains(gpu.output, ": 2 blocks of 256 threads\n");
  else
    expect_contains(gpu.output, "ferrite: [cuda] ");
}

TEST_F(KernelCli, TracesTheMemoryOfAGpu) {
  const std::filesystem::path file = folder_ / "memory.json";
  const Reply reply = run_ferrite("kernel run " + saxpy() + " --dim 300 --arg a=2 --backend cuda",
                                  "FERRITE_CUDA_MEMORY_TRACE='" + file.string() + "'");
  if (reply.code != 0) GTEST_SKIP() << reply.output;
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  expect_contains(text, "\"name\":\"memory of cuda:0\"");
  expect_contains(text, "\"cat\":\"allocate\"");
}

TEST_F(KernelCli, RunsEveryKindOfArgumentOnBackends) {
  const std::string file =
      write("kinds.py",
            "import warp as wp\n\n@wp.struct\nclass S:\n    v: wp.vec3\n    n: int\n\n@wp.kernel\n"
            "def kinds(s: S, m: wp.array[wp.mat22], b: wp.array[wp.bfloat16], k: wp.array2d[wp.uint32],\n"
            "          c: wp.array[wp.int8], h: wp.array[wp.int16], u: wp.array[wp.uint16]):\n"
            "    i, j = wp.tid()\n    m[i][0, 1] = s.v[1]\n    b[i] = wp.bfloat16(s.n + i)\n"
            "    k[i, j] = k[i, j] + wp.uint32(j)\n    c[i] = wp.int8(-3 - i)\n"
            "    h[i] = wp.int16(5 - 10 * i)\n    u[i] = wp.uint16(65535 - i)\n");
  const std::string arguments = "kernel run " + file +
                                " --dim 2x3 --arg s.v=1,2.5,3 --arg s.n=7 --arg m=zeros:2 --arg b=zeros:2 "
                                "--arg k=iota:2x3 --arg c=zeros:2 --arg h=zeros:2 --arg u=zeros:2";
  const Reply expected = run_ferrite(arguments);
  ASSERT_EQ(expected.code, 0) << expected.output;
  const auto results = [](const std::string& text) { return text.substr(text.find("m wp.array")); };
  for (const char* const backend : {"cpu", "reference"}) {
    const Reply reply = run_ferrite(arguments + " --backend " + backend);
    ASSERT_EQ(reply.code, 0) << reply.output;
    EXPECT_EQ(results(reply.output), results(expected.output));
  }
}

TEST_F(KernelCli, SaysWhatABackendDoesNotTake) {
  const Reply unknown = run_ferrite("kernel run " + saxpy() + " --dim 3 --arg a=2 --backend gpu");
  EXPECT_EQ(unknown.code, 2);
  expect_contains(unknown.output, "'gpu' must be one of");
  const Reply both =
      run_ferrite("kernel run " + saxpy() + " --dim 3 --arg a=2 --backend cpu --precision f64");
  EXPECT_EQ(both.code, 2);
  expect_contains(both.output, "--backend excludes --precision");
  const std::string file =
      write("inside.py",
            "import warp as wp\n\n@wp.struct\nclass S:\n    x: wp.array[float]\n\n@wp.kernel\ndef k(s: S):\n"
            "    i = wp.tid()\n    s.x[i] = 1.0\n");
  EXPECT_EQ(run_ferrite("kernel run " + file + " --dim 3").code, 0);
  const Reply inside = run_ferrite("kernel run " + file + " --dim 3 --backend cpu");
  EXPECT_EQ(inside.code, 2);
  expect_contains(inside.output, "'s', S: a struct with arrays in it is not launched on tensors");
  expect_contains(inside.output, "run it without --backend");
}

TEST_F(KernelCli, RunSaysWhatIsMissing) {
  expect_contains(run_ferrite("kernel run " + saxpy() + " --dim 3").output,
                  "no value for 'a', float: give --arg a=...");
  expect_contains(run_ferrite("kernel run " + saxpy() + " --dim 3 --arg a=2 --arg z=1").output,
                  "no parameter 'z'");
  for (const char* const wrong : {"3y", "3x", "x3", "-1"})
    expect_contains(run_ferrite("kernel run " + saxpy() + " --dim=" + wrong).output,
                    "write extents as 64 or 64x3");
  expect_contains(run_ferrite("kernel run " + saxpy() + " --dim 3 --arg a=two").output,
                  "takes numbers separated by commas");
  const auto refused = [&](const std::string& options, const std::string& message) {
    const Reply reply = run_ferrite("kernel run " + saxpy() + " --dim 3 --arg a=2 " + options);
    EXPECT_EQ(reply.code, 2) << options;
    expect_contains(reply.output, message);
  };
  refused("--arg x=zeros:99999999999", "x=zeros:99999999999: more than 2147483647 elements");
  refused("--arg x=zeros:4294967296x4294967296", "more than 2147483647 elements");
  refused("--arg a=3", "'a' has a value already");
  refused("--bind f.n=1 --bind f.n=2", "--bind f.n=2: it has a value already");
  refused("--seed -1", "--seed: '-1': give a whole number, 0 or more");
  refused("--steps 0", "--steps: '0': give a number above 0");
  refused("--steps=-1", "--steps: '-1': give a number above 0");
  refused("--out /proc/foo", "--out /proc/foo: no folder can be made there");
  const Reply reply = run_ferrite("kernel run " + saxpy() + " --dim 4 --arg a=2 --arg x=zeros:3");
  EXPECT_EQ(reply.code, 2);
  expect_contains(reply.output, "index [3] is outside array 'x' of shape [3] (thread [3] of grid [4])");
}

}  // namespace
}  // namespace ferrite::testing
