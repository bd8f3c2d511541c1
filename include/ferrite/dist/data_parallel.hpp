// DataParallel: every rank has the whole model and a part of every batch; gradients are summed over the ranks
// while backward still runs. The same text trains with one rank and with many:
//
//   dist::DataParallel parallel(model, *group);
//   optim::AdamW<Autodiff<Cpu>> optimizer(model.parameters());
//   for (...) {
//     Gradients<Cpu> grads;
//     parallel.backward(loss, grads);
//     optimizer.step(grads, parallel.finish(grads));
//   }
//
// With DataParallelConfig::shard_optimizer each rank keeps its share of the optimiser's state alone:
//
//   optim::AdamW<Autodiff<Cpu>> optimizer(model.parameters(), {}, parallel.shards());
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/backend/record.hpp"
#include "ferrite/dist/buckets.hpp"
#include "ferrite/dist/collectives.hpp"
#include "ferrite/dist/reducer.hpp"
#include "ferrite/nn/module.hpp"
#include "ferrite/ops/fill.hpp"
#include "ferrite/tensor/assign.hpp"

namespace ferrite::dist {

/// How gradients are sent.
struct DataParallelConfig {
  /// One call reduces gradients of about this size. The same on all ranks.
  std::int64_t bucket_bytes = 25 << 20;
  /// Gradients are sent by a thread of their own while backward goes on. Without it they are sent by
  /// finish(), on the calling thread: for groups that must not be used on another one, as with an MPI that
  /// the program itself has initialised below MPI_THREAD_SERIALIZED. The bits are the same.
  bool overlap = true;
  /// Each rank updates its share of the parameters, and has the optimiser's state of that share only (ZeRO,
  /// stage 1): give shards() to the optimiser. The same on all ranks.
  bool shard_optimizer = false;

  DataParallelConfig with_bucket_bytes(std::int64_t v) const {
    return ferrite::detail::with(*this, &DataParallelConfig::bucket_bytes, v);
  }
  DataParallelConfig with_overlap(bool v) const {
    return ferrite::detail::with(*this, &DataParallelConfig::overlap, v);
  }
  DataParallelConfig with_shard_optimizer(bool v = true) const {
    return ferrite::detail::with(*this, &DataParallelConfig::shard_optimizer, v);
  }
};

/// The means over the ranks: of losses and metrics. A rank counts by its weight, the number of its rows, say;
/// with weight 0 its values are not read. NaN if all weights are 0. ValueError if a weight is negative or not
/// finite. Every rank calls it with as many values.
FERRITE_API std::vector<double> mean(Group& group, std::span<const double> values, double weight = 1);
FERRITE_API double mean(Group& group, double value, double weight = 1);

namespace detail {
/// Words of an error: "[who] the ranks have different <what>: ...: <advice>".
struct Difference {
  std::string_view who = "DataParallel", what = "models", advice = "make the same model on every rank";
};
/// DistError on all ranks, which names the first rank whose lines are not those of rank 0, and the first line
/// that differs.
FERRITE_API void check_same_lines(Group& group, std::span<const std::string> lines,
                                  const Difference& difference = {});
FERRITE_API void check_weight(double weight, bool may_be_zero);
[[noreturn]] FERRITE_API void throw_not_empty(const std::string& leaf);
[[noreturn]] FERRITE_API void throw_not_finished(std::string_view what);
[[noreturn]] FERRITE_API void throw_failed();
[[noreturn]] FERRITE_API void throw_not_known(const std::string& parameter);
[[noreturn]] FERRITE_API void throw_not_recordable(const std::string& group);
[[noreturn]] FERRITE_API void throw_not_dense(const std::string& parameter);
[[noreturn]] FERRITE_API void throw_claimed();
[[noreturn]] FERRITE_API void throw_not_claimed();
}  // namespace detail

/// The gradients of one model on one rank. B is the differentiating backend of its parameters.
///
/// A step is any number of accumulate(), one backward(), and finish(); all ranks do their steps in the same
/// order. From backward() until finish() has returned the group belongs to this object. If backward() or
/// finish() throws, the ranks are no longer at the same place: every later call throws a DistError. Let the
/// error end the rank; the others then learn from the group which one is gone.
///
/// Sums are those of Group::all_reduce. With a group that is reproducible, n ranks give the same bits as one
/// process that adds the gradients of n micro-batches in the order of the ranks.
template <class B>
class DataParallel final : private optim::Shards<typename Differentiated<B>::Inner> {
 public:
  using Inner = typename Differentiated<B>::Inner;
  static_assert(RunsKernels<Inner>, "DataParallel needs Autodiff directly over a backend with kernels");

  /// Gives all ranks the parameters and buffers of rank 0. DistError, with nothing changed, if the ranks have
  /// different models (names, shapes, dtypes, what is frozen), bucket_bytes or shard_optimizer: it names the
  /// first rank and the first line that differ. ValueError unless bucket_bytes >= 1, and for shards of a
  /// parameter that is not a dense tensor. The group and the model outlive this object, and the model keeps
  /// its parts. Parameters that are unfrozen later are not known here, as with optimisers.
  DataParallel(nn::Module<B>& model, Group& group, const DataParallelConfig& config = {});
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// Adds the gradients of weight * loss. Nothing is sent: for all micro-batches of a step but the last.
  /// `grads` is empty at the first call of a step; GradientError otherwise. ValueError unless the weight is
  /// finite and above 0.
  ///
  /// Gradients lie in memory of this object: those of one step are overwritten by the next.
  void accumulate(const Tensor<B>& loss, Gradients<Inner>& grads, double weight = 1,
                  const BackwardConfig<Inner>& config = {});
  /// The same for the last micro-batch of a step. A bucket of gradients is sent as soon as it is complete.
  /// What the hook on_ready of `config` sees are the gradients of this rank.
  void backward(const Tensor<B>& loss, Gradients<Inner>& grads, double weight = 1,
                const BackwardConfig<Inner>& config = {});
  /// Waits for the sums over all ranks, which `grads` then holds. Returns the sum of all weights: what the
  /// optimiser divides by. A rank that has no rows calls finish() alone, with an empty `grads`.
  ///
  /// A parameter that has a gradient on some ranks only counts as zero on the others. One that has none on
  /// all ranks has none afterwards; notices() names those of the first step.
  ///
  /// With shard_optimizer a rank gets the sums of its share; what else is in `grads` is of no use. ValueError
  /// if no optimiser was made with shards() then.
  double finish(Gradients<Inner>& grads);
  /// The same inside record() (backend/record.hpp), where ranks cannot tell each other numbers: all of them
  /// record the same step, of the same weight and with gradients of the same parameters. ValueError unless
  /// can_record().
  double finish_recorded(Gradients<Inner>& grads);
  /// Whether the group works on the queue of the model's device, so that steps can be recorded.
  bool can_record() const;
  /// After an error inside record(), of which nothing has run: the next step begins as if it had not been.
  void abandon_recorded();

  /// For the optimiser, one alone; nullptr without shard_optimizer.
  optim::Shards<Inner>* shards() { return is_sharded_ ? this : nullptr; }

  /// Gives all ranks the buffers of rank 0 (the running statistics of batch norm, which each rank makes of
  /// its own batches): before an evaluation.
  void broadcast_buffers() {
    check_idle("broadcast_buffers");
    for (const Tensor<B>* buffer : buffers_) broadcast_in_place(group_, *buffer);
  }

  /// dist::mean of this group. ValueError between backward() and finish().
  double mean(double value, double weight = 1) {
    check_idle("mean");
    return dist::mean(group_, value, weight);
  }
  std::vector<double> mean(std::span<const double> values, double weight = 1) {
    check_idle("mean");
    return dist::mean(group_, values, weight);
  }
  /// True on rank 0: the one that writes files and reports.
  bool is_first() const { return group_.rank() == 0; }
  Group& group() const { return group_; }
  const BucketPlan& plan() const { return plan_; }
  /// Facts that a user should know but that are not errors: parameters that no rank uses.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  using Where = std::pair<const Buffer*, std::int64_t>;
  static Where where(const Tensor<Inner>& x) {
    return {x.primitive().buffer().get(), x.primitive().layout().offset};
  }

  // Of Shards (data_parallel_shards.hpp).
  void claim() override {
    if (std::exchange(is_claimed_, true)) detail::throw_claimed();
  }
  void release() noexcept override { is_claimed_ = false; }
  optim::Share share_of(const std::string& parameter) const override;
  Tensor<Inner> sum(const Tensor<Inner>& x) override;
  void gather_parameters() override;
  HostTensor gather(const std::string& parameter, const HostTensor& share_here) override;
  std::size_t index_of(const std::string& parameter) const;
  optim::Share share(std::size_t parameter, int rank) const {
    return dist::share_of(plan_, parameter, parameters_[parameter].tensor.numel(), rank);
  }

  /// A parameter as the optimiser sees it.
  Tensor<Inner> values_of(std::size_t parameter) const {
    return {arenas_[0].backend(), ferrite::detail::kernel_array(parameters_[parameter].tensor.primitive())};
  }
  static Tensor<Inner> elements(const Tensor<Inner>& dense, const optim::Share& share) {
    Layout layout = Layout::contiguous({share.count});
    layout.offset = dense.primitive().layout().offset + share.begin;
    return {dense.backend(), dense.primitive().with_layout(layout)};
  }
  /// One of `parts` equal parts of a bucket.
  Tensor<Inner> part_of(const Bucket& bucket, int part, int parts) const {
    const std::int64_t length = bucket.count / parts;
    return elements(arenas_[bucket.arena], {bucket.begin + part * length, length});
  }

  std::vector<std::string> list(nn::Module<B>& model, const DataParallelConfig& config);
  void make_places();
  void check_idle(std::string_view what) const {
    if (failed_) detail::throw_failed();
    if (sends_) detail::throw_not_finished(what);
  }
  void begin(Gradients<Inner>& grads, double weight);
  bool to_place(std::size_t parameter, Gradients<Inner>& grads) const;
  void ready(const Tensor<Inner>& grad);
  void send(const Bucket& bucket);
  void send_rest(Gradients<Inner>& grads);
  void take_sums();
  double sum_up(Gradients<Inner>& grads);

  Group& group_;
  const bool is_sharded_;
  bool is_claimed_ = false;                        // by an optimiser
  std::vector<nn::NamedParameter<B>> parameters_;  // those that are trained
  std::map<std::string, std::size_t> index_of_name_;
  std::vector<const Tensor<B>*> buffers_;  // places: layers put new tensors there
  BucketPlan plan_;
  std::vector<Tensor<Inner>> arenas_, places_;
  std::map<Where, std::size_t> parameter_at_;
  std::vector<std::string> notices_;

  double weight_ = 0;                 // of this step, so far
  std::vector<std::size_t> awaited_;  // by bucket: gradients that are not complete
  std::size_t sent_ = 0;              // buckets
  std::vector<detail::Target<Inner>> targets_;
  std::vector<bool> present_;  // by parameter: this rank has a gradient
  bool sends_ = false;         // from backward until finish has returned
  bool failed_ = false;        // also while something may throw
  bool first_step_ = true;
  Reducer reducer_;  // the last: its thread ends before the memory that it writes
};

template <class B>
DataParallel<B>::DataParallel(nn::Module<B>& model, Group& group, const DataParallelConfig& config)
    : group_(group), is_sharded_(config.shard_optimizer), reducer_(group, config.overlap) {
  detail::check_same_lines(group, list(model, config));
  std::vector<Meta> metas;
  std::vector<nn::NamedParameter<B>> trained;
  for (const auto& p : parameters_) {
    if (!nn::is_trainable(p.tensor)) continue;
    if (is_sharded_ && !ferrite::detail::kernel_array(p.tensor.primitive()).layout().is_contiguous())
      detail::throw_not_dense(p.name);
    index_of_name_.emplace(p.name, metas.size());
    metas.push_back(p.tensor.meta());
    trained.push_back(p);
  }
  plan_ = plan_buckets(metas, config.bucket_bytes, is_sharded_ ? group.size() : 1);
  for (const auto& p : parameters_) broadcast_in_place(group, p.tensor);
  broadcast_buffers();
  parameters_ = std::move(trained);
  make_places();
}

/// Fills parameters_ (with those that are frozen) and buffers_; returns what ranks must have in common.
template <class B>
std::vector<std::string> DataParallel<B>::list(nn::Module<B>& model, const DataParallelConfig& config) {
  struct Lister final : nn::Visitor<B> {
    std::map<const Buffer*, std::string> buffers;
    std::vector<std::pair<std::string, const Tensor<B>*>> found;
    void on_buffer(const std::string& name, Tensor<B>& t) override {
      const bool is_new =
          buffers.emplace(ferrite::detail::kernel_array(t.primitive()).buffer().get(), name).second;
      if (is_new) found.emplace_back(name, &t);
    }
  } lister;
  std::vector<std::string> lines{"bucket_bytes " + std::to_string(config.bucket_bytes),
                                 config.shard_optimizer ? "a sharded optimiser" : "a whole optimiser"};
  parameters_ = model.parameters();
  for (const auto& p : parameters_)
    lines.push_back((nn::is_trainable(p.tensor) ? "the parameter '" : "the frozen parameter '") + p.name +
                    "' of " + to_string(p.tensor.meta()));
  model.visit(lister);
  for (const auto& [name, buffer] : lister.found) {
    lines.push_back("the buffer '" + name + "' of " + to_string(buffer->meta()));
    buffers_.push_back(buffer);
  }
  return lines;
}

template <class B>
void DataParallel<B>::make_places() {
  if (parameters_.empty()) return;
  Inner& inner = parameters_[0].tensor.backend().inner();
  // Zeros, because the gaps between parameters are summed as well.
  for (const Meta& arena : plan_.arenas) arenas_.push_back(zeros(inner, arena.shape, arena.dtype));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const BucketPlan::Place& place = plan_.places[i];
    Layout layout = Layout::contiguous(parameters_[i].tensor.shape());
    layout.offset = place.begin;
    places_.emplace_back(inner, arenas_[place.arena].primitive().with_layout(layout));
    parameter_at_.emplace(where(places_[i]), i);
  }
}

}  // namespace ferrite::dist

#include "ferrite/dist/data_parallel_shards.hpp"
#include "ferrite/dist/data_parallel_steps.hpp"
