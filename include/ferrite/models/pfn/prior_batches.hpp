// PriorBatches: the batches of a course for a trainer, made on its backend. From the source the trainer gets
// only which datasets are next; nothing goes over the bus.
//
//   pfn::PriorBatches<B> batches(course);
//   train::Trainer<B> trainer(model, optimizer, batches, pfn::table_model(model), config);
//   trainer.load_by(batches);
#pragma once

#include <numeric>

#include "ferrite/data/source.hpp"
#include "ferrite/models/pfn/course.hpp"
#include "ferrite/models/pfn/network.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "ferrite/tensor/assign.hpp"
#include "ferrite/train/trainer.hpp"

namespace ferrite::pfn {

/// A batch on the backend: x [N, R, C], y: the labels of the query rows [N, Q], then is_category [N, C], the
/// labels of the train rows [N, T], and of classification the classes of each dataset [N].
template <class B>
class PriorBatches final : public data::BatchSource, public train::Loading<B> {
 public:
  /// Throws as CourseConfig::check does.
  explicit PriorBatches(CourseConfig course) : course_(std::move(course)) { course_.check(); }

  std::optional<data::HostBatch> pull() override { return order(next_++); }
  std::string describe() const override { return course_.describe(); }
  data::LoaderPosition position() const override { return {0, next_}; }
  bool can_seek() const override { return true; }
  void seek(data::LoaderPosition position) override { next_ = position.batch; }
  std::int64_t batch_size() const override { return course_.sizes_of(next_).tables; }

  /// Batches that no run comes to, for evaluations. *this must outlive them.
  data::Generated held_out() const {
    constexpr std::int64_t far = std::int64_t{1} << 32;
    return data::Generated("held out: " + describe(),
                           [this](std::int64_t number) { return std::optional(order(far + number)); });
  }

  std::string kind(const data::HostBatch& host) const override {
    const auto sizes = host.y.as<std::int64_t>();
    return to_string(Shape{host.size(), sizes[0], sizes[1], sizes[2]});
  }
  data::Batch<B> load(B& backend, const data::HostBatch& host) override {
    const auto sizes = host.y.as<std::int64_t>();
    return make(backend, host.x.as<std::int64_t>()[0], {host.size(), {sizes[0], sizes[1]}, sizes[2]});
  }
  void load_into(const data::HostBatch& host, const data::Batch<B>& into) override {
    const data::Batch<B> made = load(into.x.backend(), host);
    assign(into.x, made.x);
    assign(into.y, made.y);
    for (std::size_t i = 0; i < made.more.size(); ++i) assign(into.more[i], made.more[i]);
  }

 private:
  /// The numbers of the datasets; then their train rows, query rows and columns.
  data::HostBatch order(std::int64_t number) const {
    const TableSizes sizes = course_.sizes_of(number);
    std::vector<std::int64_t> datasets(static_cast<std::size_t>(sizes.tables));
    std::iota(datasets.begin(), datasets.end(), course_.first_dataset(number));
    const std::int64_t extents[] = {sizes.rows.train, sizes.rows.query, sizes.columns};
    return {HostTensor::from(std::span<const std::int64_t>(datasets), {sizes.tables}),
            HostTensor::from(std::span<const std::int64_t>(extents), {3})};
  }
  /// A dataset that the prior failed to make counts for nothing: its labels are ignored.
  data::Batch<B> make(B& backend, std::int64_t first, const TableSizes& sizes) const {
    const auto made = priors::generate(backend, course_.prior_of(sizes), course_.seed, first, sizes.tables);
    const std::int64_t train = sizes.rows.train, all = train + sizes.rows.query;
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
  std::int64_t next_ = 0;
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
