// Shards: an optimiser whose state is spread over several ranks (ZeRO, stage 1: Rajbhandari et al., 2020).
// Every rank has all parameters, and updates a share of them.
#pragma once

#include <string>

#include "ferrite/io/host_tensor.hpp"
#include "ferrite/tensor/tensor.hpp"

namespace ferrite::optim {

/// Elements of a parameter, row by row.
struct Share {
  std::int64_t begin = 0, count = 0;
};

/// What an optimiser asks of the other ranks (dist::DataParallel is one). Every rank calls the same functions
/// in the same order. K is the backend that runs the updates.
template <class K>
class Shards {
 public:
  virtual ~Shards() = default;
  /// By the one optimiser that makes the updates, from its construction to its destruction. ValueError if
  /// there is one already: a step ends the use of the gradients.
  virtual void claim() = 0;
  virtual void release() noexcept = 0;
  /// What this rank updates. Each element belongs to one rank. ValueError if the parameter is not known.
  virtual Share share_of(const std::string& parameter) const = 0;
  /// x of all ranks, added. # Shapes: x f64 [] -> the same
  virtual Tensor<K> sum(const Tensor<K>& x) = 0;
  /// After an update: gives each rank's share of the parameters to all others.
  virtual void gather_parameters() = 0;
  /// The whole tensor, on all ranks, of what each has for its share of a parameter. # Shapes: share [count]
  virtual HostTensor gather(const std::string& parameter, const HostTensor& share) = 0;
};

}  // namespace ferrite::optim
