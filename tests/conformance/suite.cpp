#include "suite.hpp"

#include <algorithm>
#include <iterator>

#include "all_cases.hpp"
#include "checks.hpp"
#include "coverage.hpp"
#include "example_check.hpp"

namespace ferrite::conformance {
namespace {

class ClosureTest : public ::testing::Test {
 public:
  explicit ClosureTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  std::function<void()> body_;
};

std::vector<Shape> shapes_of(const Spec& spec) {
  std::vector<Shape> shapes;
  for (const Input& input : spec.inputs) shapes.push_back(input.shape);
  return shapes;
}

using B = AnyBackend;
using D = Autodiff<AnyBackend>;

void check_all_shapes(B& b, const Case<B>& tested) {
  std::vector<std::vector<Shape>> variants = {shapes_of(tested.spec)};
  if (tested.spec.any_shape)
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{1, 1, 1}, Shape{4, 1, 33}})
      variants.push_back(std::vector<Shape>(tested.spec.inputs.size(), shape));
  variants.insert(variants.end(), tested.spec.more.begin(), tested.spec.more.end());
  for (const auto& shapes : variants) {
    check_forward(b, tested, shapes);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

void check_all_gradients(D& b, const Case<D>& tested) {
  D judge("reference");
  check_gradient(b, judge, tested);
  for (const auto& shapes : tested.spec.more) {
    if (::testing::Test::HasFatalFailure()) return;
    Case<D> small = tested;
    for (std::size_t k = 0; k < shapes.size(); ++k) small.spec.inputs[k].shape = shapes[k];
    check_gradient(b, judge, small);
  }
}

/// Cases are called by name here, so nothing but a case of that name makes an op a tested one.
void check_coverage() {
  std::vector<Spec> cases;
  for (const Case<B>& tested : all_cases<B>()) cases.push_back(tested.spec);
  std::vector<std::string_view> ops;
  const auto check = [&]<class Op>() {
    const std::string_view name = Op::type_name;
    ops.push_back(name);
    const Coverage coverage = coverage_of(name, cases);
    const auto* excuse = std::ranges::find(untested, name, &Untested::op);
    if (excuse != std::end(untested)) {
      EXPECT_FALSE(coverage.forward) << name << " has a case: it needs no place in `untested`";
      return;
    }
    EXPECT_TRUE(coverage.forward) << "no case of " << name << " in tests/conformance/cases_*.hpp";
    if (HasVjp<B, Op>) {
      EXPECT_TRUE(coverage.gradient) << "no case of " << name << " has a gradient";
    }
  };
  op::Core::for_each(check);
  priors::Ops::for_each(check);
  for (const TestedAs& other : tested_as)
    EXPECT_TRUE(std::ranges::count(ops, other.op) > 0) << other.op << " in `tested_as` is no op";
  for (const Untested& other : untested)
    EXPECT_TRUE(std::ranges::count(ops, other.op) > 0) << other.op << " in `untested` is no op";
}

}  // namespace

void add_test(const std::string& suite, std::string name, std::function<void()> body) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  ::testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [body]() -> ::testing::Test* { return new ClosureTest(body); });
}

bool register_suite(const std::string& suite, const std::string& backend, Bits bits) {
  const auto tested = all_cases<B>();
  const auto differentiated = all_cases<D>();
  for (std::size_t i = 0; i < tested.size(); ++i) {
    const std::string& name = tested[i].spec.name;
    add_test("Forward/" + suite, name, [backend, t = tested[i]] {
      B b(backend);
      check_all_shapes(b, t);
    });
    if (bits == Bits::same)
      add_test("CloneInvariance/" + suite, name, [backend, t = tested[i]] {
        B b(backend);
        check_clone_invariance(b, t);
      });
    if (!tested[i].spec.differentiable) continue;
    add_test("Gradient/" + suite, name, [backend, d = differentiated[i]] {
      D b(backend);
      check_all_gradients(b, d);
    });
  }
  op::Core::for_each([&]<class Op>() {
    add_test("Example/" + suite, std::string(Op::type_name), [backend] {
      B b(backend);
      check_example(b, Op::type_name);
    });
  });
  return true;
}

bool register_coverage() {
  add_test("Coverage", "EveryOpHasCases", check_coverage);
  return true;
}

}  // namespace ferrite::conformance
