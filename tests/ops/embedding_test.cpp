#include "ferrite/ops/embedding.hpp"

#include "ferrite/backend/evaluate.hpp"
#include "ops/fused_support.hpp"

namespace ferrite::testing {
namespace {

struct EmbeddingCase {
  Shape ids;
  std::int64_t rows, channels;
};
const EmbeddingCase embedding_cases[] = {{{7}, 5, 3}, {{2, 9}, 4, 33}, {{3, 1, 2}, 100, 300},
                                         {{}, 3, 8},  {{4000}, 3, 17}, {{900}, 700, 64},
                                         {{0}, 4, 5}};

double counted(double id, double size) { return id < 0 ? id + size : id; }

TEST(CpuEmbedding, CopiesRowsOfEveryDtypeAndLayout) {
  for (const DType dtype : arithmetic_dtypes) {
    for (const EmbeddingCase& c : embedding_cases) {
      SCOPED_TRACE(to_string(Meta{c.ids, dtype}));
      const Array weight = uniform({c.rows, c.channels}, dtype, 1, 0, 4);
      const auto rows = static_cast<double>(c.rows);
      const Array ids = uniform(c.ids, DType::i64, 2, -rows, rows);
      check(op::Embedding{}, {weight, ids}, [&](const Lists& in) {
        Values y;
        for (const double id : in[1])
          for (std::int64_t j = 0; j < c.channels; ++j)
            y.push_back(in[0][static_cast<std::size_t>(counted(id, rows)) * at(c.channels) + at(j)]);
        return Lists{y};
      });
    }
  }
}

TEST(CpuEmbedding, RowsWithoutColumnsTakeNoMemory) {
  constexpr std::int64_t rows = std::int64_t{1} << 40;
  const Array dy = uniform({2, 0}, DType::f32, 3), ids = uniform({2}, DType::i64, 4, 0, 2);
  const Array* in[] = {&dy, &ids};
  Cpu cpu;
  EXPECT_EQ(evaluate(cpu, op::EmbeddingBackward{rows}, Ins(in, 2))[0].shape(), (Shape{rows, 0}));
}

TEST(CpuEmbedding, BackwardAddsUpInEveryDtypeAndLayout) {
  for (const DType dtype : float_dtypes) {
    for (const EmbeddingCase& c : embedding_cases) {
      SCOPED_TRACE(to_string(Meta{c.ids, dtype}));
      Shape shape = c.ids;
      shape.push_back(c.channels);
      const auto rows = static_cast<double>(c.rows);
      const Array dy = uniform(shape, dtype, 3), ids = uniform(c.ids, DType::i32, 4, -rows, rows);
      check(op::EmbeddingBackward{c.rows}, {dy, ids},
            [&](const Lists& in) {
              Values dweight(at(c.rows * c.channels));
              for (std::size_t i = 0; i < in[1].size(); ++i)
                for (std::size_t j = 0; j < at(c.channels); ++j)
                  dweight[static_cast<std::size_t>(counted(in[1][i], rows)) * at(c.channels) + j] +=
                      in[0][i * at(c.channels) + j];
              return Lists{dweight};
            },
            {2 * std::sqrt(static_cast<double>(c.ids.numel() / c.rows + 4)), 8});
    }
  }
}

TEST(CpuEmbedding, ContributionsAreAddedInOrderOfPosition) {
  // In f32, 1e8 + 1 is 1e8: only the order given leaves 1.
  const Array dy = array_of({3, 1}, DType::f32, {1e8, -1e8, 1}), ids = array_of({3}, DType::i64, {0, 0, 0});
  EXPECT_EQ(values_of(run_list(op::EmbeddingBackward{1}, {dy, ids})[0]), Values{1});
}

TEST(CpuEmbedding, IdsOutOfRangeAreNamed) {
  const Array weight = uniform({10, 4}, DType::f32, 1),
              ids = array_of({2, 3}, DType::i64, {1, -10, 9, 12, -11, 0});
  EXPECT_EQ(message_of<ValueError>([&] {
              run_list(op::Embedding{}, {weight, ids});
            }),
            "[embedding] id 12 at position 3 is out of range for a table of 10 rows");
  const Array dy = uniform({2, 3, 4}, DType::f32, 1),
              low = array_of({2, 3}, DType::i32, {1, -10, 9, 2, -11, 0});
  EXPECT_EQ(message_of<ValueError>([&] {
              run_list(op::EmbeddingBackward{10}, {dy, low});
            }),
            "[embedding_backward] id -11 at position 4 is out of range for a table of 10 rows");
}

TEST(CpuIndexSelect, PicksAlongAnyAxisOfEveryDtypeAndLayout) {
  const Shape shape{5, 6, 3, 9};
  for (const DType dtype : arithmetic_dtypes) {
    const Array x = uniform(shape, dtype, 1, 0, 5);
    for (int axis = -4; axis < 4; ++axis) {
      const int a = axis < 0 ? axis + 4 : axis;
      const auto extent = static_cast<double>(shape[a]);
      const Array index = uniform({8}, DType::i64, 2, -extent, extent);
      check(op::IndexSelect{axis}, {x, index}, [&](const Lists& in) {
        std::int64_t inner = 1, outer = 1;
        for (int i = a + 1; i < 4; ++i) inner *= shape[i];
        for (int i = 0; i < a; ++i) outer *= shape[i];
        Values y;
        for (std::int64_t o = 0; o < outer; ++o)
          for (const double id : in[1])
            for (std::int64_t i = 0; i < inner; ++i)
              y.push_back(
                  in[0][at((o * shape[a] + static_cast<std::int64_t>(counted(id, extent))) * inner + i)]);
        return Lists{y};
      });
    }
  }
}

TEST(CpuIndexSelect, AnIndexOutOfRangeIsNamed) {
  const Array x = uniform({4, 10}, DType::f32, 1), index = array_of({2}, DType::i64, {3, 4});
  EXPECT_EQ(message_of<ValueError>([&] {
              run_list(op::IndexSelect{0}, {x, index});
            }),
            "[index_select] index 4 at position 1 is out of range for axis 0 of length 4");
}

}  // namespace
}  // namespace ferrite::testing
