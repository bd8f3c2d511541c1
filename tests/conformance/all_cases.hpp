// All cases for one backend type.
#pragma once

#include "cases_elementwise.hpp"
#include "cases_fused.hpp"
#include "cases_generation.hpp"
#include "cases_linear_algebra.hpp"
#include "cases_priors.hpp"
#include "cases_reduce.hpp"
#include "cases_views.hpp"

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
  add_generation_cases(cases);
  add_linear_algebra_cases(cases);
  add_prior_cases(cases);
  return cases.take();
}

}  // namespace ferrite::conformance
