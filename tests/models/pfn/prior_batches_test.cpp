// The tables that a network is trained on: what batches hold, that runs resume, that a network learns.
#include "ferrite/models/pfn/prior_batches.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "ferrite/optim/adam.hpp"
#include "train/train_test.hpp"

namespace ferrite::pfn {
namespace {

using testing::expect_error;
using testing::same_bits;
using B = Autodiff<Cpu>;

CourseConfig small_course(Task task = Task::classification) {
  CourseConfig course;
  course.prior.task = task;
  course.prior.post.missing_share = 0.5;
  course.prior.post.categorical_share = 0.5;
  course.stages = {{0, {{20, 10}, {12, 6}}, {2, 3}}, {6, {{40, 20}}, {4}}};
  return course.with_cells(400).with_seed(3);
}

TEST(PfnCourse, SizesFollowFromTheNumberAlone) {
  const CourseConfig course = small_course();
  std::set<std::int64_t> rows, columns;
  for (std::int64_t i = 0; i < 6; ++i) {
    const TableSizes sizes = course.sizes_of(i);
    EXPECT_EQ(sizes, course.sizes_of(i));
    EXPECT_LE(sizes.tables * (sizes.rows.train + sizes.rows.query) * (sizes.columns + 1), 400);
    rows.insert(sizes.rows.train);
    columns.insert(sizes.columns);
  }
  EXPECT_EQ(rows, (std::set<std::int64_t>{12, 20}));
  EXPECT_EQ(columns, (std::set<std::int64_t>{2, 3}));
  for (const std::int64_t i : {6, 100}) EXPECT_EQ(course.sizes_of(i), (TableSizes{1, {40, 20}, 4}));
  EXPECT_EQ(course.all_sizes().size(), 5u);
}

TEST(PfnCourse, BatchesOfASizeFollowEachOtherAndShareNoDataset) {
  const CourseConfig course = small_course();
  CourseReader reader(course);
  std::set<std::int64_t> seen;
  std::map<std::int64_t, std::int64_t> next;  // by the first dataset of a size
  std::vector<CourseBatch> batches;
  for (std::int64_t i = 0; i < 12; ++i) {
    const CourseBatch batch = batches.emplace_back(reader.next());
    EXPECT_EQ(batch.sizes, course.sizes_of(i));
    EXPECT_FALSE(CourseConfig::is_held_out(batch));
    const std::int64_t first = course.first_dataset(batch.sizes);
    if (next.contains(first)) {
      EXPECT_EQ(batch.first_dataset, next[first]);
    }
    next[first] = batch.first_dataset + course.datasets_between(batch.sizes);
    EXPECT_EQ(batch.first_dataset % course.prior.group_size, 0);
    for (std::int64_t k = 0; k < batch.sizes.tables; ++k)
      EXPECT_TRUE(seen.insert(batch.first_dataset + k).second);
    const CourseBatch held_out = course.held_out(i);
    EXPECT_TRUE(CourseConfig::is_held_out(held_out));
    for (std::int64_t k = 0; k < held_out.sizes.tables; ++k)
      EXPECT_TRUE(seen.insert(held_out.first_dataset + k).second);
  }
  CourseReader other(course, /*rank=*/1);  // the same sizes, other datasets
  for (const CourseBatch& batch : batches) {
    const CourseBatch apart = other.next();
    EXPECT_EQ(apart.sizes, batch.sizes);
    EXPECT_FALSE(CourseConfig::is_held_out(apart));
    for (std::int64_t k = 0; k < apart.sizes.tables; ++k)
      EXPECT_TRUE(seen.insert(apart.first_dataset + k).second);
  }
  EXPECT_THROW(CourseReader(course, 128), ValueError);
  for (const std::int64_t i : {0, 7, 3, 11}) {
    reader.seek(i);
    EXPECT_EQ(reader.position(), i);
    EXPECT_EQ(reader.next().first_dataset, batches[static_cast<std::size_t>(i)].first_dataset);
  }
}

TEST(PfnCourse, TheStandardOneGrowsInItsLastFifth) {
  const CourseConfig course = CourseConfig::standard(1000, 16);
  course.check();
  const auto longest = [&](std::int64_t first, std::int64_t last) {
    std::int64_t most = 0;
    for (std::int64_t i = first; i < last; ++i) most = std::max(most, course.sizes_of(i).rows.train);
    return most;
  };
  EXPECT_EQ(longest(0, 800), 368);
  EXPECT_EQ(longest(800, 1000), 1008);
  CourseConfig::standard(1, 0).check();
}

TEST(PfnCourse, WhatCannotBeIsRefused) {
  const auto refused = [](CourseConfig course, const char* why) {
    expect_error<ValueError>([&] { course.check(); }, {"[pfn course]", why});
  };
  refused(small_course().with_stages({}), "must begin at batch 0");
  refused(small_course().with_cells(0), "0 cells");
  refused(small_course().with_stages({{0, {{4, 4}}, {2}}, {0, {{4, 4}}, {2}}}), "must be after stage 0");
  refused(small_course().with_stages({{0, {}, {2}}}), "no rows");
  refused(small_course().with_stages({{0, {{4, 0}}, {2}}}), "at least 1 each");
  refused(small_course().with_stages({{0, {{0, 0}}, {2}}}), "at least 1 each");
  refused(small_course().with_stages({{0, {{4, 4}}, {-1}}}), "-1 columns");
  std::vector<RowCounts> many;
  for (std::int64_t i = 0; i < 257; ++i) many.push_back({4 + i, 4});
  refused(small_course().with_stages({{0, many, {2}}}), "257 sizes of tables: at most 256");
}

TEST(PfnPriorBatches, TablesAreThoseOfThePrior) {
  Cpu cpu;
  PriorBatches<Cpu> batches(small_course()), again(small_course(), /*at_once=*/3);
  for (int i = 0; i < 12; ++i) {
    const TableSizes sizes = small_course().sizes_of(i);
    const auto host = batches.pull();
    ASSERT_TRUE(host);
    EXPECT_EQ(host->size(), sizes.tables);
    const data::Batch<Cpu> batch = batches.load(cpu, *host);
    const std::int64_t n = sizes.tables, all = sizes.rows.train + sizes.rows.query;
    EXPECT_EQ(batch.x.shape(), (Shape{n, all, sizes.columns}));
    EXPECT_EQ(batch.y.shape(), (Shape{n, sizes.rows.query}));
    EXPECT_EQ(batch.more[0].shape(), (Shape{n, sizes.columns}));
    EXPECT_EQ(batch.more[1].shape(), (Shape{n, sizes.rows.train}));
    const auto labels = batch.more[1].to_vector<std::int32_t>();
    const auto classes = batch.more[2].to_vector<std::int32_t>();
    for (std::size_t k = 0; k < labels.size(); ++k) {
      EXPECT_GE(labels[k], 0);
      EXPECT_LT(labels[k], classes[k / static_cast<std::size_t>(sizes.rows.train)]);
    }
    for (const std::int64_t target : batch.y.to_vector<std::int64_t>())
      EXPECT_TRUE(target >= 0 || target == priors::ignored_label) << target;
    // The same into tensors that are there, and again by number.
    again.seek({0, i});
    const auto second = again.pull();
    EXPECT_EQ(again.kind(*second), batches.kind(*host));
    const data::Batch<Cpu> place{
        zeros_like(batch.x),
        zeros_like(batch.y),
        {zeros_like(batch.more[0]), zeros_like(batch.more[1]), zeros_like(batch.more[2])}};
    again.load_into(*second, place);
    EXPECT_TRUE(same_bits({{"x", to_host(place.x)}}, {{"x", to_host(batch.x)}}));  // missing cells are NaN
    EXPECT_EQ(place.more[1].to_vector<std::int32_t>(), labels);
  }
  data::Generated held_out = batches.held_out();
  const auto apart = held_out.pull();
  EXPECT_TRUE(CourseConfig::is_held_out({{}, apart->x.as<std::int64_t>()[0]}));
  EXPECT_EQ(batches.load(cpu, *apart).size(), apart->size());
  // Two ranks share them: what one has in turn, each has every other of.
  data::Generated first = batches.held_out(0, 2), second = batches.held_out(1, 2);
  held_out.seek({0, 0});
  for (int i = 0; i < 4; ++i) {
    const auto whole = held_out.pull(), part = (i % 2 == 0 ? first : second).pull();
    EXPECT_EQ(part->x.as<std::int64_t>()[0], whole->x.as<std::int64_t>()[0]) << i;
  }
}

struct TableRun {
  B backend;
  Rng rng{1};
  nn::Pfn<B> model;
  optim::AdamW<B> optimizer;
  PriorBatches<B> batches;
  train::Trainer<B> trainer;

  TableRun(const CourseConfig& course, std::int64_t steps)
      : model(backend,
              Config{}
                  .with_task(course.prior.task)
                  .with_dim(32)
                  .with_layers(2)
                  .with_hidden(32)
                  .with_registers(2)
                  .with_bins(10),
              rng),
        optimizer(model.parameters(), optim::AdamWConfig{}.with_lr(5e-3)),
        batches(course),
        trainer(model, optimizer, batches, table_model(model),
                train::TrainerConfig{}.with_steps(steps).with_report_every(5)) {
    trainer.load_by(batches);
  }
};

TEST(PfnPriorBatches, RunsResumeToTheBit) {
  const testing::ScratchFolder folder;
  for (const Task task : {Task::classification, Task::regression}) {
    const CourseConfig course = small_course(task);
    TableRun whole(course, 8), first(course, 8), second(course, 8);
    whole.trainer.fit();
    first.trainer.advance(5);
    first.trainer.save(folder / "a.safetensors");
    second.trainer.resume(folder / "a.safetensors");
    second.trainer.fit();
    EXPECT_TRUE(same_bits(whole.model.state(), second.model.state()));
  }
}

/// Simple tables, so that a hundred steps of a tiny network are enough to see it.
TEST(PfnPriorBatches, ANetworkLearnsFromThem) {
  for (const Task task : {Task::classification, Task::regression}) {
    CourseConfig course;
    course.prior.task = task;
    course.prior.family = priors::Family::formula;
    course.prior.formula.terms = {1, 1};
    course.prior.post.classes = {2, 2};
    course.stages = {{0, {{24, 24}}, {1}}};
    TableRun run(course.with_cells(3000), 100);
    data::Generated held_out = run.batches.held_out();
    const double before = run.trainer.evaluate(held_out, 5)["loss"];
    run.trainer.fit();
    held_out.seek({0, 0});
    EXPECT_LT(run.trainer.evaluate(held_out, 5)["loss"], before - 0.2);
  }
}

}  // namespace
}  // namespace ferrite::pfn
