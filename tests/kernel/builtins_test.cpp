// The builtin table: no empty cell, every row tested, every value known.
#include <cmath>
#include <set>

#include "kernel_test.hpp"

namespace ferrite::kernel {
namespace {

struct Case {
  std::string form, expression;
  std::vector<double> expected;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  std::istringstream in(read_file(corpus_folder() / "builtins.txt"));
  for (std::string line; std::getline(in, line);) {
    if (line[0] == '#') continue;
    const std::size_t colon = line.find(": "), arrow = line.rfind(" => ");
    Case c{line.substr(0, colon), line.substr(colon + 2, arrow - colon - 2), {}};
    std::istringstream numbers(line.substr(arrow + 4));
    for (double x = 0; numbers >> x;) c.expected.push_back(x);
    all.push_back(std::move(c));
  }
  return all;
}

std::string source_of(const Case& c) {
  std::string lines = "state = wp.rand_init(42)\nv = " + c.expression + "\n";
  const int n = c.form == "q" ? 4 : c.form == "s" ? 1 : c.form[1] - '0';
  for (int k = 0; k < static_cast<int>(c.expected.size()); ++k) {
    const std::string part = c.form == "s" ? ""
                             : c.form[0] == 'm'
                                 ? "[" + std::to_string(k / n) + ", " + std::to_string(k % n) + "]"
                                 : "[" + std::to_string(k) + "]";
    lines += "out[" + std::to_string(k) + "] = wp.float64(v" + part + ")\n";
  }
  return kernel_of(lines,
                   "x: float, i: int, a: wp.array[float], n: wp.array[int], out: wp.array[wp.float64]");
}

TEST(KernelBuiltins, TableIsComplete) {
  ASSERT_EQ(static_cast<int>(builtins().size()), builtin_count);
  std::set<std::string_view> names;
  for (int i = 0; i < builtin_count; ++i) {
    const BuiltinInfo& row = builtins()[static_cast<std::size_t>(i)];
    EXPECT_EQ(static_cast<int>(row.id), i) << row.name << " stands in the wrong place";
    EXPECT_FALSE(row.name.empty() || row.group.empty() || row.doc.empty()) << i;
    EXPECT_TRUE(row.signature.starts_with(std::string(row.name) + "(")) << row.name;
    EXPECT_NE(row.result, nullptr) << row.name;
    EXPECT_NE(row.evaluate, nullptr) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is there twice";
    EXPECT_EQ(find_builtin(row.name), &row);
  }
  EXPECT_EQ(find_builtin("sine"), nullptr);
}

TEST(KernelBuiltins, KnownValues) {
  for (const Case& c : cases()) {
    std::vector<Value> arguments{scalar_value(ScalarType::f32, 0.75), scalar_value(ScalarType::i32, -7),
                                 real_array({1, 2, 3, 4}), real_array({1, 2, 3, 4}, ScalarType::i32),
                                 real_array(std::vector<double>(16), ScalarType::f64)};
    launch(source_of(c), {1}, arguments);
    const std::vector<double> got = reals(arguments[4]);
    double largest = 1;
    for (const double e : c.expected) largest = std::max(largest, std::fabs(e));
    // Results of f32, rounded once or twice; those written with float64 are that good.
    const bool wide = c.expression.find("float64") != std::string::npos;
    for (std::size_t k = 0; k < c.expected.size(); ++k)
      EXPECT_NEAR(got[k], c.expected[k], largest * (wide ? 4e-16 : 3e-7))
          << c.expression << " component " << k;
  }
}

TEST(KernelBuiltins, EveryRowHasATest) {
  std::set<Builtin> seen;
  const auto note = [&](const Module& module) {
    for (const auto* list : {&module.functions, &module.kernels})
      for (const Function& f : *list) {
        for_each_stmt(f.body, [&](const Stmt& s) {
          if (s.kind == StmtKind::update) seen.insert(s.builtin);
        });
        for_each_expr(f.body, [&](const Expr& e) {
          if (e.kind == ExprKind::apply) seen.insert(e.builtin);
        });
      }
  };
  for (const Case& c : cases()) note(parse(source_of(c)));
  for (const auto& file : corpus_files()) note(parse(read_file(file)));
  seen.insert({Builtin::expect_eq, Builtin::expect_near});  // interpreter_test.cpp
  for (const BuiltinInfo& row : builtins())
    EXPECT_TRUE(seen.contains(row.id)) << row.name << " is in no test";
}

TEST(KernelBuiltins, AtomicsWriteWhatTheySay) {
  struct Atomic {
    std::string call;
    double after;
  };
  for (const auto& [call, after] : std::initializer_list<Atomic>{{"atomic_add(n, 1, 5)", 11},
                                                                 {"atomic_sub(n, 1, 5)", 1},
                                                                 {"atomic_min(n, 1, 5)", 5},
                                                                 {"atomic_max(n, 1, 5)", 6},
                                                                 {"atomic_exch(n, 1, 5)", 5},
                                                                 {"atomic_cas(n, 1, 6, 9)", 9},
                                                                 {"atomic_cas(n, 1, 7, 9)", 6},
                                                                 {"atomic_and(n, 1, 5)", 4},
                                                                 {"atomic_or(n, 1, 5)", 7},
                                                                 {"atomic_xor(n, 1, 5)", 3}}) {
    std::vector<Value> arguments{real_array({0, 6}, ScalarType::i32), real_array({0}, ScalarType::i32)};
    launch(kernel_of("out[0] = wp." + call, "n: wp.array[int], out: wp.array[int]"), {1}, arguments);
    EXPECT_EQ(reals(arguments[0]), (std::vector<double>{0, after})) << call;
    EXPECT_EQ(reals(arguments[1])[0], 6) << call;
  }
}

TEST(KernelBuiltins, MakersCheckTypes) {
  const Expr one = literal(ScalarType::f32, 1.0), whole = literal(ScalarType::i32, std::int64_t{1});
  EXPECT_EQ(apply(Builtin::add, {one, one}).type, float_type);
  EXPECT_THROW(apply(Builtin::add, {one, whole}), ValueError);
  EXPECT_THROW(apply(Builtin::sin, {whole}), ValueError);
  EXPECT_EQ(apply(Builtin::neg, {one}), literal(ScalarType::f32, -1.0));
  EXPECT_EQ(cast(ScalarType::f32, whole), one);
}

}  // namespace
}  // namespace ferrite::kernel
