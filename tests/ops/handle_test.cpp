// Tensors and their backends: which objects mix, and who keeps whom alive.
#include <gtest/gtest.h>

#include <filesystem>

#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

using Floats = std::vector<float>;

/// A tensor whose backend object is gone.
template <class B>
Tensor<B> orphan() {
  B local;
  return ones(local, {3}) * 2;
}
template <class B>
void expect_orphans_work() {
  const Tensor<B> x = orphan<B>();
  EXPECT_EQ((x + x).to_vector(), (Floats{4, 4, 4}));
  EXPECT_EQ(sum(exp(x) * 0).item(), 0);
}
TEST(Handle, TensorsKeepTheirBackendAlive) {
  expect_orphans_work<Cpu>();
  expect_orphans_work<Reference>();
  expect_orphans_work<Lazy<Cpu>>();
  expect_orphans_work<Profiled<Cpu>>();
  expect_orphans_work<Parity<Cpu, Reference>>();
  expect_orphans_work<Autodiff<Cpu>>();
  expect_orphans_work<Autodiff<Lazy<Cpu>>>();
  expect_orphans_work<Autodiff<Profiled<Lazy<Cpu>>>>();
  expect_orphans_work<Autodiff<Autodiff<Cpu>>>();
}

TEST(Handle, GraphsAndGradientsKeepItToo) {
  using D = Autodiff<Lazy<Cpu>>;
  Tensor<D> w, loss;
  {
    D local;
    w = parameter(full(local, {2}, 3), "w");
    loss = sum(w * w);
  }
  Gradients<Lazy<Cpu>> grads = loss.backward();
  loss = {};
  EXPECT_EQ((grads.of(w) + 1).to_vector(), (Floats{7, 7}));
  w = {};
}

TEST(Handle, CopiesOfADecoratorAreOne) {
  Profiled<Cpu> b;
  const auto x = ones(b, {3});
  Profiled<Cpu> copy = x.backend();
  exp(x + ones(copy, {3}));
  EXPECT_EQ(b.profile().ops.size(), copy.profile().ops.size());
  EXPECT_EQ(b, copy);
  Profiled<Cpu> other;
  EXPECT_FALSE(b == other);
  EXPECT_THROW(x + ones(other, {3}), DeviceError);
  Autodiff<Profiled<Cpu>> recording(b);  // over the same one
  EXPECT_EQ(recording.inner(), b);
}

TEST(Handle, ObjectsWithoutStateMix) {
  Cpu a, b;
  EXPECT_EQ((ones(a, {2}) + ones(b, {2})).to_vector(), (Floats{2, 2}));
  Reference c, d;
  EXPECT_EQ((ones(c, {2}) + ones(d, {2})).to_vector(), (Floats{2, 2}));
  Autodiff<Cpu> e, f;
  const auto w = parameter(ones(e, {2}), "w");
  EXPECT_EQ(sum(w * full(f, {2}, 5)).backward().of(w).to_vector(), (Floats{5, 5}));
  EXPECT_EQ(lift(e, ones(a, {2})).to_vector(), (Floats{1, 1}));
}

/// A backend with state of its own: no handle, although Cpu is one.
struct Counting : Cpu {
  int products = 0;
  friend void run(Counting& b, const op::Matmul& op, Ins in, Outs out, Accumulate mask = Accumulate::none) {
    ++b.products;
    run(static_cast<Cpu&>(b), op, in, out, mask);
  }
};
static_assert(HandleBackend<Cpu> && HandleBackend<Lazy<Cpu>> && HandleBackend<Autodiff<Counting>>);
static_assert(!HandleBackend<Counting>);

TEST(Handle, ABackendWithStateOfItsOwnIsNotCopied) {
  Counting a, b;
  const auto x = ones(a, {2, 2});
  matmul(x, x);
  EXPECT_EQ(a.products, 1);
  EXPECT_THROW(x + ones(b, {2, 2}), DeviceError);
  Autodiff<Counting> ad;
  const Autodiff<Counting> copy = ad;
  const auto w = parameter(ones(ad, {2, 2}), "w");
  sum(matmul(w, w)).backward();
  EXPECT_EQ(copy.inner().products, 3);
}

}  // namespace
}  // namespace ferrite
