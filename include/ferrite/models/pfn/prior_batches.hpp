// PriorBatches: the batches of a course for a trainer, made on its backend. From the source the trainer gets
// only which datasets are next; nothing goes over the bus.
//
//   pfn::PriorBatches<B> batches(course);
//   train::Trainer<B> trainer(model, optimizer, batches, pfn::table_model(model), config);
//   trainer.load_by(batches);
#pragma once

#include <algorithm>
#include <numeric>

#include "ferrite/backend/aside.hpp"
#include "ferrite/data/source.hpp"
#include "ferrite/models/pfn/course.hpp"
#include "ferrite/models/pfn/network.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "ferrite/tensor/assign.hpp"
#include "ferrite/train/trainer.hpp"

namespace ferrite::pfn {

/// A batch on the backend: x [N, R, C], y: the labels of the query rows [N, Q], then is_category [N, C], the
/// labels of the train rows [N, T], and of classification the classes of each dataset [N].
/// A GPU makes the tables of many batches at once, and beside the steps: those of one are too few to fill it.
template <class B>
class PriorBatches final : public data::BatchSource, public train::Loading<B> {
 public:
  /// `at_once` batches of a size are made together; 0: as many as suit the device. The tables are the same.
  /// Throws as CourseConfig::check and CourseReader do.
  explicit PriorBatches(CourseConfig course, std::int64_t at_once = 0, std::int64_t rank = 0)
      : course_(std::move(course)), reader_(course_, rank), at_once_(at_once) {
    course_.check();
  }

  std::optional<data::HostBatch> pull() override { return order(reader_.next()); }
  std::string describe() const override { return course_.describe(); }
  data::LoaderPosition position() const override { return {0, reader_.position()}; }
  bool can_seek() const override { return true; }
  void seek(data::LoaderPosition position) override { reader_.seek(position.batch); }
  std::int64_t batch_size() const override { return course_.sizes_of(reader_.position()).tables; }

  /// Batches that no run comes to, for evaluations; each of several ranks has its own. *this must outlive
  /// them.
  data::Generated held_out(std::int64_t rank = 0, std::int64_t ranks = 1) const {
    return data::Generated("held out: " + describe(), [this, rank, ranks](std::int64_t number) {
      return std::optional(order(course_.held_out(number * ranks + rank)));
    });
  }

  std::string kind(const data::HostBatch& host) const override {
    const CourseBatch batch = batch_of(host);
    return to_string(
        Shape{batch.sizes.tables, batch.sizes.rows.train, batch.sizes.rows.query, batch.sizes.columns});
  }
  data::Batch<B> load(B& backend, const data::HostBatch& host) override {
    data::Batch<B> batch = made(backend, batch_of(host));
    batch.x = clone(batch.x);  // whoever has it may write to it
    batch.y = clone(batch.y);
    for (Tensor<B>& more : batch.more) more = clone(more);
    return batch;
  }
  void load_into(const data::HostBatch& host, const data::Batch<B>& into) override {
    const data::Batch<B> made = this->made(into.x.backend(), batch_of(host));
    assign(into.x, made.x);
    assign(into.y, made.y);
    for (std::size_t i = 0; i < made.more.size(); ++i) assign(into.more[i], made.more[i]);
  }

 private:
  /// The tables of a batch and of those of the same size that follow it.
  struct Made {
    CourseBatch batch;
    data::Batch<B> tables;
    // Those that follow these, made aside.
    data::Batch<B> next;
    std::int64_t making = 0;
  };

  /// The numbers of the datasets; then their train rows, query rows and columns.
  static data::HostBatch order(const CourseBatch& batch) {
    const auto& [tables, rows, columns] = batch.sizes;
    std::vector<std::int64_t> datasets(static_cast<std::size_t>(tables));
    std::iota(datasets.begin(), datasets.end(), batch.first_dataset);
    const std::int64_t extents[] = {rows.train, rows.query, columns};
    return {HostTensor::from(std::span<const std::int64_t>(datasets), {tables}),
            HostTensor::from(std::span<const std::int64_t>(extents), {3})};
  }
  static CourseBatch batch_of(const data::HostBatch& host) {
    const auto extents = host.y.as<std::int64_t>();
    return {{host.size(), {extents[0], extents[1]}, extents[2]}, host.x.as<std::int64_t>()[0]};
  }

  /// A view of tables that are there, or that are made now with those of batches to come.
  data::Batch<B> made(B& backend, const CourseBatch& batch) {
    if (CourseConfig::is_held_out(batch)) return make(backend, batch, batch.sizes.tables);
    const auto known =
        std::ranges::find_if(made_, [&](const Made& made) { return made.batch.sizes == batch.sizes; });
    Made& all = known != made_.end() ? *known : made_.emplace_back();
    std::int64_t first = batch.first_dataset - all.batch.first_dataset;
    if (!all.tables.x.defined() || first < 0 || first >= all.tables.size()) {
      const std::int64_t at_once = batches_at_once(backend, batch.sizes),
                         count = at_once * course_.datasets_between(batch.sizes);
      if (all.next.x.defined() && first == all.tables.size()) {
        aside_->wait(all.making);
        all.tables = std::move(all.next);
        all.batch = batch;
      } else {
        all = {batch, {}, {}};  // gives its memory back first
        all.tables = make(backend, batch, count);
      }
      if (at_once > 1) {
        if (!aside_) aside_ = aside(backend);
        const CourseBatch following{batch.sizes, batch.first_dataset + count};
        all.making = aside_->run([&] { all.next = make(backend, following, count); });
      }
      first = 0;
    }
    const auto part = [&](const Tensor<B>& whole) {
      return slice(whole, 0, first, first + batch.sizes.tables);
    };
    data::Batch<B> one{part(all.tables.x), part(all.tables.y), {}};
    for (const Tensor<B>& more : all.tables.more) one.more.push_back(part(more));
    return one;
  }
  /// Several thousand tables fill a GPU. Elsewhere nothing is gained by more than one batch.
  std::int64_t batches_at_once(const B& backend, const TableSizes& sizes) const {
    if (at_once_ > 0) return at_once_;
    if (backend.device().kind != DeviceKind::cuda) return 1;
    return std::clamp<std::int64_t>(4096 / sizes.tables, 4, 64);
  }
  /// A dataset that the prior failed to make counts for nothing: its labels are ignored.
  data::Batch<B> make(B& backend, const CourseBatch& batch, std::int64_t count) const {
    const auto made =
        priors::generate(backend, course_.prior_of(batch.sizes), course_.seed, batch.first_dataset, count);
    const std::int64_t train = batch.sizes.rows.train, all = train + batch.sizes.rows.query;
    const Tensor<B> is_category = cast(made.levels > 0, DType::f32);
    const Tensor<B> queries = contiguous(slice(made.y, 1, train, all)), shown = slice(made.y, 1, 0, train);
    if (course_.prior.task == Task::regression)
      return {made.x,
              where(slice(made.row_mask, 1, train, all), queries, std::nan("")),
              {is_category, contiguous(shown)}};
    const Tensor<B> classes = maximum(select(made.info, 1, priors::info_classes), 1);
    return {made.x, queries, {is_category, cast(maximum(shown, 0), DType::i32), contiguous(classes)}};
  }

  CourseConfig course_;
  CourseReader reader_;
  std::int64_t at_once_;
  std::vector<Made> made_;
  std::unique_ptr<Aside> aside_;
};

/// The step of a trainer: the loss of the query rows.
template <class B>
train::StepFunction<B> table_model(Network<B>& model) {
  return [&model](const data::Batch<B>& batch) {
    const Tensor<B> classes = batch.more.size() > 2 ? batch.more[2] : Tensor<B>();
    return train::Prediction<B>{model.loss(batch.x, batch.more[0], batch.more[1], batch.y, classes), {}};
  };
}

}  // namespace ferrite::pfn
