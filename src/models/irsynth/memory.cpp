#include "models/irsynth/memory.hpp"

#include <cstring>

namespace ferrite::irsynth {

using kernel::ScalarType;

namespace {

/// Programs have floats of 32 and 64 bits and integers of 32.
template <class F>
auto with_scalar(ScalarType s, F&& f) {
  if (s == ScalarType::f32) return f(float{});
  if (s == ScalarType::f64) return f(double{});
  return f(std::int32_t{});
}

}  // namespace

std::vector<ScalarType> scalars_of(const kernel::Module& module, kernel::Type type) {
  if (type.kind != kernel::Type::Kind::structure)
    return std::vector<ScalarType>(static_cast<std::size_t>(type.components()), type.scalar);
  std::vector<ScalarType> all;
  for (const kernel::Variable& f : module.structs[type.structure].fields)
    for (const ScalarType s : scalars_of(module, f.type)) all.push_back(s);
  return all;
}

Memory::Memory(const kernel::Module& module, const std::vector<kernel::Value>& values)
    : module_(module), before_(values), bytes_(values.size()), arrays_(values.size()) {
  for (std::size_t k = 0; k < values.size(); ++k) {
    const kernel::Value& v = values[k];
    const auto scalars = scalars_of(module, v.type);
    for (std::size_t e = 0; e < v.numbers.size(); ++e)
      with_scalar(scalars[e % scalars.size()], [&]<class T>(T) {
        const T x =
            std::is_integral_v<T> ? static_cast<T>(v.numbers[e].integer) : static_cast<T>(v.numbers[e].real);
        const auto* raw = reinterpret_cast<const std::byte*>(&x);
        bytes_[k].insert(bytes_[k].end(), raw, raw + sizeof(T));
      });
    arrays_[k].data = bytes_[k].data();
    std::int64_t stride = 1;
    for (std::size_t axis = v.shape.size(); axis-- > 0; stride *= v.shape[axis]) {
      arrays_[k].shape[axis] = static_cast<std::int32_t>(v.shape[axis]);
      arrays_[k].strides[axis] = stride;
    }
    pointers_.push_back(v.type.is_array() ? static_cast<void*>(&arrays_[k]) : bytes_[k].data());
  }
}

std::vector<kernel::Value> Memory::values() const {
  std::vector<kernel::Value> all = before_;
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto scalars = scalars_of(module_, all[k].type);
    std::size_t at = 0;
    for (std::size_t e = 0; e < all[k].numbers.size(); ++e)
      with_scalar(scalars[e % scalars.size()], [&]<class T>(T x) {
        std::memcpy(&x, bytes_[k].data() + at, sizeof(T));
        at += sizeof(T);
        all[k].numbers[e] = std::is_integral_v<T> ? kernel::from_integer(static_cast<std::int64_t>(x))
                                                  : kernel::from_real(static_cast<double>(x));
      });
  }
  return all;
}

}  // namespace ferrite::irsynth
