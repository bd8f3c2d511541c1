// The names of backends.
#include "ferrite/stacks/any_backend.hpp"

#include <fmt/format.h>

#include "core/to_number.hpp"
#include "ferrite/backend/cuda_device.hpp"

namespace ferrite {

namespace {

/// A name, what it stands for, and how the backend is made; `index` is that of the GPU.
struct Kind {
  std::string_view name, meaning;
  bool on_gpu;
  AnyBackend (*make)(int index);
};

template <class B>
constexpr Kind kind(std::string_view name, std::string_view meaning) {
  static_assert(NamedStacks::contains<B>);
  if constexpr (std::constructible_from<B, int>)
    return {name, meaning, true, [](int index) { return AnyBackend(B(index)); }};
  else
    return {name, meaning, false, [](int) { return AnyBackend(B()); }};
}

/// The CPU with products by another engine.
template <Products products>
constexpr Kind cpu_with(std::string_view name, std::string_view meaning) {
  return {name, meaning, false, [](int) {
            Cpu cpu;
            cpu.set_products(products);
            return AnyBackend(cpu);
          }};
}

constexpr Kind kinds[] = {
    kind<Cpu>("cpu", "the CPU"),
    cpu_with<Products::openblas>("cpu-openblas", "the CPU, matrix products by OpenBLAS"),
    cpu_with<Products::fastest>("cpu-fastest", "the CPU, matrix products by the faster of two"),
    kind<Cuda>("cuda", "an NVIDIA GPU"),
    kind<Reference>("reference", "plain loops in double, to compare with"),
    kind<Lazy<Cpu>>("lazy-cpu", "the CPU, elementwise ops fused"),
    kind<Lazy<Cuda>>("lazy-cuda", "a GPU, elementwise ops fused"),
    kind<Profiled<Cpu>>("profiled-cpu", "the CPU, every op timed"),
    kind<Profiled<Cuda>>("profiled-cuda", "a GPU, every op timed"),
    kind<CpuParity>("parity", "the CPU, every op compared with reference"),
    kind<CudaParity>("cuda-parity", "a GPU, every op compared with the CPU"),
    kind<LazyParity>("lazy-parity", "lazy-cpu, every op compared with the CPU"),
    kind<CudaLazyParity>("cuda-lazy-parity", "lazy-cuda, every op compared with the GPU"),
};
constexpr std::size_t settings_of_cpu = 2;  // cpu_with above
static_assert(std::size(kinds) == NamedStacks::size + settings_of_cpu,
              "a stack of backend/compiled.hpp lacks a name");
constexpr std::string_view automatic = "auto";

[[noreturn]] void throw_unknown(std::string_view name) {
  std::string all;
  for (const Kind& kind : kinds) all += fmt::format("{}, ", kind.name);
  all += automatic;
  throw ValueError(fmt::format(
      "[backend] '{}': must be one of {}; a GPU's may end in its index, as in cuda:1", name, all));
}

AnyBackend make(std::string_view name) {
  if (name == automatic) name = AnyBackend::automatic_name();
  const std::size_t colon = name.find(':');
  const std::string_view stem = name.substr(0, colon);
  for (const Kind& kind : kinds) {
    if (kind.name != stem) continue;
    if (colon == std::string_view::npos) return kind.make(0);
    const auto index = to_number<int>(name.substr(colon + 1));
    if (!kind.on_gpu || !index || *index < 0) throw_unknown(name);
    return kind.make(*index);
  }
  throw_unknown(name);
}

}  // namespace

AnyBackend::AnyBackend(std::string_view name) : AnyBackend(make(name)) {}

std::vector<std::pair<std::string, std::string>> AnyBackend::names() {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Kind& kind : kinds) all.emplace_back(kind.name, kind.meaning);
  all.emplace_back(automatic, "the first GPU, or the CPU");
  return all;
}

std::string_view AnyBackend::automatic_name() { return cuda_device_count() > 0 ? "cuda" : "cpu"; }

void detail::throw_no_kernel(std::string_view op, const std::string& backend) {
  throw BackendError(
      fmt::format("[{}] {} has no kernel for it: ask accepts() first, or evaluate the op, which may "
                  "compose it of others",
                  op, backend));
}

}  // namespace ferrite
