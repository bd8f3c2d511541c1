// Programs of every category and level: the same on every call, read back by the parser, defined for their
// inputs, with nothing in them that is not used.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ferrite/kernel/parse.hpp"
#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {
namespace {

/// Calls f(category, level, program) for a few programs of every category and level.
template <class F>
void for_each_program(int each, F f) {
  std::uint64_t stream = 0;
  for (const Category& c : categories())
    for (int level = c.lowest_level; level <= c.highest_level; ++level)
      for (int i = 0; i < each; ++i, ++stream) f(c, level, make_program(c, level, {11, stream}), stream);
}

TEST(IrsynthProgram, IsReadBackByTheParser) {
  for_each_program(20, [](const Category& c, int level, const Program& p, std::uint64_t) {
    const std::string text = kernel::print(p.module);
    ASSERT_TRUE(kernel::parse(text) == p.module) << c.name << " " << level << "\n" << text;
  });
}

TEST(IrsynthProgram, RunsWithoutAnError) {
  for_each_program(20, [](const Category& c, int level, const Program& p, std::uint64_t stream) {
    std::vector<kernel::Value> values = make_arguments(p, {11, 1ull << 63 | stream * 64});
    kernel::InterpretOptions options;
    options.block_dim = p.block_dim;
    ASSERT_NO_THROW(kernel::interpret(p.module, p.kernel(), p.grid, values, options))
        << c.name << " " << level << "\n"
        << kernel::print(p.module);
    for (std::size_t k = 0; k < values.size(); ++k)
      for (const kernel::Number n : values[k].numbers)
        if (p.arguments[k].output && kernel::is_float(values[k].type.scalar)) {
          ASSERT_TRUE(std::abs(n.real) < 1e4) << n.real << " " << kernel::print(p.module);
        }
  });
}

TEST(IrsynthProgram, UsesEveryParameterAndVariable) {
  for_each_program(20, [](const Category&, int, const Program& p, std::uint64_t) {
    const kernel::Function& k = p.kernel();
    std::vector<int> reads(k.variables.size());
    kernel::for_each_stmt(k.body, [&](const kernel::Stmt& s) {
      for (const kernel::Expr& v : s.values)
        kernel::for_each_expr(v, [&](const kernel::Expr& e) {
          if (e.kind == kernel::ExprKind::variable) ++reads[static_cast<std::size_t>(e.index)];
        });
      for (const kernel::Expr& t : s.targets)
        if (t.kind != kernel::ExprKind::variable)
          kernel::for_each_expr(t, [&](const kernel::Expr& e) {
            if (e.kind == kernel::ExprKind::variable) ++reads[static_cast<std::size_t>(e.index)];
          });
    });
    for (std::size_t i = 0; i < static_cast<std::size_t>(k.parameters); ++i)
      ASSERT_GT(reads[i], 0) << k.variables[i].name << "\n" << kernel::print(p.module);
    kernel::for_each_stmt(k.body, [&](const kernel::Stmt& s) {
      if (s.kind != kernel::StmtKind::assign || s.targets.size() > 1 ||
          s.targets[0].kind != kernel::ExprKind::variable)
        return;
      const auto v = static_cast<std::size_t>(s.targets[0].index);
      ASSERT_GT(reads[v], 0) << k.variables[v].name << "\n" << kernel::print(p.module);
    });
  });
}

TEST(IrsynthProgram, LevelsSayWhatIsUsed) {
  for_each_program(30, [](const Category& c, int level, const Program& p, std::uint64_t) {
    bool branch = false, loop = false;
    const auto look = [&](const kernel::Function& f) {
      kernel::for_each_stmt(f.body, [&](const kernel::Stmt& s) {
        branch |= s.kind == kernel::StmtKind::if_;
        loop |= s.kind == kernel::StmtKind::for_ || s.kind == kernel::StmtKind::while_;
      });
    };
    look(p.kernel());
    for (const kernel::Function& f : p.module.functions) look(f);
    if (level == 0) {
      ASSERT_EQ(p.kernel().body.size(), 2u) << kernel::print(p.module);
    }
    if (level < 2) {
      ASSERT_FALSE(branch) << c.name;
    }
    if (level < 3) {
      ASSERT_FALSE(loop) << c.name;
    }
    if (level < 5) {
      ASSERT_TRUE(p.module.functions.empty() && p.module.structs.empty()) << c.name;
    }
  });
}

TEST(IrsynthProgram, DependsOnTheKeyAlone) {
  const Category& c = category("physics");
  const Program a = make_program(c, 6, {3, 4});
  make_program(category("math"), 2, {3, 5});
  EXPECT_TRUE(make_program(c, 6, {3, 4}).module == a.module);
  EXPECT_FALSE(make_program(c, 6, {3, 5}).module == a.module);
}

TEST(IrsynthProgram, UnknownCategoriesAndLevelsAreNamed) {
  try {
    category("poetry");
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("arithmetic, math"), std::string::npos) << e.what();
  }
  EXPECT_THROW(make_program(category("atomic"), 1, {0, 0}), ValueError);
  Config config;
  config.categories = {"shared_memory"};
  config.lowest_level = config.highest_level = 7;
  EXPECT_THROW(config.check(), ValueError);
}

}  // namespace
}  // namespace ferrite::irsynth
