// Cpu's argreductions against loops in double.
#include <algorithm>

#include "ops/primitive_support.hpp"

namespace ferrite::cpu_test {
namespace {

using op::ArgReduceFn;

TEST(CpuArgReduce, TheFirstOfEqualsWinsAndNaNBeatsAll) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::u8}) {
    for (const Shape& shape : {Shape{6, 5, 40}, Shape{300, 3}, Shape{2, 5000}, Shape{1}}) {
      for (int axis = 0; axis < shape.rank(); ++axis) {
        for (const Form form : all_forms) {
          const Array x = random(dtype, shape, 9, 0, 6, form);
          if (is_floating(dtype)) {
            Values values = values_of(x);
            for (double& v : values) v = std::floor(v);  // many ties
            if (values.size() > 20) values[11] = values[17] = nan;
            assign(x, values);
          }
          Values most, least;
          for (const Values& group : groups_of(x, {axis})) {
            const auto better = [](double a, double b, bool max) {
              return !std::isnan(a) && (std::isnan(b) || (max ? b > a : b < a));
            };
            most.push_back(
                static_cast<double>(std::max_element(group.begin(), group.end(),
                                                     [&](double a, double b) { return better(a, b, true); }) -
                                    group.begin()));
            least.push_back(static_cast<double>(
                std::max_element(group.begin(), group.end(),
                                 [&](double a, double b) { return better(a, b, false); }) -
                group.begin()));
          }
          SCOPED_TRACE(to_string(x.meta()) + " axis " + std::to_string(axis));
          expect_close(values_of(run(op::ArgReduce{ArgReduceFn::argmax, axis}, {x})), most, 0);
          expect_close(values_of(run(op::ArgReduce{ArgReduceFn::argmin, axis, true}, {x})), least, 0);
        }
      }
    }
  }
}

TEST(CpuArgReduce, FindsThePlaceInALongLineWithAnyNumberOfThreads) {
  Values values(500'000, 2);
  values[123'456] = values[321'000] = 7;
  const Array x = make(DType::f32, {500'000}, values);
  expect_thread_invariance([&] { return run(op::ArgReduce{ArgReduceFn::argmax, 0}, {x}); });
  EXPECT_EQ(values_of<std::int64_t>(run(op::ArgReduce{ArgReduceFn::argmax, 0}, {x}))[0], 123'456);
  EXPECT_EQ(values_of<std::int64_t>(run(op::ArgReduce{ArgReduceFn::argmin, 0}, {x}))[0], 0);
}

}  // namespace
}  // namespace ferrite::cpu_test
