// Every kernel of the corpus: either its gradient agrees with central differences, or it is refused for a
// reason that is written here.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "ferrite/kernel/simplify.hpp"
#include "kernel/adjoint_test.hpp"
#include "kernel/transform/lower.hpp"
#include "paths.hpp"

namespace ferrite::kernel {

namespace {

std::string corpus_text(const std::string& file) {
  std::ifstream in(test_paths::source_folder() + "/tests/kernel/corpus/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// What the comment over the kernel says, with normal numbers in place of zeros.
struct Launch {
  Extents grid;
  Arguments arguments;
};
Launch launch_of(const Module& module, const Function& kernel, const std::string& comment) {
  std::mt19937 random(3);
  std::map<std::string, std::string> given;
  std::istringstream in(comment);
  for (std::string word; in >> word;) given[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  const auto extents = [](const std::string& text) {
    Extents all;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, 'x');) all.push_back(std::stoll(part));
    return all;
  };
  Launch launch{extents(given.at("dim")), {}};
  for (int i = 0; i < kernel.parameters; ++i) {
    const Variable& p = kernel.variables[static_cast<std::size_t>(i)];
    if (p.type.is_struct()) {
      Value v{p.type, {}, {}, {}};
      for (const Variable& f : module.structs[p.type.structure].fields) {
        std::istringstream numbers(given.at(p.name + "." + f.name));
        for (std::string n; std::getline(numbers, n, ',');) v.numbers.push_back(from_real(std::stod(n)));
      }
      launch.arguments.push_back(std::move(v));
    } else if (p.type.is_array()) {
      const std::string& how = given.at(p.name);
      Extents shape = extents(how.substr(how.find(':') + 1));
      shape.resize(p.type.dims);
      Value v = reals_value(p.type, shape, random);
      if (how.starts_with("zeros") && !is_float(p.type.scalar)) v.numbers.assign(v.numbers.size(), Number{});
      launch.arguments.push_back(std::move(v));
    } else {
      launch.arguments.push_back(scalar_value(p.type.scalar, std::stod(given.at(p.name))));
    }
  }
  return launch;
}

/// The form that the adjoint starts from computes the same, without calls and jumps.
void expect_lowered_is_equal(const Module& module, const Function& kernel, const Launch& launch) {
  Module lowered;
  lowered.structs = module.structs;
  lowered.kernels.push_back(lower(module, kernel).function);
  const std::vector<Stmt>& body = lowered.kernels[0].body;
  for_each_expr(body, [&](const Expr& e) { EXPECT_NE(e.kind, ExprKind::call); });
  for_each_stmt(body, [&](const Stmt& s) {
    EXPECT_TRUE(s.kind != StmtKind::break_ && s.kind != StmtKind::continue_ && s.kind != StmtKind::return_);
  });
  Function shorter = lowered.kernels[0];
  simplify(lowered, shorter);
  Arguments wanted = launch.arguments, got = launch.arguments, simplified = launch.arguments;
  interpret(module, kernel, launch.grid, wanted, exact());
  interpret(lowered, lowered.kernels[0], launch.grid, got, exact());
  interpret(lowered, shorter, launch.grid, simplified, exact());
  for (std::size_t a = 0; a < wanted.size(); ++a) {
    const bool real = is_float(wanted[a].type.scalar);
    for (std::size_t i = 0; i < wanted[a].numbers.size(); ++i) {
      const Number want = wanted[a].numbers[i];
      ASSERT_EQ(simplified[a].numbers[i].integer, got[a].numbers[i].integer) << print(lowered);
      if (real) {  // definitions of builtins round in other places
        ASSERT_NEAR(got[a].numbers[i].real, want.real, 1e-12 * std::max(1.0, std::fabs(want.real)));
      } else {
        ASSERT_EQ(got[a].numbers[i].integer, want.integer) << print(lowered);
      }
    }
  }
}

class AdjointCorpus : public testing::TestWithParam<const char*> {};

TEST_P(AdjointCorpus, AgreesWithDifferences) {
  // What cannot be differentiated, and why.
  const std::map<std::string, std::string> refused = {
      {"float_reductions", "the result of wp.atomic_add"},
      {"block_sum", "shared arrays"},
      {"block_scan", "shared arrays"},
      {"block_reverse", "shared arrays"},
      {"tile_sums", "shared arrays"},
      {"row_means", "shared arrays"},
      {"tile_vectors", "shared arrays"},
      {"tile_product", "shared arrays"},
      {"tile_turn", "shared arrays"},
      {"tile_attraction", "shared arrays"},
      {"tile_ahead", "shared arrays"},
      {"tile_products", "shared arrays"},
  };
  const std::string text = corpus_text(GetParam());
  const Module module = parse(text, GetParam());
  const std::regex launches("# run: (.*)\n@wp\\.kernel.*\ndef (\\w+)");
  int seen = 0;
  for (std::sregex_iterator i(text.begin(), text.end(), launches), end; i != end; ++i, ++seen) {
    const Function& kernel = module.kernel((*i)[2].str());
    if (const auto found = refused.find(kernel.name); found != refused.end()) {
      try {
        adjoint(module, kernel);
        ADD_FAILURE() << kernel.name << " is not refused";
      } catch (const KernelError& e) {
        EXPECT_NE(e.problem().find(found->second), std::string::npos) << e.what();
      }
      continue;
    }
    const Launch launch = launch_of(module, kernel, (*i)[1].str());
    SCOPED_TRACE(kernel.name);
    expect_lowered_is_equal(module, kernel, launch);
    expect_gradients(module, kernel, launch.grid, launch.arguments);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(seen, static_cast<int>(module.kernels.size()));
}

INSTANTIATE_TEST_SUITE_P(Files, AdjointCorpus,
                         testing::Values("control.py", "elementwise.py", "functions.py", "indices.py",
                                         "integers.py", "physics.py", "shared.py", "tiles.py", "vectors.py"),
                         [](const auto& file) {
                           const std::string name = file.param;
                           return name.substr(0, name.find('.'));
                         });

}  // namespace

}  // namespace ferrite::kernel
