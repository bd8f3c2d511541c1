// Races: what the interpreter sees in a run, and what the text shows.
#include "ferrite/kernel/races.hpp"

#include "ferrite/kernel/adjoint.hpp"
#include "kernel_test.hpp"
#include "packed_test.hpp"

namespace ferrite::kernel {
namespace {

const std::string parameters =
    "x: wp.array[float], y: wp.array[float], v: wp.array[wp.vec2], n: wp.array[int]";

std::vector<Race> races(const std::string& lines, int block_dim = 256) {
  const Module module = parse(kernel_of("i = wp.tid()\n" + lines, parameters), "k.py");
  std::vector<Value> arguments{real_array({1, 2, 3, 4, 5, 6, 7, 8}), real_array(std::vector<double>(8)),
                               array_value(module, Type::vector(2).array(1), {8}),
                               array_value(module, int_type.array(1), {8})};
  std::vector<Race> found;
  InterpretOptions options;
  options.block_dim = block_dim;
  options.races = &found;
  interpret(module, module.kernel(), std::vector<std::int64_t>{8}, arguments, options);
  return found;
}

TEST(KernelRaces, NoneWhereThreadsKeepApart) {
  for (const char* lines :
       {"y[i] = x[i] + x[0]", "wp.atomic_add(y, 0, x[i])", "y[0] += x[i]", "y[i] = 1.0\ny[i] = y[i] * 2.0",
        "v[i / 2][i % 2] = x[i]", "y[0] = 3.0", "if i == 3:\n    y[0] = 1.0\n    y[0] = y[0] + 1.0",
        "l = wp.zeros(shape=4, dtype=float)\nl[0] = x[i]\nl[0] = l[0] + 1.0", "wp.atomic_max(n, 0, i)"})
    EXPECT_TRUE(races(lines).empty()) << lines;
}

TEST(KernelRaces, TwoWritesOfOneElement) {
  const std::vector<Race> found = races("y[i / 2] = x[i]");
  ASSERT_EQ(found.size(), 1u);
  const Race& r = found[0];
  EXPECT_EQ(r.array, "y");
  EXPECT_EQ(r.index, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(r.first.thread, 0);
  EXPECT_EQ(r.second.thread, 1);
  EXPECT_EQ(r.first.access, Race::Access::write);
  EXPECT_EQ(r.second.access, Race::Access::write);
  EXPECT_EQ(r.count, 4);
  const Module module = parse(kernel_of("i = wp.tid()\ny[i / 2] = x[i]", parameters), "k.py");
  const std::string text = warning(module, r).what();
  EXPECT_NE(text.find("k.py:7:6: race in 'k': thread 1 writes y[0], which thread 0 writes in line 7"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("the gradient is not defined; use an atomic"), std::string::npos) << text;
}

TEST(KernelRaces, AReadOfWhatAnotherWrites) {
  const auto one = [](const std::string& lines) {
    const std::vector<Race> found = races(lines);
    EXPECT_EQ(found.size(), 1u) << lines;
    return found.empty() ? Race{} : found[0];
  };
  const Race after = one("y[i] = x[i]\nif i > 0:\n    x[i] = y[i - 1]");
  EXPECT_EQ(after.first.access, Race::Access::write);
  EXPECT_EQ(after.second.access, Race::Access::read);
  EXPECT_EQ(one("s = y[wp.min(i + 1, 7)]\ny[i] = s + 1.0").first.access, Race::Access::read);
  const Race mixed = one("wp.atomic_add(y, 0, 1.0)\ns = y[0]");
  EXPECT_EQ(mixed.first.access, Race::Access::read);
  EXPECT_EQ(mixed.second.access, Race::Access::atomic);
  EXPECT_FALSE(races("y[0] *= 2.0").empty());
  EXPECT_FALSE(races("v[0][1] = x[i]").empty());
}

TEST(KernelRaces, ABarrierOrdersTheThreadsOfItsBlock) {
  const std::string exchange =
      "s = wp.shared_array(shape=(4,), dtype=float)\ns[i % 4] = x[i]\n%BARRIER%y[i] = s[3 - i % 4]";
  const auto with = [&](const std::string& barrier) {
    std::string text = exchange;
    return text.replace(text.find("%BARRIER%"), 9, barrier);
  };
  EXPECT_TRUE(races(with("wp.sync_threads()\n"), 4).empty());
  EXPECT_FALSE(races(with("") + "\nwp.sync_threads()", 4).empty());
  // Not those of two blocks.
  EXPECT_TRUE(races("y[i] = x[i]\nwp.sync_threads()\nx[i] = y[7 - i]", 8).empty());
  EXPECT_FALSE(races("y[i] = x[i]\nwp.sync_threads()\nx[i] = y[7 - i]", 4).empty());
}

/// Where the kernel races, so does its adjoint, and a run can refuse it.
TEST(KernelRaces, TheAdjointIsOutsideItsContract) {
  const auto refusal = [](const std::string& lines) -> std::string {
    const Module module =
        parse(kernel_of("i = wp.tid()\n" + lines, "x: wp.array[float], y: wp.array[float]"), "k.py");
    const Module back = adjoint(module, module.kernel());
    std::vector<Value> arguments(4, real_array({1, 2, 3, 4}));
    InterpretOptions options;
    options.refuse_races = true;
    try {
      interpret(back, back.kernel(), std::vector<std::int64_t>{4}, arguments, options);
    } catch (const KernelError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refusal("y[0] = x[i]").find("race in 'k_backward': thread 1"), std::string::npos);
  EXPECT_NE(refusal("y[i / 2] = x[i] * x[i]").find("adj_y[0]"), std::string::npos);
  EXPECT_EQ(refusal("y[i] = x[i] * x[0]"), "");
  EXPECT_EQ(refusal("y[0] += x[i] * x[i]"), "");
}

TEST(KernelRaces, AdjointsOfTheCorpusKeepTheContract) {
  for (const auto& file : corpus_files())
    for_each_run(file, [&](const Module& module, const Function& kernel, const auto& dim, const auto& values,
                           int block_dim) {
      std::vector<Value> arguments = values;
      std::vector<Race> found;
      InterpretOptions options;
      options.block_dim = block_dim;
      options.races = &found;
      interpret(module, kernel, dim, arguments, options);
      for (const Race& r : found) ADD_FAILURE() << warning(module, r).what();
      EXPECT_TRUE(certain_races(module, kernel).empty()) << kernel.name;
    });
}

TEST(KernelRaces, TheTextShowsStoresOfAllThreadsToOneElement) {
  const auto certain = [](const std::string& lines) {
    const Module module = parse(kernel_of("i = wp.tid()\n" + lines, parameters), "k.py");
    std::string all;
    for (const KernelError& e : certain_races(module, module.kernel())) all += std::string(e.what()) + "\n";
    return all;
  };
  EXPECT_NE(certain("y[0] = x[i]").find("k.py:7:6: race in 'k': every thread writes y[0]"), std::string::npos)
      << certain("y[0] = x[i]");
  EXPECT_NE(certain("y[-1] = x[i]"), "");
  EXPECT_NE(certain("for k in range(4):\n    y[k] = x[i]"), "");
  EXPECT_NE(certain("v[0][1] = x[i]"), "");
  EXPECT_NE(certain("s = x[i]\ny[len(y) - 1] = s"), "");
  for (const char* fine : {"y[i] = x[i]", "y[0] = 1.0", "y[0] = x[0]", "if i == 0:\n    y[0] = x[i]",
                           "if i > 0:\n    return\ny[0] = x[i]", "y[n[i]] = x[i]",
                           "wp.atomic_add(y, 0, x[i])", "y[0] += x[i]", "k = n[0] + i\ny[k] = x[i]"})
    EXPECT_EQ(certain(fine), "") << fine;
}

}  // namespace
}  // namespace ferrite::kernel
