// What DataParallel is made of: buckets, sums in the background, means, and the comparison of models.
#include "ferrite/dist/reducer.hpp"

#include <cmath>

#include "dist/collective_checks.hpp"
#include "dist/on_ranks.hpp"
#include "ferrite/dist/data_parallel.hpp"

namespace ferrite::testing {
namespace {

using dist::DistError;
using dist::Reducer;

TEST(Buckets, FollowTheParametersInReverse) {
  const std::vector<Meta> metas{
      {{100}, DType::f32}, {{3}, DType::f64}, {{}, DType::f32}, {{0}, DType::f32}, {{17}, DType::f32}};
  const dist::BucketPlan plan = dist::plan_buckets(metas, 130);
  ASSERT_EQ(plan.arenas.size(), 2u);
  EXPECT_EQ(plan.arenas[0], (Meta{{32 + 16 + 16 + 112}, DType::f32}));
  EXPECT_EQ(plan.arenas[1], (Meta{{8}, DType::f64}));
  ASSERT_EQ(plan.buckets.size(), 3u);
  EXPECT_EQ(plan.buckets[0].parameters, (std::vector<std::size_t>{4, 3}));
  EXPECT_EQ(plan.buckets[1].parameters, (std::vector<std::size_t>{2, 0}));
  EXPECT_EQ(plan.buckets[1].begin, 48);
  EXPECT_EQ(plan.buckets[1].count, 128);
  EXPECT_EQ(plan.buckets[2].parameters, (std::vector<std::size_t>{1}));
  EXPECT_EQ(plan.places[0].begin, 64);
  EXPECT_EQ(plan.places[0].bucket, 1u);
  EXPECT_EQ(dist::plan_buckets(metas, 1).buckets.size(), metas.size());
  EXPECT_EQ(dist::plan_buckets(metas, 1 << 20).buckets.size(), 2u) << "one per dtype";
  EXPECT_THROW(dist::plan_buckets(metas, 0), ValueError);
  EXPECT_THROW(dist::plan_buckets(metas, 130, 0), ValueError);
}

TEST(Buckets, PartsShareEveryParameterAmongThem) {
  const std::vector<Meta> metas{
      {{100}, DType::f32}, {{3}, DType::f64}, {{}, DType::f32}, {{0}, DType::f32}, {{50, 17}, DType::f32}};
  for (const std::int64_t bytes : {1, 130, 1 << 20})
    for (const int parts : {1, 2, 3, 8}) {
      const dist::BucketPlan plan = dist::plan_buckets(metas, bytes, parts);
      for (const dist::Bucket& bucket : plan.buckets) EXPECT_EQ(bucket.count % parts, 0);
      for (std::size_t i = 0; i < metas.size(); ++i) {
        const std::int64_t numel = metas[i].shape.numel();
        const dist::Bucket& bucket = plan.buckets[plan.places[i].bucket];
        std::int64_t end = 0;
        for (int part = 0; part < parts; ++part) {
          const optim::Share share = dist::share_of(plan, i, numel, part);
          if (share.count == 0) continue;
          EXPECT_EQ(share.begin, end) << "one after the other";
          end = share.begin + share.count;
          const std::int64_t length = bucket.count / parts, first = bucket.begin + part * length;
          EXPECT_GE(plan.places[i].begin + share.begin, first);
          EXPECT_LE(plan.places[i].begin + end, first + length);
        }
        EXPECT_EQ(end, numel) << "all of them";
      }
    }
}

TEST(Reducer, MakesTheSumsInTheOrderOfTheirStarts) {
  for (const bool overlap : {true, false})
    on_ranks(3, [&](Handle& g) {
      Reducer reducer(*g, overlap);
      for (int round = 0; round < 20; ++round) {
        std::vector<Tensor<Cpu>> parts;
        for (std::int64_t n = 0; n < 8; ++n) {
          parts.push_back(elements<float>(g->rank(), {n * 100}));
          reducer.start(parts.back().primitive(), parts.back().primitive());
        }
        reducer.wait();
        for (const Tensor<Cpu>& part : parts)
          for (std::int64_t i = 0; i < part.numel(); ++i)
            expect_bits(part, i, reduced<float>(ReduceOp::sum, g->size(), i), "a sum");
        g->barrier();  // the handle is free again
      }
    });
}

TEST(Reducer, GivesEachRankItsPart) {
  for (const bool overlap : {true, false})
    on_ranks(3, [&](Handle& g) {
      Reducer reducer(*g, overlap);
      const Tensor<Cpu> all = elements<float>(g->rank(), {300}), part = zeros(all.backend(), {100});
      reducer.start(all.primitive(), part.primitive(), Reducer::To::parts);
      reducer.wait();
      for (std::int64_t i = 0; i < 100; ++i)
        expect_bits(part, i, reduced<float>(ReduceOp::sum, g->size(), g->rank() * 100 + i), "a part");
    });
}

TEST(Reducer, ErrorsAreThrownByWaitAndWhatFollowsIsDropped) {
  for (const bool overlap : {true, false})
    on_ranks(2, [&](Handle& g) {
      Cpu b;
      Reducer reducer(*g, overlap);
      const Array odd = ones(b, {g->rank() + 1}).primitive(), next = ones(b, {3}).primitive();
      // With overlap the first may have failed by now, and then the second is refused.
      EXPECT_THROW(
          {
            reducer.start(odd, odd);
            reducer.start(next, next);
            reducer.wait();
          },
          DistError);
      EXPECT_EQ(next.data<float>()[0], 1);
      g->barrier();
    });
}

TEST(Reducer, EndsWithoutWaitingForWhatHasNotBegun) {
  on_ranks(2, [](Handle& g) {
    Cpu b;
    const Array x = ones(b, {3}).primitive();
    if (g->rank() == 1) return g.reset();
    Reducer reducer(*g, true);
    reducer.start(x, x);
  });
}

TEST(Mean, CountsRanksByTheirWeights) {
  on_ranks(3, [](Handle& g) {
    EXPECT_EQ(dist::mean(*g, g->rank() + 1.0), 2);
    EXPECT_EQ(dist::mean(*g, g->rank() == 0 ? std::nan("") : g->rank(), g->rank()), 5.0 / 3);
    const std::vector<double> values{1.0 * g->rank(), 7};
    EXPECT_EQ(dist::mean(*g, values), (std::vector<double>{1, 7}));
    EXPECT_TRUE(std::isnan(dist::mean(*g, 1, 0)));
    EXPECT_THROW(dist::mean(*g, 1, -1), ValueError);
  });
}

TEST(SameLines, NameTheFirstRankAndLineThatDiffer) {
  on_ranks(3, [](Handle& g) {
    std::vector<std::string> lines{"a", "b", "c"};
    dist::detail::check_same_lines(*g, lines);
    if (g->rank() == 2) lines.pop_back();
    try {
      dist::detail::check_same_lines(*g, lines);
      ADD_FAILURE() << "no error";
    } catch (const DistError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 2 has nothing more, rank 0 has c"), std::string::npos)
          << error.what();
    }
  });
}

}  // namespace
}  // namespace ferrite::testing
