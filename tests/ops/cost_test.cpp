// What ops say they move: an index reads what it picks, not all that it could pick from.
#include <gtest/gtest.h>

#include "ferrite/stacks.hpp"

namespace ferrite {
namespace {

template <class Op>
double bytes_of(const Op& op, const Metas& in) {
  return op_cost(op, in, op.infer(in)).bytes;
}

TEST(Cost, IndexingCountsWhatItReads) {
  const Meta table{{1'000'000, 8}, DType::f32}, ids{{5}, DType::i64};
  const double picked = 5 * 8 * 4, index = 5 * 8;
  EXPECT_EQ(bytes_of(op::IndexSelect{0}, {table, ids}), 2 * picked + index);
  EXPECT_EQ(bytes_of(op::Embedding{}, {table, ids}), 2 * picked + index);
  EXPECT_EQ(bytes_of(op::Gather{0}, {table, {{5, 8}, DType::i64}}), 2 * picked + 5 * 8 * 8);
}

TEST(Cost, ScatterCopiesItsBaseAndReadsWhatTheIndexCovers) {
  const Meta base{{100, 8}, DType::f32}, index{{5, 8}, DType::i64}, source{{50, 8}, DType::f32};
  const double expected = 2 * 100 * 8 * 4 + 5 * 8 * 8 + 5 * 8 * 4;
  EXPECT_EQ(bytes_of(op::Scatter{0}, {base, index, source}), expected);
  EXPECT_EQ(bytes_of(op::ScatterAdd{0}, {base, index, source}), expected);
}

}  // namespace
}  // namespace ferrite
