// TrainerRanks: a Trainer on every rank of a group, which train one model together.
//
//   const auto group = dist::world();
//   dist::TrainerRanks<B> ranks(model, *group);
//   train::Trainer<B> trainer(model, optimizer, loader, step, config);  // the rows of this rank
//   trainer.train_with(ranks);
//   if (group->rank() == 0) trainer.add_observer(bar);
//   trainer.fit();
#pragma once

#include "ferrite/dist/data_parallel.hpp"
#include "ferrite/train/ranks.hpp"

namespace ferrite::dist {

template <class B>
class TrainerRanks final : public train::Ranks<B> {
 public:
  using Inner = typename B::Inner;

  /// As DataParallel: all ranks get the weights of rank 0.
  TrainerRanks(nn::Module<B>& model, Group& group, const DataParallelConfig& config = {})
      : parallel_(model, group, config) {}

  /// For the optimiser: DataParallel::shards.
  optim::Shards<Inner>* shards() { return parallel_.shards(); }

  int rank() const override { return parallel_.group().rank(); }
  int size() const override { return parallel_.group().size(); }
  void accumulate(const Tensor<B>& loss, Gradients<Inner>& grads,
                  const BackwardConfig<Inner>& config) override {
    parallel_.accumulate(loss, grads, 1, config);
  }
  void backward(const Tensor<B>& loss, Gradients<Inner>& grads,
                const BackwardConfig<Inner>& config) override {
    parallel_.backward(loss, grads, 1, config);
  }
  double finish(Gradients<Inner>& grads) override { return parallel_.finish(grads); }
  double finish_recorded(Gradients<Inner>& grads) override { return parallel_.finish_recorded(grads); }
  bool can_record() const override { return parallel_.can_record(); }
  void abandon_recorded() override { parallel_.abandon_recorded(); }
  std::vector<double> largest(std::span<const double> values) override {
    const Array all = detail::host_array({{static_cast<std::int64_t>(values.size())}, DType::f64});
    std::ranges::copy(values, all.data<double>());
    parallel_.group().all_reduce(all, all, ReduceOp::max);
    return {all.data<double>(), all.data<double>() + values.size()};
  }
  std::vector<double> mean(std::span<const double> values, double weight) override {
    return parallel_.mean(values, weight);
  }
  void check_same(std::span<const std::string> lines) override {
    detail::check_same_lines(parallel_.group(), lines,
                             {"trainer", "runs", "give every rank the same options and checkpoints"});
  }
  void broadcast_buffers() override { parallel_.broadcast_buffers(); }
  const std::vector<std::string>& notices() const override { return parallel_.notices(); }

 private:
  DataParallel<B> parallel_;
};

}  // namespace ferrite::dist
