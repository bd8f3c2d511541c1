// Cpu's reductions against loops in double.
#include <algorithm>

#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

using op::ReduceFn;

double fold(ReduceFn fn, const Values& group) {
  double y = fn == ReduceFn::sum || fn == ReduceFn::any ? 0
             : fn == ReduceFn::max                      ? -inf
             : fn == ReduceFn::min                      ? inf
                                                        : 1;
  for (const double v : group) {
    if (fn == ReduceFn::sum) y += v;
    if (fn == ReduceFn::prod) y *= v;
    if (fn == ReduceFn::max) y = std::isnan(y) || y > v ? y : v;
    if (fn == ReduceFn::min) y = std::isnan(y) || y < v ? y : v;
    if (fn == ReduceFn::any) y = y != 0 || v != 0;
    if (fn == ReduceFn::all) y = y != 0 && v != 0;
  }
  return y;
}

Values folded(ReduceFn fn, const Array& x, const Shape& axes) {
  Values y;
  for (const Values& group : groups_of(x, axes)) y.push_back(fold(fn, group));
  return y;
}

constexpr ReduceFn all_fns[] = {ReduceFn::sum, ReduceFn::prod, ReduceFn::max,
                                ReduceFn::min, ReduceFn::any,  ReduceFn::all};

TEST(CpuReduce, EveryFunctionDTypeAndLayoutAgreesWithALoop) {
  const std::vector<std::pair<Shape, Shape>> cases = {{{7, 5, 33}, {}},
                                                      {{7, 5, 33}, {0}},
                                                      {{7, 5, 33}, {1}},
                                                      {{7, 5, 33}, {2}},
                                                      {{7, 5, 33}, {0, 2}},
                                                      {{7, 5, 33}, {1, 2}},
                                                      {{7, 5, 33}, {0, 1}},
                                                      {{300, 3}, {1}},
                                                      {{300, 3}, {0}},
                                                      {{3, 300}, {-1}},
                                                      {{2, 1, 2100}, {1}},
                                                      {{2, 3, 4, 5}, {1, 3}},
                                                      {{}, {}},
                                                      {{1, 1}, {0}},
                                                      {{0, 3}, {0}},
                                                      {{3, 0}, {0}}};
  for (const auto& [shape, axes] : cases) {
    for (const ReduceFn fn : all_fns) {
      const bool extremum = fn == ReduceFn::max || fn == ReduceFn::min;
      if (extremum && shape.numel() == 0 && op::reduced_count(shape, axes) == 0) continue;
      for (const DType dtype : arithmetic_dtypes) {
        const double low = is_floating(dtype)     ? 0.9
                           : fn == ReduceFn::prod ? 1
                                                  : 0,
                     high = is_floating(dtype) ? 1.1 : 3;
        for (const Form form : all_forms) {
          const Array x = random(dtype, shape, 3, low, high, form);
          const Values expected = folded(fn, x, axes);
          const auto beyond_double = [](double v) { return v > 1e15; };
          if (std::any_of(expected.begin(), expected.end(), beyond_double)) continue;
          const Form out_form = form == Form::flipped ? Form::stepped : Form::contiguous;
          const Array y = run(op::Reduce{fn, axes, form == Form::shifted}, {x}, out_form);
          SCOPED_TRACE(std::string(op::to_string(fn)) + " " + to_string(x.meta()) + " over " +
                       to_string(axes) + " form " + std::to_string(static_cast<int>(form)));
          // f64 differs from the loop by the order of additions; the others are kept wider and rounded once.
          expect_close(values_of(y), expected, dtype == DType::f64 ? 1e-14 : epsilon(y.dtype()));
        }
      }
    }
  }
}

TEST(CpuReduce, BigSumsAreAsGoodAsTheirDTypeAndTheSameForAnyNumberOfThreads) {
  for (const DType dtype : {DType::f32, DType::f16, DType::i32}) {
    const Array x = random(dtype, {513, 2049}, 1, is_floating(dtype) ? -1 : 0, is_floating(dtype) ? 1 : 10);
    for (const Shape& axes : {Shape{}, Shape{0}, Shape{1}}) {
      for (const ReduceFn fn : {ReduceFn::sum, ReduceFn::max}) {
        const op::Reduce op{fn, axes};
        const Values expected = folded(fn, x, axes);
        const double terms = static_cast<double>(x.shape().numel()) / static_cast<double>(expected.size());
        expect_close(values_of(run(op, {x})), expected, epsilon(dtype), std::sqrt(terms));
        expect_thread_invariance([&] { return run(op, {x}); });
        const Array turned = x.with_layout(x.layout().permute({1, 0}));
        expect_thread_invariance([&] { return run(op, {turned}); });
      }
    }
  }
}

TEST(CpuReduce, ALongSumOfEqualNumbersIsExact) {
  constexpr std::int64_t n = 40'000'000;
  const Array x = make<double>(DType::f32, {1}, {0.1});
  const Array repeated = x.with_layout(x.layout().expand({n}));
  EXPECT_EQ(values_of<float>(run(op::Reduce{ReduceFn::sum, {}}, {repeated}))[0],
            static_cast<float>(static_cast<double>(0.1f) * n));
}

TEST(CpuReduce, ExtremaReturnNaNWhereverItStands) {
  for (const std::int64_t at : {0, 5, 16, 2047, 2048, 70000}) {
    Values values(70001, 1);
    values[size(at)] = nan;
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Array x = make(dtype, {70001}, values), column = make(dtype, {70001, 2}, [&] {
                                                      Values two;
                                                      for (const double v : values)
                                                        two.insert(two.end(), {v, 1});
                                                      return two;
                                                    }());
      EXPECT_TRUE(std::isnan(values_of(run(op::Reduce{ReduceFn::max, {}}, {x}))[0]));
      EXPECT_TRUE(std::isnan(values_of(run(op::Reduce{ReduceFn::min, {0}}, {column}))[0]));
      EXPECT_EQ(values_of(run(op::Reduce{ReduceFn::min, {0}}, {column}))[1], 1);
    }
  }
}

TEST(CpuReduce, AddsSumsToAnOutputAndRefusesToAddOthers) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64}) {
    for (const Form form : all_forms) {
      const Array x = random(dtype, {40, 30, 20}, 1, 0, 9), out = random(dtype, {40, 20}, 2, 0, 9, form);
      Values expected = values_of(out);
      const Values sums = folded(ReduceFn::sum, x, {1});
      for (std::size_t i = 0; i < sums.size(); ++i) expected[i] += sums[i];
      run_into(op::Reduce{ReduceFn::sum, {1}}, {x}, out, add_to_output);
      expect_close(values_of(out), expected, 2 * epsilon(dtype));
    }
  }
  const Array x = random(DType::f32, {3}, 1), out = random(DType::f32, {}, 1);
  EXPECT_THROW(run_into(op::Reduce{ReduceFn::max, {}}, {x}, out, add_to_output), BackendError);
}

}  // namespace
}  // namespace ferrite::cpu_test
