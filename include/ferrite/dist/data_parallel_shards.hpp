// The sharded optimiser of a DataParallel (ZeRO, stage 1); data_parallel.hpp includes it.
//
// A bucket is as many equal parts as there are ranks. Rank r gets the sum of part r, updates the elements of
// the parameters that lie there, and gives them to the others through the memory of the gradients, which are
// done with.
#pragma once

#include "ferrite/dist/data_parallel.hpp"

namespace ferrite::dist {

template <class B>
std::size_t DataParallel<B>::index_of(const std::string& parameter) const {
  const auto found = index_of_name_.find(parameter);
  if (found == index_of_name_.end()) detail::throw_not_known(parameter);
  return found->second;
}

template <class B>
optim::Share DataParallel<B>::share_of(const std::string& parameter) const {
  return share(index_of(parameter), group_.rank());
}

template <class B>
Tensor<typename DataParallel<B>::Inner> DataParallel<B>::sum(const Tensor<Inner>& x) {
  return all_reduce(group_, x);
}

template <class B>
void DataParallel<B>::gather_parameters() {
  const int rank = group_.rank();
  for (const Bucket& bucket : plan_.buckets) {
    for (const std::size_t i : bucket.parameters) {
      const optim::Share own = share(i, rank);
      if (own.count > 0) assign(elements(places_[i], own), elements(values_of(i), own));
    }
    const Tensor<Inner> whole = part_of(bucket, 0, 1), mine = part_of(bucket, rank, group_.size());
    detail::before_overwriting(whole.backend());
    const Array source = detail::source_of(group_, mine);
    detail::Target<Inner> target(group_, whole.backend(), whole.primitive());
    group_.all_gather(source, target.array());
    target.commit();
    for (const std::size_t i : bucket.parameters) assign(values_of(i), places_[i]);
  }
}

template <class B>
HostTensor DataParallel<B>::gather(const std::string& parameter, const HostTensor& share_here) {
  const std::size_t i = index_of(parameter), size = size_of(share_here.dtype());
  const auto fill = [&](std::span<std::byte> whole) {
    for (int rank = 0; rank < group_.size(); ++rank) {
      const optim::Share part = share(i, rank);
      if (part.count == 0) continue;
      const Array bytes = detail::host_array({{part.count}, share_here.dtype()});
      if (rank == group_.rank()) std::ranges::copy(share_here.bytes(), bytes.data());
      group_.broadcast(bytes, rank);
      std::copy_n(bytes.data(), bytes.meta().bytes(),
                  whole.data() + static_cast<std::size_t>(part.begin) * size);
    }
  };
  return HostTensor::make(share_here.dtype(), parameters_[i].tensor.shape(), fill);
}

}  // namespace ferrite::dist
