// Casts between all scalar types, by the rules of cast_number.
#include "kernel/cpu/block/lanes.hpp"

namespace ferrite::kernel {

namespace {

template <ScalarType from, ScalarType to>
void cast(const Instruction& i, Lanes& l) {
  using From = typename Form<from>::Lane;
  using To = typename Form<to>::Lane;
  for_lanes<To, From>(i, l, [](From x) -> To {
    if constexpr (to == ScalarType::bool_)
      return x != 0;
    else if constexpr (is_float(from) && !is_float(to))
      return convert<To>(x);
    else if constexpr (is_float(to) && bits_of(to) == 16 && !is_float(from))
      return Form<to>::round(static_cast<double>(x));
    else if constexpr (is_float(to))
      return Form<to>::round(x);
    else
      return static_cast<To>(x);
  });
}

}  // namespace

Execute cast_instruction(ScalarType from, ScalarType to) {
  return visit_scalar(from, [&]<ScalarType f>() {
    return visit_scalar(to, []<ScalarType t>() -> Execute { return cast<f, t>; });
  });
}

}  // namespace ferrite::kernel
