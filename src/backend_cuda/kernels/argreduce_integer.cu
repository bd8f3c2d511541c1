// argmax and argmin of integers and truth values.
#include "backend_cuda/kit/folds.cuh"

namespace ferrite::cuda {

void reduce_integer_place(const Call& call, const AxisReduction& reduction, Extreme extreme) {
  const auto run = [&]<class T, class Stored>() {
    reduce(call, reduction, ArgExtremum<T, Stored>{Ordered<T>::of(extreme)});
  };
  switch (reduction.in.dtype()) {
    case DType::i32:
      return run.operator()<std::int32_t, std::int32_t>();
    case DType::i64:
      return run.operator()<std::int64_t, std::int64_t>();
    case DType::u8:
      return run.operator()<std::uint8_t, std::uint8_t>();
    default:
      return run.operator()<bool, std::uint8_t>();
  }
}

}  // namespace ferrite::cuda
