// Functions that are made of several ops: their errors name what the user called, with the user's shapes.
#include <limits>

#include "ferrite/ops/cat.hpp"
#include "ferrite/ops/pointwise_loss.hpp"
#include "ferrite/ops/svd.hpp"
#include "ferrite/stacks.hpp"
#include "messages.hpp"

namespace ferrite::testing {
namespace {

template <class E, class F>
void expect_message(F&& f, const std::string& part) {
  expect_contains(message_of<E>(f), part);
}

TEST(FunctionNames, AreThoseThatWereCalled) {
  Cpu b;
  const auto t = [&](const Shape& shape) { return zeros(b, shape); };
  const std::vector<Tensor<Cpu>> none, unequal{t({2, 3}), t({2, 4})}, equal{t({2}), t({2})};
  expect_message<ShapeError>([&] { stack(unequal); }, "[stack] a tensor [2, 4]: needs [2, 3]");
  expect_message<ShapeError>([&] { stack(equal, 5); }, "[stack] axis 5 of rank 2");
  expect_message<ShapeError>([&] { stack(none); }, "[stack] needs at least one tensor");
  expect_message<ValueError>([&] { repeat(t({2}), {-1}); }, "[repeat] count -1: must not be negative");
  expect_message<ShapeError>([&] { repeat(t({2}), {std::int64_t{1} << 62}); }, "[repeat] shape");
  expect_message<ValueError>([&] { split(t({4}), {5, -1}); }, "[split] length -1: must not be negative");
  expect_message<ShapeError>([&] { unsqueeze(t({1, 1, 1, 1, 1, 1, 1, 1}), 0); }, "[unsqueeze] rank 9");
  expect_message<ShapeError>([&] { solve(t({3, 3}), t({4})); }, "[solve] b [4]: needs [3]");
  expect_message<ShapeError>(
      [&] {
        solve(t({2, 3, 3}), t({5, 3, 1}));
      },
      "[solve] a [2, 3, 3] and b [5, 3, 1]: batch axes [2] and [5]");
  const auto bad = full(b, {2, 3}, std::numeric_limits<double>::quiet_NaN());
  expect_message<ValueError>([&] { pinv(bad); }, "[pinv] the matrix is not finite");
  expect_message<ValueError>([&] { matrix_norm(bad, MatrixNorm::nuclear); }, "[matrix_norm]");
  expect_message<ShapeError>([&] { huber_loss(t({0}), t({0})); }, "[huber_loss]");
}

}  // namespace
}  // namespace ferrite::testing
