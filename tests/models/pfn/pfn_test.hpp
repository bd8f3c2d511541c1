// What the tests of prior-fitted networks share: small networks and small tables.
#pragma once

#include <limits>

#include "ferrite/models/pfn/file.hpp"
#include "nn/nn_test.hpp"

namespace ferrite::testing {

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline pfn::Config small_pfn(pfn::Task task = pfn::Task::classification) {
  return pfn::Config{}
      .with_task(task)
      .with_classes(4)
      .with_bins(12)
      .with_dim(16)
      .with_head_width(8)
      .with_layers(3)
      .with_hidden(24)
      .with_registers(2);
}

/// A network whose every part matters: at first, the ends of the branches are 0.
template <class B>
pfn::Network<B> lively_pfn(B& backend, const pfn::Config& config) {
  Rng rng(3);
  pfn::Network<B> model(backend, config, rng);
  Reference host;
  for (const auto& p : model.parameters()) {
    if (p.tensor.rank() < 2) continue;
    const double spread = 1 / std::sqrt(static_cast<double>(p.tensor.size(1)));
    assign(p.tensor, to_host(randn(host, p.tensor.shape(), rng, 0, spread)));
  }
  return model;
}

/// Tables of random numbers; the label depends on the first two columns.
template <class B>
struct Tables {
  static constexpr std::int64_t sets = 2, rows = 11, train = 7, columns = 5;
  Tensor<B> x, is_category, labels, targets, classes;

  Tables(B& backend, pfn::Task task, DType dtype = DType::f32) {
    Reference host;
    Rng rng(5);
    const auto drawn = randn(host, {sets, rows, columns}, rng);
    x = cast(from_host(backend, to_host(drawn)), dtype);
    is_category = cast(from_host(backend, to_host(randint(host, {sets, columns}, rng, 0, 2))), dtype);
    const Tensor<B> value = select(x, 2, 0) + select(x, 2, 1) * 2;
    const Tensor<B> all = task == pfn::Task::classification
                              ? cast(value > 0, DType::i32) + cast(value > 1, DType::i32)
                              : value * 50 + 1000;
    labels = slice(all, 1, 0, train);
    targets = slice(all, 1, train, rows);
    classes = full(backend, {sets}, 3, DType::i32);
  }
  Tensor<B> x_train() const { return slice(x, 1, 0, train); }
  Tensor<B> x_query() const { return slice(x, 1, train, rows); }
  Tensor<B> loss(pfn::Network<B>& model) const {
    const bool has_classes = model.config().task == pfn::Task::classification;
    return model.loss(x, is_category, labels, targets, has_classes ? classes : Tensor<B>());
  }
};

/// x with the columns or rows in the order given.
template <class B>
Tensor<B> reordered(const Tensor<B>& x, int axis, const std::vector<std::int64_t>& order) {
  return index_select(x, axis, from_vector(x.backend(), order));
}

inline constexpr pfn::Task both_tasks[] = {pfn::Task::classification, pfn::Task::regression};

}  // namespace ferrite::testing
