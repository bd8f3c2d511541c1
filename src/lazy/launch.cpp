// throwaway engine
#include "ferrite/core/error.hpp"
#include "ferrite/kernel/interpreter.hpp"
#include "lazy/fused_kernel.hpp"
namespace ferrite::lazy {
namespace {
template <class F>
void visit(kernel::ScalarType t, F&& f) {
  using enum kernel::ScalarType;
  switch (t) {
    case f32:
      return f(float{});
    case f64:
      return f(double{});
    case f16:
      return f(Half{});
    case bf16:
      return f(BFloat16{});
    case i32:
      return f(std::int32_t{});
    case i64:
      return f(std::int64_t{});
    case u8:
      return f(std::uint8_t{});
    default:
      return f(bool{});
  }
}
template <class F>
void each(const kernel::ArrayArgument& a, int rank, F&& f) {
  std::int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= a.shape[i];
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t r = i, o = 0;
    for (int k = rank - 1; k >= 0; --k) {
      o += r % a.shape[k] * a.strides[k];
      r /= a.shape[k];
    }
    f(i, o);
  }
}
}  // namespace
void FusedKernel::launch(Device, const Shape& grid, std::span<const kernel::ArrayArgument> arrays,
                         std::span<const ScalarArgument> scalars) {
  ++launches;
  const kernel::Function& k = module.kernels[0];
  std::vector<kernel::Value> values;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto type = k.variables[i].type;
    std::vector<std::int64_t> shape(arrays[i].shape, arrays[i].shape + type.dims);
    auto& v = values.emplace_back(kernel::array_value(module, type, shape));
    visit(type.scalar, [&]<class T>(T) {
      each(arrays[i], type.dims, [&](std::int64_t at, std::int64_t o) {
        const T x = static_cast<const T*>(arrays[i].data)[o];
        v.numbers[at] = kernel::is_float(type.scalar) ? kernel::from_real(convert<double>(x))
                                                      : kernel::from_integer(convert<std::int64_t>(x));
      });
    });
  }
  for (const auto& s : scalars) {
    kernel::Value v;
    v.type = kernel::Type::of(s.type);
    v.numbers = {s.value};
    values.push_back(v);
  }
  std::vector<std::int64_t> dim(grid.begin(), grid.end());
  kernel::interpret(module, k, dim, values);
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto type = k.variables[i].type;
    if (k.variables[i].name[0] == 'x') continue;
    visit(type.scalar, [&]<class T>(T) {
      each(arrays[i], type.dims, [&](std::int64_t at, std::int64_t o) {
        static_cast<T*>(arrays[i].data)[o] = kernel::is_float(type.scalar)
                                                 ? convert<T>(values[i].numbers[at].real)
                                                 : convert<T>(values[i].numbers[at].integer);
      });
    });
  }
}
}  // namespace ferrite::lazy
