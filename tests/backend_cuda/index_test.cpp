// gather, scatter, scatter_add, index_select, embedding and its gradient: large, with many equal indices, in
// several layouts; indices out of range are reported and the GPU stays usable.
#include "backend_cuda/axes_support.hpp"

namespace ferrite::testing {
namespace {

struct CudaIndex : CudaAxes {
  /// Indices in [-extent, extent).
  Tensor<Cpu> indices(const Shape& shape, std::int64_t extent, DType dtype = DType::i64) {
    return cast(randint(cpu, shape, rng, dtype == DType::i64 || dtype == DType::i32 ? -extent : 0, extent),
                dtype);
  }
};

constexpr DType index_dtypes[] = {DType::i64, DType::i32, DType::u8, DType::u16, DType::u32};

TEST_F(CudaIndex, GatherAndIndexSelect) {
  for (const DType dtype : all_dtypes) {
    const auto x = numbers({90, 40, 64}, dtype, 0, 100);
    for (int axis = 0; axis < 3; ++axis) {
      const std::int64_t extent = x.size(axis);
      Shape shape{50, 30, 48};
      shape[axis] = 200;
      for (const DType index_dtype : index_dtypes) {
        SCOPED_TRACE(to_string(x.meta()) + " axis " + std::to_string(axis));
        expect_same({x, indices(shape, extent, index_dtype)},
                    [&](const auto& in) { return gather(in[0], axis, in[1]); });
        for (int view = 0; view < view_count; ++view)
          expect_same({x, indices({77}, 30, index_dtype)},
                      [&](const auto& in) { return index_select(view_of(in[0], view), axis, in[1]); });
      }
    }
  }
}

TEST_F(CudaIndex, EmbeddingOfRowsOfAnyWidth) {
  for (const DType dtype : floats)
    for (const std::int64_t width : {1, 3, 64, 768, 770}) {
      const auto table = numbers({1000, width}, dtype, 0, 100);
      expect_same({table, indices({7, 300}, 1000)}, [](const auto& in) { return embedding(in[0], in[1]); });
      expect_same({table, indices({7, 300}, 999, DType::i32)},
                  [](const auto& in) { return embedding(slice(in[0], 0, 1), transpose(in[1], 0, 1)); });
    }
}

TEST_F(CudaIndex, TheLastScatterWins) {
  for (const DType dtype : all_dtypes)
    for (int axis = 0; axis < 2; ++axis) {
      const auto x = numbers({30, 40}, dtype, 0, 100);
      Shape shape{25, 35};
      shape[axis] = 3000;
      const auto source = numbers(shape, dtype, 0, 100);
      expect_same({x, indices(shape, x.size(axis)), source},
                  [&](const auto& in) { return scatter(in[0], axis, in[1], in[2]); });
      // One index for whole lines, and operands that lie otherwise.
      Shape once = shape;
      once[1 - axis] = 1;
      expect_same({transpose(x, 0, 1), indices(once, x.size(axis), DType::i32), source}, [&](const auto& in) {
        return scatter(transpose(in[0], 0, 1), axis, expand(in[1], shape), flip(in[2]));
      });
    }
}

TEST_F(CudaIndex, ScatterAddByLinesAndBySorting) {
  for (const DType dtype : number_dtypes)
    for (const std::int64_t count : {1, 5, 33, 4000})
      for (int axis = 0; axis < 2; ++axis) {
        SCOPED_TRACE(std::string(to_string(dtype)) + " " + std::to_string(count) + " axis " +
                     std::to_string(axis));
        const auto x = numbers({30, 40}, dtype);
        Shape shape{30, 40};
        shape[axis] = count;
        const auto source = numbers(shape, dtype);
        expect_same({x, indices(shape, x.size(axis)), source},
                    [&](const auto& in) { return scatter_add(in[0], axis, in[1], in[2]); });
        Shape once = shape;
        once[1 - axis] = 1;
        expect_same({x, indices(once, x.size(axis), DType::i32), source}, [&](const auto& in) {
          return scatter_add(flip(in[0]), axis, expand(in[1], shape), flip(in[2]));
        });
      }
}

TEST_F(CudaIndex, GradientOfEmbedding) {
  for (const DType dtype : floats)
    for (const std::int64_t width : {1, 5, 768})
      for (const std::int64_t vocabulary : {1, 3, 5000}) {  // 1: every row goes to one place
        const auto ids = indices({4, 500}, vocabulary), dy = numbers({4, 500, width}, dtype, 0, 2);
        SCOPED_TRACE(to_string(dy.meta()) + " of " + std::to_string(vocabulary));
        const op::EmbeddingBackward op{vocabulary};
        expect_same({dy, ids}, [&](const auto& in) { return eval(op, in[0], in[1]); });
        expect_same({transpose(dy, 0, 1), ids},
                    [&](const auto& in) { return eval(op, transpose(in[0], 0, 1), in[1]); });
        const auto old = numbers({width, vocabulary}, dtype);
        const auto out = to(*gpu, old);
        add_into(op, {to(*gpu, dy), to(*gpu, ids)}, transpose(out, 0, 1));
        const auto want =
            cast(old, DType::f64) + cast(transpose(eval(op, cast(dy, DType::f64), ids), 0, 1), DType::f64);
        EXPECT_TRUE(to_bytes(out) == to_bytes(cast(want, dtype)));
      }
}

TEST_F(CudaIndex, GradientOfEmbeddingHasTheSameBitsOnEveryRun) {
  const auto ids = to(*gpu, randint(cpu, {20'000}, rng, 0, 300));
  const auto dy = to(*gpu, randn(cpu, {20'000, 96}, rng));
  const auto first = to_bytes(eval(op::EmbeddingBackward{300}, dy, ids));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(to_bytes(eval(op::EmbeddingBackward{300}, dy, ids)) == first);
  expect_near(to(cpu, dy), 1e-5,
              [&](const auto& t) { return eval(op::EmbeddingBackward{300}, t, to(t.backend(), ids)); });
}

TEST_F(CudaIndex, AnIndexOutOfRangeIsReportedOnce) {
  const auto x = to(*gpu, numbers({10, 6}, DType::f32));
  const auto bad = [&](std::int64_t value) {
    std::vector<std::int64_t> values(6000, 1);
    values[4321] = value;
    return from_vector(*gpu, values, {1000, 6});
  };
  const auto expect_fault = [&](const char* name, auto f) {
    f();
    try {
      gpu->synchronize();
      ADD_FAILURE() << name << ": nothing reported";
    } catch (const ValueError& error) {
      EXPECT_NE(std::string(error.what()).find(std::string("[") + name + "]"), std::string::npos)
          << error.what();
    }
    gpu->synchronize();  // reported once
    EXPECT_EQ(sum(full(*gpu, {100}, 2, DType::f32)).item(), 200);
  };
  for (const std::int64_t value : {10, -11, 1 << 30}) {
    const auto index = bad(value);
    const auto source = full(*gpu, {1000, 6}, 1, DType::f32);
    expect_fault("gather", [&] { gather(x, 0, index); });
    expect_fault("scatter", [&] { scatter(x, 0, index, source); });
    expect_fault("scatter_add", [&] { scatter_add(x, 0, index, source); });
    expect_fault("scatter_add", [&] { scatter_add(x, 0, slice(index, 0, 710, 730), source); });
    expect_fault("index_select", [&] { index_select(x, 0, reshape(index, {6000})); });
    expect_fault("embedding", [&] { embedding(x, index); });
    expect_fault("embedding_backward", [&] {
      eval(op::EmbeddingBackward{10}, full(*gpu, {1000, 6, 8}, 1, DType::f32), index);
    });
  }
  const auto none = empty(*gpu, {0, 6});
  EXPECT_THROW(gather(none, 0, bad(0)), ValueError);
  EXPECT_EQ(gather(none, 0, empty(*gpu, {0, 6}, DType::i64)).numel(), 0);
}

}  // namespace
}  // namespace ferrite::testing
