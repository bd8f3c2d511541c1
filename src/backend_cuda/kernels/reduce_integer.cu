// Sums of integers, counts of truth values, any and all.
#include "backend_cuda/kit/folds.cuh"

namespace ferrite::cuda {

void reduce_integer_sum(const Call& call, const AxisReduction& reduction, bool add) {
  switch (reduction.in.dtype()) {
    case DType::i32:
      return reduce(call, reduction, IntegerSum<std::int32_t>{}, add);
    case DType::i64:
      return reduce(call, reduction, IntegerSum<std::int64_t>{}, add);
    case DType::u8:
      return reduce(call, reduction, IntegerSum<std::uint8_t>{}, add);
    default:
      return reduce(call, reduction, IntegerSum<bool, std::uint8_t>{}, add);
  }
}

void reduce_any(const Call& call, const AxisReduction& reduction, bool all) {
  const DType dtype = reduction.in.dtype();
  const auto run = [&]<class Bits>(Bits) {
    const Bits every = static_cast<Bits>(~Bits{0});
    reduce(call, reduction, AnyOf<Bits>{static_cast<Bits>(is_floating(dtype) ? every >> 1 : every), all});
  };
  switch (size_of(dtype)) {
    case 1:
      return run(std::uint8_t{});
    case 2:
      return run(std::uint16_t{});
    case 4:
      return run(std::uint32_t{});
    default:
      return run(std::uint64_t{});
  }
}

}  // namespace ferrite::cuda
