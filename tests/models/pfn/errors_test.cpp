// What prior-fitted networks refuse, and what they say.
#include "ferrite/models/pfn/network.hpp"
#include "models/pfn/pfn_test.hpp"

namespace ferrite::pfn {
namespace {

using testing::expect_error;
using testing::lively_pfn;
using testing::small_pfn;
using testing::Tables;

TEST(Pfn, ErrorsSayWhatIsWrong) {
  using B = Autodiff<AnyBackend>;
  B backend("cpu");
  Network<B> model = lively_pfn(backend, small_pfn());
  Network<B> real = lively_pfn(backend, small_pfn(Task::regression));
  const Tables<B> t(backend, Task::classification);
  const auto forward = [&](const Tensor<B>& x, const Tensor<B>& flags, const Tensor<B>& labels) {
    return [=, &model] { model.forward(x, flags, labels); };
  };
  expect_error<ShapeError>(forward(t.x, t.is_category, slice(t.labels, 1, 0, 0)),
                           {"[Pfn]", "labels [2, 0]", "at least one row needs a label"});
  expect_error<ShapeError>(forward(t.x_train(), t.is_category, t.labels),
                           {"x [2, 7, 5]", "labels [2, 7]", "at least one must have none"});
  expect_error<ShapeError>(forward(t.x, t.is_category, slice(t.labels, 0, 0, 1)), {"[Pfn] labels"});
  expect_error<ShapeError>(forward(t.x, slice(t.is_category, 1, 0, 4), t.labels), {"[Pfn] is_category"});
  expect_error<ShapeError>(forward(select(t.x, 0, 0), t.is_category, t.labels), {"[Pfn] x"});
  expect_error<ShapeError>(forward(slice(t.x, 2, 0, 0), t.is_category, t.labels),
                           {"[2, 11, 0]", "one row and one column"});
  expect_error<DTypeError>(forward(cast(t.x, DType::i32), t.is_category, t.labels), {"[Pfn]", "x"});
  expect_error<DTypeError>(forward(t.x, t.is_category, cast(t.labels, DType::f32)),
                           {"labels are f32: classification needs integers"});
  expect_error<DTypeError>([&] { real.forward(t.x, t.is_category, t.labels); },
                           {"labels are i32: regression needs floating"});
  expect_error<ShapeError>([&] { model.loss(t.x, t.is_category, t.labels, t.labels); }, {"[Pfn] targets"});
  expect_error<ShapeError>(
      [&] { model.loss(t.x, t.is_category, t.labels, t.targets, slice(t.classes, 0, 0, 1)); },
      {"[Pfn] classes"});
  expect_error<ValueError>(forward(t.x, t.is_category, t.labels + 7), {"embedding"});
  expect_error<ValueError>([&] { model.bins(); }, {"only regression has bins"});

  auto context = model.forward_context(t.x_train(), t.is_category, t.labels);
  expect_error<ShapeError>([&] { model.predict(context, slice(t.x, 2, 0, 4)); }, {"columns of the context"});
  expect_error<ShapeError>([&] { model.predict(context, slice(t.x, 0, 0, 1)); }, {"columns of the context"});
  expect_error<ValueError>([&] { context.in_units(t.x); }, {"no units"});
  auto broken = context;
  broken.columns.deviation = slice(context.columns.deviation, 2, 0, 1);
  expect_error<ShapeError>([&] { model.predict(broken, t.x_query()); }, {"columns of the context"});
  broken = context;
  broken.is_category = t.x;
  expect_error<ShapeError>([&] { model.predict(broken, t.x_query()); }, {"is_category of the context"});
  context.layers.pop_back();
  expect_error<ValueError>([&] { model.predict(context, t.x_query()); }, {"of 2 layers", "has 3"});
  context.layers.push_back(context.layers[0]);
  expect_error<ShapeError>([&] { model.predict(context, t.x_query()); }, {"keys of the context"});
}

}  // namespace
}  // namespace ferrite::pfn
