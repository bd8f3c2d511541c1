// The names of backends.
#include "ferrite/tensor/any_backend.hpp"

#include <fmt/format.h>

#include <charconv>

#include "ferrite/backend/cuda_device.hpp"

namespace ferrite {

namespace {

/// A name, what it stands for, and how the backend is made; `index` is that of the GPU.
struct Kind {
  std::string_view name, meaning;
  AnyBackend (*make)(int index);
};

template <class B>
AnyBackend on_cpu(int) {
  return AnyBackend(B());
}
template <class B>
AnyBackend on_gpu(int index) {
  return AnyBackend(B(index));
}

constexpr Kind kinds[] = {
    {"cpu", "the CPU", on_cpu<Cpu>},
    {"cuda", "an NVIDIA GPU", on_gpu<Cuda>},
    {"reference", "plain loops in double, to compare with", on_cpu<Reference>},
    {"lazy-cpu", "the CPU, elementwise ops fused", on_cpu<Lazy<Cpu>>},
    {"lazy-cuda", "a GPU, elementwise ops fused", on_gpu<Lazy<Cuda>>},
    {"profiled-cpu", "the CPU, every op timed", on_cpu<Profiled<Cpu>>},
    {"profiled-cuda", "a GPU, every op timed", on_gpu<Profiled<Cuda>>},
    {"parity", "the CPU, every op compared with reference", on_cpu<CpuParity>},
    {"cuda-parity", "a GPU, every op compared with the CPU", on_gpu<CudaParity>},
    {"lazy-parity", "lazy-cpu, every op compared with the CPU", on_cpu<LazyParity>},
    {"cuda-lazy-parity", "lazy-cuda, every op compared with the GPU", on_gpu<CudaLazyParity>},
};
constexpr std::string_view automatic = "auto";

[[noreturn]] void throw_unknown(std::string_view name) {
  std::string all;
  for (const Kind& kind : kinds) all += fmt::format("{}, ", kind.name);
  all += automatic;
  throw ValueError(fmt::format(
      "[backend] '{}': must be one of {}; a GPU's may end in its index, as in cuda:1", name, all));
}

bool is_on_gpu(const Kind& kind) { return kind.name.find("cuda") != std::string_view::npos; }

AnyBackend make(std::string_view name) {
  if (name == automatic) name = cuda_device_count() > 0 ? "cuda" : "cpu";
  const std::size_t colon = name.find(':');
  const std::string_view stem = name.substr(0, colon);
  for (const Kind& kind : kinds) {
    if (kind.name != stem) continue;
    int index = 0;
    if (colon != std::string_view::npos) {
      const std::string_view digits = name.substr(colon + 1);
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
      const bool whole = error == std::errc{} && end == digits.data() + digits.size();
      if (!is_on_gpu(kind) || !whole || index < 0) throw_unknown(name);
    }
    return kind.make(index);
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

}  // namespace ferrite
