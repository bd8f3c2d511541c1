// Shapes, broadcasting, axes, and the messages of their errors.
#include "ferrite/core/shape.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "ferrite/core/array.hpp"
#include "ferrite/core/error.hpp"
#include "messages.hpp"

namespace ferrite {
namespace {

using testing::message_of;

TEST(Shape, HoldsUpToEightExtents) {
  EXPECT_EQ(Shape{}.rank(), 0);
  EXPECT_EQ(Shape{}.numel(), 1);
  EXPECT_EQ((Shape{2, 3, 4}.numel()), 24);
  EXPECT_EQ((Shape{2, 0, 4}.numel()), 0);
  EXPECT_EQ(Shape::filled(3, 7), (Shape{7, 7, 7}));
  EXPECT_NE((Shape{2, 3}), (Shape{2, 3, 1}));
  const std::vector<std::int64_t> nine(9, 1);
  EXPECT_EQ(message_of<ShapeError>([&] { Shape{std::span(nine)}; }),
            "[shape] rank 9: at most 8 axes are supported");
  Shape full = Shape::filled(8, 1);
  EXPECT_THROW(full.push_back(1), ShapeError);
  EXPECT_THROW(full.insert(0, 1), ShapeError);
  EXPECT_THROW(Shape::filled(9, 1), ShapeError);
}

TEST(Shape, InsertsAndErasesAnywhere) {
  Shape shape{1, 2};
  shape.insert(0, 9);
  shape.insert(2, 8);
  shape.push_back(7);
  EXPECT_EQ(shape, (Shape{9, 1, 8, 2, 7}));
  EXPECT_EQ(shape.back(), 7);
  shape.erase(4);
  shape.erase(0);
  shape.erase(1);
  EXPECT_EQ(shape, (Shape{1, 2}));
  EXPECT_THROW(shape.erase(2), ShapeError);
  EXPECT_THROW(shape.insert(3, 1), ShapeError);
}

TEST(Shape, PrintsLikeAList) {
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Meta{{2, 3}, DType::f32}), "f32[2, 3]");
  EXPECT_EQ(to_string(Device{}), "cpu");
  EXPECT_EQ(to_string(Device{DeviceKind::cuda, 1}), "cuda:1");
}

TEST(Shape, ExtentsAreCheckedForSignAndOverflow) {
  EXPECT_NO_THROW(check_extents("zeros", {1 << 20, 1 << 20, 0}));
  EXPECT_NO_THROW(check_extents("zeros", {}));
  EXPECT_NO_THROW(check_extents("zeros", {std::numeric_limits<std::int64_t>::max() / 8}));
  EXPECT_EQ(message_of<ShapeError>([] {
              check_extents("zeros", {2, -1});
            }),
            "[zeros] shape [2, -1]: extents must not be negative");
  const std::int64_t big = std::int64_t{1} << 31;
  EXPECT_EQ(message_of<ShapeError>([&] {
              check_extents("zeros", {big, big});
            }),
            "[zeros] shape [2147483648, 2147483648]: size must stay below 2^63 bytes");
  EXPECT_THROW(check_extents("zeros", {big, big, big, 0}), ShapeError);  // its strides would overflow
}

TEST(Broadcast, AlignsFromTheLastAxis) {
  EXPECT_EQ(broadcast("add", {3, 1}, {4}), (Shape{3, 4}));
  EXPECT_EQ(broadcast("add", {4}, {3, 1}), (Shape{3, 4}));
  EXPECT_EQ(broadcast("add", {}, {2, 5}), (Shape{2, 5}));
  EXPECT_EQ(broadcast("add", {1}, {0}), (Shape{0}));
  EXPECT_EQ(broadcast("add", {0, 1}, {1, 3}), (Shape{0, 3}));
  EXPECT_EQ(broadcast("add", {2, 1, 3}, {2, 1, 3}), (Shape{2, 1, 3}));
}

TEST(Broadcast, ErrorNamesOpShapesAndAxis) {
  EXPECT_EQ(message_of<ShapeError>([] {
              broadcast("add", {2, 3}, {4, 2, 5});
            }),
            "[add] shapes [2, 3] and [4, 2, 5]: extents 3 and 5 of axis -1 differ and neither is 1");
  EXPECT_EQ(message_of<ShapeError>([] {
              broadcast("mul", {4, 2, 5}, {3, 5});
            }),
            "[mul] shapes [4, 2, 5] and [3, 5]: extents 2 and 3 of axis -2 differ and neither is 1");
  EXPECT_THROW(broadcast("add", {0}, {2}), ShapeError);
}

TEST(Axes, NegativeOnesCountFromTheEnd) {
  EXPECT_EQ(normalize_axis("sum", -1, 3), 2);
  EXPECT_EQ(normalize_axis("sum", -3, 3), 0);
  EXPECT_EQ(normalize_axis("sum", 2, 3), 2);
  EXPECT_EQ(message_of<ShapeError>([] { normalize_axis("sum", 3, 3); }),
            "[sum] axis 3 of rank 3: must be in [-3, 2]");
  EXPECT_EQ(message_of<ShapeError>([] { normalize_axis("sum", 0, 0); }),
            "[sum] axis 0 of rank 0: a scalar has no axes");
}

TEST(Axes, ListsAreSortedAndFreeOfDuplicates) {
  EXPECT_EQ(normalize_axes("sum", {-1, 0}, 3), (Shape{0, 2}));
  EXPECT_EQ(normalize_axes("sum", {}, 3), (Shape{0, 1, 2}));
  EXPECT_EQ(normalize_axes("sum", {}, 0), Shape{});
  EXPECT_EQ(message_of<ShapeError>([] {
              normalize_axes("sum", {1, -2}, 3);
            }),
            "[sum] axes [1, -2] of rank 3: axis 1 is named twice");
  EXPECT_THROW(normalize_axes("sum", {std::int64_t{1} << 32}, 3), ShapeError);
}

}  // namespace
}  // namespace ferrite
