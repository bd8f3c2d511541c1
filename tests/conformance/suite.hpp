// Registers the whole suite for one backend type. A new backend is one more line in a .cpp of this folder.
#pragma once

#include "cases_elementwise.hpp"
#include "cases_fused.hpp"
#include "cases_priors.hpp"
#include "cases_reduce.hpp"
#include "cases_views.hpp"
#include "checks.hpp"

namespace ferrite::conformance {

template <class B>
std::vector<Case<B>> all_cases() {
  Cases<B> cases;
  add_elementwise_cases(cases);
  add_view_cases(cases);
  add_reduce_cases(cases);
  add_matmul_cases(cases);
  add_index_cases(cases);
  add_fused_cases(cases);
  add_prior_cases(cases);
  return cases.take();
}

/// A test made of a closure.
class ClosureTest : public ::testing::Test {
 public:
  explicit ClosureTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  std::function<void()> body_;
};

inline void add_test(const std::string& suite, std::string name, std::function<void()> body) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  ::testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [body]() -> ::testing::Test* { return new ClosureTest(body); });
}

inline std::vector<Shape> shapes_of(const Spec& spec) {
  std::vector<Shape> shapes;
  for (const Input& input : spec.inputs) shapes.push_back(input.shape);
  return shapes;
}

/// Forward values and clone-invariance on B, and gradients on Autodiff<B>.
template <class B>
bool register_suite(const std::string& name) {
  const auto tested = all_cases<B>();
  const auto oracle = all_cases<Reference>();
  const auto differentiated = all_cases<Autodiff<B>>();
  for (std::size_t i = 0; i < tested.size(); ++i) {
    add_test("Forward/" + name, tested[i].spec.name, [t = tested[i], o = oracle[i]] {
      B b;
      std::vector<std::vector<Shape>> variants = {shapes_of(t.spec)};
      if (t.spec.any_shape)
        for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{1, 1, 1}, Shape{4, 1, 33}})
          variants.push_back(std::vector<Shape>(t.spec.inputs.size(), shape));
      variants.insert(variants.end(), t.spec.more.begin(), t.spec.more.end());
      for (const auto& shapes : variants) {
        check_forward(b, t, o, shapes);
        if (::testing::Test::HasFatalFailure()) return;
      }
    });
    add_test("CloneInvariance/" + name, tested[i].spec.name, [t = tested[i]] {
      B b;
      check_clone_invariance(b, t);
    });
    if (!tested[i].spec.differentiable) continue;
    add_test("Gradient/" + name, tested[i].spec.name, [d = differentiated[i]] {
      Autodiff<B> b;
      check_gradient(b, d);
      for (const auto& shapes : d.spec.more) {
        if (::testing::Test::HasFatalFailure()) return;
        Case<Autodiff<B>> small = d;
        for (std::size_t k = 0; k < shapes.size(); ++k) small.spec.inputs[k].shape = shapes[k];
        check_gradient(b, small);
      }
    });
  }
  return true;
}

}  // namespace ferrite::conformance
