// The C++ of records, compiled by the system's compiler and run: it leaves what the interpreter leaves. All
// records in one text, each in a namespace of its own, because the compiler's start is what takes time.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "ferrite/kernel/emit.hpp"
#include "ferrite/models/irsynth/record.hpp"
#include "models/irsynth/memory.hpp"
#include "scratch_folder.hpp"

namespace ferrite::irsynth {
namespace {

using Packed = void (*)(const kernel::LaunchArgument*, void* const*);

/// The text without its head of includes.
std::string body(const std::string& text) { return text.substr(text.find("\n\n") + 2); }

TEST(IrsynthEmittedCpp, AgreesWithTheInterpreter) {
  if (std::system("c++ --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "no compiler here";
  Config config;
  config.device = Device::cpu;
  constexpr int count = 240;
  std::vector<Record> records;
  std::string text;
  for (int i = 0; i < count; ++i) {
    const Record& r = records.emplace_back(make_record(config, 31, i));
    ASSERT_EQ(r.failure, "");
    if (i == 0) text = r.forward.substr(0, r.forward.find("\n\n") + 2);
    const std::string entry = kernel::entry_name(r.program.kernel());
    const std::string name = "record" + std::to_string(i);
    text += "#define " + entry + " " + name + "\n#define " + entry + "_packed " + name +
            "_packed\nnamespace n" + std::to_string(i) + " {\n" + body(r.forward) + "}\n#undef " + entry +
            "\n#undef " + entry + "_packed\n";
  }
  const testing::ScratchFolder folder;
  const std::string source = (folder / "records.cpp").string(), library = (folder / "records.so").string();
  std::ofstream(source) << text;
  ASSERT_EQ(std::system(("c++ -std=c++17 -O1 -fwrapv -w -shared -fPIC " + source + " -o " + library).c_str()),
            0);
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << dlerror();
  for (int i = 0; i < count; ++i) {
    const Record& r = records[static_cast<std::size_t>(i)];
    const auto run =
        reinterpret_cast<Packed>(dlsym(handle, ("record" + std::to_string(i) + "_packed").c_str()));
    ASSERT_NE(run, nullptr);
    Memory memory(r.program.module, r.inputs);
    kernel::LaunchArgument grid;
    grid.block_dim = r.program.block_dim;
    for (std::size_t axis = 0; axis < r.program.grid.size(); ++axis)
      grid.size *= grid.shape[axis] = static_cast<std::int32_t>(r.program.grid[axis]);
    run(&grid, memory.arguments());
    EXPECT_LE(roundings_between(r.outputs, memory.values()), parity_roundings) << r.python << r.forward;
  }
  dlclose(handle);
}

}  // namespace
}  // namespace ferrite::irsynth
