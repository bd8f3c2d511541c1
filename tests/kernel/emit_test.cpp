// Emitted code: C++ is compiled by the system's compiler and run against the interpreter, CUDA is compiled by
// NVRTC; golden texts show what a reader sees.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/interpreter.hpp"
#include "ferrite/kernel/parse.hpp"
#include "kernel/emit/rules.hpp"
#include "packed_test.hpp"
#include "paths.hpp"

namespace ferrite::kernel {

namespace {

namespace fs = std::filesystem;

/// A shared library of emitted C++, or no library and a reason.
class Compiled {
 public:
  explicit Compiled(const std::string& text) {
    const char* cxx = std::getenv("CXX");
    const std::string compiler = cxx != nullptr ? cxx : "c++";
    if (std::system((compiler + " --version > /dev/null 2>&1").c_str()) != 0) {
      skip_ = compiler + " cannot be run";
      return;
    }
    folder_ = fs::temp_directory_path() / fmt::format("ferrite_emit_{}_{}", ::getpid(), counter_++);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "kernels.cpp") << text;
    const std::string command = fmt::format(
        "{0} -std=c++17 -O1 -fwrapv -ffp-contract=off -Wall -Wno-unused -Werror -shared -fPIC "
        "{1}/kernels.cpp -o {1}/kernels.so 2> {1}/log",
        compiler, folder_.string());
    if (std::system(command.c_str()) != 0) {
      ADD_FAILURE() << read_file(folder_ / "log").substr(0, 4000);
      return;
    }
    handle_ = dlopen((folder_ / "kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) ADD_FAILURE() << dlerror();
  }
  ~Compiled() {
    if (handle_ != nullptr) dlclose(handle_);
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  const std::string& skip() const { return skip_; }
  PackedLaunch launch(const Function& kernel) const {
    using Packed = void (*)(const LaunchArgument*, void* const*);
    void* symbol = handle_ == nullptr ? nullptr : dlsym(handle_, (entry_name(kernel) + "_packed").c_str());
    return [symbol](const std::vector<std::int64_t>& dim, void* const* arguments, int block_dim) {
      ASSERT_NE(symbol, nullptr);
      LaunchArgument grid;
      grid.block_dim = block_dim;
      for (std::size_t i = 0; i < dim.size(); ++i)
        grid.size *= grid.shape[i] = static_cast<std::int32_t>(dim[i]);
      reinterpret_cast<Packed>(symbol)(&grid, arguments);
    };
  }

 private:
  inline static int counter_ = 0;
  std::string skip_;
  fs::path folder_;
  void* handle_ = nullptr;
};

std::string compile_or_reason(const std::string& cuda, bool& absent) {
  try {
    return compile_ptx(cuda);
  } catch (const BackendError& e) {
    absent = true;
    return e.what();
  }
}

}  // namespace

TEST(Emit, CppOfTheCorpusDoesWhatTheInterpreterDoes) {
  for (const fs::path& file : corpus_files()) {
    const Module whole = parse(read_file(file), file.filename().string());
    const Compiled library(emit_cpp(whole));
    if (!library.skip().empty()) GTEST_SKIP() << library.skip();
    for_each_run(file, [&](const Module& module, const Function& kernel, const auto& dim, const auto& values,
                           int block_dim) {
      compare(module, kernel, library.launch(kernel), dim, values, block_dim, 64);
    });
  }
}

TEST(Emit, CppOfEveryBuiltinDoesWhatTheInterpreterDoes) {
  const Module module = parse(builtin_kernels());
  const Compiled library(emit_cpp(module));
  if (!library.skip().empty()) GTEST_SKIP() << library.skip();
  for (const Function& kernel : module.kernels)  // values are f32 or less, stored as f64
    compare(module, kernel, library.launch(kernel), {1}, builtin_arguments(module), 256, 64 * 0x1p29);
}

TEST(Emit, RangesOfNarrowIntegersEndWhereTheTypeDoes) {
  const Module module =
      parse(kernel_of("for a in range(wp.uint8(0), wp.uint8(255), wp.uint8(10)):\n    out[0] += float(a)\n"
                      "for b in range(wp.int8(100), wp.int8(-128), wp.int8(-50)):\n    out[1] += 1.0\n"
                      "step = wp.uint16(500)\n"
                      "for c in range(wp.uint16(65000), wp.uint16(65535), step):\n    out[2] += float(c)\n"
                      "for d in range(wp.uint8(0), wp.uint8(255), wp.uint8(100)):\n"
                      "    wp.sync_threads()\n    out[3] += float(d)\n") +
            "\n\n@wp.kernel\ndef wide(out: wp.array[float]):\n"
            "    for i in range(wp.int64(7), wp.int64(-7), wp.int64(-3)):\n        out[0] += float(i)\n");
  const Compiled library(emit_cpp(module));
  if (!library.skip().empty()) GTEST_SKIP() << library.skip();
  for (const Function& kernel : module.kernels)
    compare(module, kernel, library.launch(kernel), {1}, {real_array({0, 0, 0, 0})}, 1, 1);
}

TEST(Emit, CudaOfTheCorpusAndOfEveryBuiltinCompiles) {
  std::vector<Module> modules;
  for (const fs::path& file : corpus_files())
    modules.push_back(parse(read_file(file), file.filename().string()));
  modules.push_back(parse(builtin_kernels()));
  for (const Module& module : modules) {
    bool absent = false;
    const std::string ptx = compile_or_reason(emit_cuda(module), absent);
    if (absent) GTEST_SKIP() << ptx;
    for (const Function& k : module.kernels)
      EXPECT_NE(ptx.find(".entry " + entry_name(k) + "("), std::string::npos) << k.name;
  }
}

TEST(Emit, EveryBuiltinHasARuleForBothTargets) {
  const Module module = parse(builtin_kernels());
  std::set<Builtin> used;
  for (const Function& k : module.kernels)
    for_each_expr(k.body, [&](const Expr& e) {
      if (e.kind != ExprKind::apply) return;
      used.insert(e.builtin);
      std::vector<Type> types;
      for (const Expr& arg : e.args) types.push_back(arg.type);
      EXPECT_NE(find_rule(e.builtin, types, Target::cuda), nullptr) << info(e.builtin).name;
      EXPECT_NE(find_rule(e.builtin, types, Target::cpp), nullptr) << info(e.builtin).name;
    });
  for (const fs::path& file : corpus_files())
    for (const Function& k : parse(read_file(file)).kernels)
      for_each_expr(k.body, [&](const Expr& e) {
        if (e.kind == ExprKind::apply) used.insert(e.builtin);
      });
  for (const BuiltinInfo& row : builtins())
    EXPECT_TRUE(used.contains(row.id)) << row.name << " is in no test";
}

TEST(Emit, ReadsAsGoldenTextsDo) {
  const fs::path folder = test_paths::source_folder() + "/tests/kernel/golden";
  const Module module = parse(read_file(folder / "small.py"));
  EXPECT_EQ(emit_cuda(module), read_file(folder / "small.cu"));
  EXPECT_EQ(emit_cpp(module), read_file(folder / "small.cpp"));
}

TEST(Emit, RepeatsTheLinesOfTheSourceIfAsked) {
  const std::string line = "x[wp.tid()] = 2.0 * x[wp.tid()]";
  const Module module =
      parse("import warp as wp\n\n@wp.kernel\ndef double(x: wp.array[float]):\n    " + line);
  for (const auto emit : {static_cast<std::string (*)(const Module&, const EmitOptions&)>(emit_cuda),
                          static_cast<std::string (*)(const Module&, const EmitOptions&)>(emit_cpp)}) {
    EXPECT_NE(emit(module, {.source_lines = true}).find("// " + line + "\n"), std::string::npos);
    EXPECT_EQ(emit(module, {}).find(line), std::string::npos);
  }
}

TEST(Emit, RefusesWhatTheTargetCannotDo) {
  const std::string head =
      "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[wp.uint8]):\n    i = wp.tid()\n";
  const Module narrow = parse(head + "    wp.atomic_add(x, 0, wp.uint8(1))\n");
  EXPECT_THROW(emit_cuda(narrow), KernelError);
  EXPECT_NO_THROW(emit_cpp(narrow));
  const Module parted = parse(head + "    if i == 3:\n        return\n    wp.sync_threads()\n");
  try {
    emit_cpp(parted);
    ADD_FAILURE() << "a return before a barrier was emitted";
  } catch (const KernelError& e) {
    EXPECT_EQ(e.place().line, 8);
  }
}

TEST(Emit, NamesOfMacrosAreNotUsed) {
  const std::vector<std::string> names{"M_SQRT2", "M_PIf", "FP_NAN", "MATH_ERRNO", "HUGE_VALF", "errno",
                                       "stdin",   "EDOM",  "E2BIG",  "RAND_MAX",   "INT8_WIDTH"};
  std::string parameters, sum = "0.0";
  for (const std::string& name : names) {
    parameters += fmt::format(", {}: float", name);
    sum += " + " + name;
  }
  const Module module = parse(fmt::format(
      "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[float]{}):\n    x[0] = {}\n", parameters, sum));
  const std::string cpp = emit_cpp(module), cuda = emit_cuda(module);
  for (const std::string& name : names)
    for (const std::string& text : {cpp, cuda})
      EXPECT_NE(text.find(fmt::format("float {}_", name)), std::string::npos) << name << "\n" << text;
  const Compiled library(cpp);
  if (!library.skip().empty()) GTEST_SKIP() << library.skip();
}

TEST(Emit, RefusedCudaGivesTheLogOfNvrtc) {
  try {
    compile_ptx("extern \"C\" __global__ void k() { no_such_function(); }");
    ADD_FAILURE() << "compiled";
  } catch (const BackendError& e) {
    GTEST_SKIP() << e.what();
  } catch (const KernelError& e) {
    EXPECT_NE(std::string(e.what()).find("no_such_function"), std::string::npos) << e.what();
  }
}

}  // namespace ferrite::kernel
