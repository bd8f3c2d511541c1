// Ranks: what a trainer asks of the others that train the same model (dist/trainer_ranks.hpp is for groups).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ferrite/autodiff/gradients.hpp"

namespace ferrite::train {

/// Every rank calls the same functions in the same order.
template <class B>
class Ranks {
 public:
  using Inner = typename B::Inner;

  virtual ~Ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Adds the gradients of a loss of this rank: of all micro-batches but the last, and of the last.
  virtual void accumulate(const Tensor<B>& loss, Gradients<Inner>& grads,
                          const BackwardConfig<Inner>& config) = 0;
  virtual void backward(const Tensor<B>& loss, Gradients<Inner>& grads,
                        const BackwardConfig<Inner>& config) = 0;
  /// After it `grads` holds the sums over all ranks. Returns how many losses they are of.
  virtual double finish(Gradients<Inner>& grads) = 0;
  /// The same inside a step that is being recorded, if can_record().
  virtual double finish_recorded(Gradients<Inner>& grads) = 0;
  virtual bool can_record() const = 0;
  /// After an error while a step was recorded.
  virtual void abandon_recorded() = 0;
  /// Of each value the largest, or the mean, over all ranks; a rank counts by its weight.
  virtual std::vector<double> largest(std::span<const double> values) = 0;
  virtual std::vector<double> mean(std::span<const double> values, double weight) = 0;
  /// Throws, on all ranks, unless they have the same lines; names the first that differs.
  virtual void check_same(std::span<const std::string> lines) = 0;
  /// Gives all ranks the buffers of rank 0.
  virtual void broadcast_buffers() = 0;
  /// Facts that a user should know but that are not errors.
  virtual const std::vector<std::string>& notices() const = 0;
};

}  // namespace ferrite::train
