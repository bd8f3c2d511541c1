// Views and loop nests against a brute-force model: the list of buffer positions in row-major order.
#include "ferrite/core/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ferrite/core/error.hpp"

namespace ferrite {
namespace {

/// Calls f with every index of the shape, in row-major order.
template <class F>
void for_each_index(const Shape& shape, F&& f) {
  const std::int64_t n = shape.numel();
  for (std::int64_t flat = 0; flat < n; ++flat) {
    Shape index = Shape::filled(shape.rank(), 0);
    std::int64_t rest = flat;
    for (int i = shape.rank() - 1; i >= 0; --i) {
      index[i] = rest % shape[i];
      rest /= shape[i];
    }
    f(index);
  }
}

std::vector<std::int64_t> positions(const Layout& layout) {
  std::vector<std::int64_t> result;
  for_each_index(layout.shape, [&](const Shape& index) {
    std::int64_t at = layout.offset;
    for (int i = 0; i < index.rank(); ++i) at += index[i] * layout.strides[i];
    result.push_back(at);
  });
  return result;
}

/// A dense array of positions; its views copy.
struct Model {
  Shape shape;
  std::vector<std::int64_t> values;

  std::int64_t at(const Shape& index) const {
    std::int64_t flat = 0;
    for (int i = 0; i < index.rank(); ++i) flat = flat * shape[i] + index[i];
    return values[static_cast<std::size_t>(flat)];
  }
  /// The array of `target` whose element at an index is this one's at source(index).
  template <class F>
  Model gather(const Shape& target, F&& source) const {
    Model result{target, {}};
    for_each_index(target, [&](const Shape& index) { result.values.push_back(at(source(index))); });
    return result;
  }
  /// True if some strides describe these values under `target`: the values are affine in the index.
  bool has_view_as(const Shape& target) const {
    if (values.empty()) return true;
    const Model reshaped{target, values};
    bool affine = true;
    for_each_index(target, [&](const Shape& index) {
      std::int64_t expected = values[0];
      for (int i = 0; i < index.rank(); ++i) {
        Shape unit = Shape::filled(index.rank(), 0);
        unit[i] = index[i] > 0 ? 1 : 0;
        expected += index[i] * (reshaped.at(unit) - values[0]);
      }
      affine = affine && expected == reshaped.at(index);
    });
    return affine;
  }
};

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  /// Mostly small extents, often 1, seldom 0.
  Shape shape(int rank) {
    Shape result;
    for (int i = 0; i < rank; ++i) result.push_back((*this)(0, 19) == 0 ? 0 : (*this)(1, 4));
    return result;
  }
  Shape permutation(int rank) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), engine_);
    return Shape(order);
  }
  /// A random factorisation of n.
  Shape factors(std::int64_t n) {
    Shape result;
    while (result.rank() < max_rank - 1 && (n > 1 || (*this)(0, 2) > 0)) {
      std::vector<std::int64_t> divisors;
      for (std::int64_t d = 1; d <= n; ++d) {
        if (n % d == 0) divisors.push_back(d);
      }
      const auto pick =
          divisors[static_cast<std::size_t>((*this)(0, static_cast<std::int64_t>(divisors.size()) - 1))];
      result.push_back(pick);
      n /= pick;
    }
    if (n > 1) result.push_back(n);
    return result;
  }

 private:
  std::mt19937 engine_;
};

struct Case {
  Layout layout;
  Model model;
  bool exact_overlap = true;  // only views whose overlap may_overlap decides exactly were applied
};

/// Applies one random view to both sides.
void step(Case& c, Random& random) {
  const Layout layout = c.layout;
  const Model model = c.model;
  const int rank = layout.shape.rank();
  const int axis = rank > 0 ? static_cast<int>(random(0, rank - 1)) : 0;
  const std::int64_t extent = rank > 0 ? layout.shape[axis] : 0;
  switch (random(0, 5)) {
    case 0: {
      const Shape order = random.permutation(rank);
      c.layout = layout.permute(order);
      c.model = model.gather(c.layout.shape, [&](const Shape& index) {
        Shape source = index;
        for (int i = 0; i < rank; ++i) source[static_cast<int>(order[i])] = index[i];
        return source;
      });
      break;
    }
    case 1: {
      if (rank == 0 || extent == 0) return;
      const std::int64_t first = random(0, extent - 1), last = random(0, extent - 1);
      const std::int64_t stride = first <= last ? random(1, 3) : -random(1, 3);
      const std::int64_t count = (last - first) / stride + 1;
      c.layout = layout.slice(axis - (random(0, 1) ? rank : 0), first, count, stride);
      Shape target = layout.shape;
      target[axis] = count;
      c.model = model.gather(target, [&](Shape index) {
        index[axis] = first + index[axis] * stride;
        return index;
      });
      break;
    }
    case 2: {
      if (rank >= max_rank - 1) return;
      Shape target = layout.shape;
      for (int i = 0; i < rank; ++i) {
        if (target[i] == 1) target[i] = random(0, 3) ? random(1, 3) : 1;
      }
      if (random(0, 1)) target.insert(0, random(1, 2));
      if (target.numel() > 4096) return;
      c.layout = layout.expand(target);
      c.model = model.gather(target, [&](const Shape& index) {
        Shape source = Shape::filled(rank, 0);
        for (int i = 0; i < rank; ++i) source[i] = layout.shape[i] == 1 ? 0 : index[i + target.rank() - rank];
        return source;
      });
      break;
    }
    case 3: {
      if (rank == 0) return;
      c.layout = layout.flip(axis);
      c.model = model.gather(layout.shape, [&](Shape index) {
        index[axis] = extent - 1 - index[axis];
        return index;
      });
      break;
    }
    case 4: {
      if (rank == 0 || rank >= max_rank - 1 || extent == 0 || layout.shape.numel() > 1024) return;
      const std::int64_t size = random(1, extent), by = random(1, 3);
      c.layout = layout.windows(axis, size, by);
      Shape target = layout.shape;
      target[axis] = (extent - size) / by + 1;
      target.push_back(size);
      c.model = model.gather(target, [&](Shape index) {
        index[axis] = index[axis] * by + index.back();
        index.erase(rank);
        return index;
      });
      c.exact_overlap = false;
      break;
    }
    default: {
      const Shape target = layout.shape.numel() > 0 ? random.factors(layout.shape.numel()) : layout.shape;
      const auto view = layout.reshape(target);
      ASSERT_EQ(view.has_value(), model.has_view_as(target))
          << to_string(layout.shape) << " strides " << to_string(layout.strides) << " to "
          << to_string(target);
      if (!view) return;
      c.layout = *view;
      c.model.shape = target;
    }
  }
}

Case random_case(Random& random, int steps) {
  const Shape shape = random.shape(static_cast<int>(random(0, 5)));
  const Layout start = Layout::contiguous(shape);
  Case c{start, {shape, positions(start)}};
  for (int i = 0; i < steps && !::testing::Test::HasFatalFailure(); ++i) step(c, random);
  return c;
}

TEST(Layout, RandomViewsSelectTheElementsOfTheModel) {
  for (unsigned seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Case c = random_case(random, 6);
    if (HasFatalFailure()) return;
    ASSERT_EQ(c.layout.shape, c.model.shape);
    ASSERT_EQ(positions(c.layout), c.model.values);

    std::vector<std::int64_t> consecutive(c.model.values.size());
    std::iota(consecutive.begin(), consecutive.end(), c.layout.offset);
    ASSERT_EQ(c.layout.is_contiguous(), c.model.values == consecutive);

    const std::set<std::int64_t> distinct(c.model.values.begin(), c.model.values.end());
    const bool overlaps = distinct.size() < c.model.values.size();
    if (overlaps || c.exact_overlap) {
      ASSERT_EQ(c.layout.may_overlap(), overlaps);
    }
  }
}

TEST(Layout, ReshapeHandlesUnitAndEmptyAxes) {
  const Layout transposed = Layout::contiguous({4, 6}).permute({1, 0});
  EXPECT_FALSE(transposed.reshape({24}));
  EXPECT_TRUE(transposed.reshape({1, 2, 3, 1, 4, 1}));
  EXPECT_TRUE(Layout::contiguous({3}).expand({5, 3}).reshape({5, 1, 3}));
  EXPECT_FALSE(Layout::contiguous({3}).expand({5, 3}).reshape({15}));
  EXPECT_TRUE(Layout::contiguous({1}).expand({6}).reshape({2, 3}));
  EXPECT_TRUE(transposed.slice(0, 0, 0, 1).reshape({0, 7}));
  EXPECT_TRUE(Layout::contiguous({}).reshape({1, 1}));
}

TEST(Layout, ErrorsNameTheViewAndTheShape) {
  const Layout layout = Layout::contiguous({2, 3});
  const auto message = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { layout.reshape({4}); }),
            "[reshape] shape [2, 3] to [4]: 6 elements cannot become 4");
  EXPECT_EQ(message([&] { layout.permute({0}); }),
            "[permute] order [0] for shape [2, 3]: every axis must be named once");
  EXPECT_EQ(message([&] {
              layout.expand({2, 4});
            }),
            "[expand] shape [2, 3] to [2, 4]: every axis, counted from the last, must match or be 1");
  EXPECT_EQ(
      message([&] { layout.slice(1, 1, 3, 1); }),
      "[slice] start 1, count 3, step 1 on axis 1 of shape [2, 3]: indices must lie in [0, 3) and the step "
      "must not be 0");
  EXPECT_EQ(message([&] { layout.windows(1, 4, 1); }),
            "[windows] size 4 and step 1 on axis 1 of shape [2, 3]: the size must be in [1, 3] and the step "
            "positive");
  EXPECT_THROW(layout.permute({0, 0}), ShapeError);
  EXPECT_THROW(layout.expand({3}), ShapeError);
  EXPECT_THROW(layout.flip(2), ShapeError);
  EXPECT_THROW(layout.slice(1, 0, 2, 0), ValueError);
  EXPECT_THROW(layout.slice(1, -1, 1, 1), ValueError);
  EXPECT_THROW(layout.slice(1, 1, 2, -2), ValueError);
  EXPECT_THROW(layout.windows(0, 1, 0), ValueError);
}

TEST(Layout, HugeStepsDoNotOverflow) {
  const Layout layout = Layout::contiguous({5, 7});
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(layout.slice(0, 1, 3, huge), ValueError);
  EXPECT_THROW(layout.slice(0, 1, 3, std::numeric_limits<std::int64_t>::min()), ValueError);
  EXPECT_THROW(layout.slice(0, 1, huge, 2), ValueError);
  EXPECT_EQ(positions(layout.slice(0, 4, 1, huge)), positions(layout.slice(0, 4, 1, 1)));
  EXPECT_EQ(layout.windows(0, 2, huge).shape, (Shape{1, 7, 2}));
}

/// The operands' relative positions in the order in which the nest visits them.
std::vector<std::vector<std::int64_t>> visits(const LoopNest& nest) {
  std::vector<std::vector<std::int64_t>> result;
  Shape extents;
  for (int i = 0; i < nest.rank; ++i) extents.push_back(nest.extent[i]);
  for_each_index(extents, [&](const Shape& index) {
    std::vector<std::int64_t> at(static_cast<std::size_t>(nest.operands), 0);
    for (int k = 0; k < nest.operands; ++k) {
      for (int i = 0; i < nest.rank; ++i) at[static_cast<std::size_t>(k)] += index[i] * nest.stride[k][i];
    }
    result.push_back(at);
  });
  return result;
}

TEST(LoopNest, VisitsTheSameElementsInTheFewestAxes) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    // Operands of one shape: random strides on top of a random view keep the axes unrelated.
    std::vector<Layout> layouts{random_case(random, 4).layout};
    if (HasFatalFailure()) return;
    const Shape shape = layouts[0].shape;
    while (layouts.size() < static_cast<std::size_t>(random(1, LoopNest::max_operands))) {
      Layout other = Layout::contiguous(shape);
      if (random(0, 1)) {
        for (int i = 0; i < shape.rank(); ++i) other.strides[i] = random(-1, 1) * layouts[0].strides[i];
      }
      layouts.push_back(other);
    }
    std::vector<const Layout*> operands;
    for (const Layout& layout : layouts) operands.push_back(&layout);
    const LoopNest nest(operands);

    std::vector<std::vector<std::int64_t>> expected(static_cast<std::size_t>(shape.numel()));
    for (const Layout& layout : layouts) {
      const auto at = positions(layout);
      for (std::size_t i = 0; i < at.size(); ++i) expected[i].push_back(at[i] - layout.offset);
    }
    auto visited = visits(nest);
    std::sort(visited.begin(), visited.end());
    std::sort(expected.begin(), expected.end());
    ASSERT_EQ(visited, expected);
    ASSERT_EQ(nest.numel(), shape.numel());
    ASSERT_EQ(nest.outer() * nest.extent[nest.rank - 1], shape.numel());

    for (int i = 0; i + 1 < nest.rank; ++i) {
      ASSERT_GT(nest.extent[i], 1);
      ASSERT_GE(std::abs(nest.stride[0][i]), std::abs(nest.stride[0][i + 1]));
      bool mergeable = true;
      for (int k = 0; k < nest.operands; ++k) {
        mergeable = mergeable && nest.stride[k][i] == nest.stride[k][i + 1] * nest.extent[i + 1];
      }
      ASSERT_FALSE(mergeable);
    }
  }
}

TEST(LoopNest, CollapsesWhatItCan) {
  const Layout dense = Layout::contiguous({2, 3, 4});
  const Layout transposed = dense.permute({2, 0, 1});
  const Layout* same[] = {&transposed, &transposed};
  EXPECT_EQ(LoopNest(same).rank, 1);
  const Layout scalar = Layout::contiguous({});
  const Layout* one[] = {&scalar};
  EXPECT_EQ(LoopNest(one).numel(), 1);
  const Layout row = Layout::contiguous({4}).expand({2, 3, 4});
  const Layout* broadcast[] = {&dense, &row};
  const LoopNest nest(broadcast);
  EXPECT_EQ(nest.rank, 2);
  EXPECT_EQ(nest.outer(), 6);
  EXPECT_EQ(nest.stride[1][0], 0);
}

TEST(LoopNest, EmptyShapesGiveNoIterations) {
  const Layout empty = Layout::contiguous({3, 0, 5}).permute({1, 2, 0});
  const Layout* operands[] = {&empty};
  const LoopNest nest(operands);
  EXPECT_EQ(nest.numel(), 0);
  EXPECT_TRUE(visits(nest).empty());
}

TEST(LoopNest, RefusesUnequalShapesAndTooManyOperands) {
  const Layout a = Layout::contiguous({2}), b = Layout::contiguous({3});
  const Layout* unequal[] = {&a, &b};
  EXPECT_THROW(LoopNest{unequal}, ShapeError);
  const Layout* seven[] = {&a, &a, &a, &a, &a, &a, &a};
  EXPECT_THROW(LoopNest{seven}, ValueError);
}

}  // namespace
}  // namespace ferrite
