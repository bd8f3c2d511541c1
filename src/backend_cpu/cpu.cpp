// The Cpu backend's memory.
#include "ferrite/backend/cpu.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "backend_cpu/kit/host_array.hpp"
#include "backend_cpu/linalg/lapack.hpp"
#include "ferrite/backend/concept.hpp"
#include "ferrite/core/isa.hpp"
#include "ferrite/core/thread_pool.hpp"
#include "ferrite/ops/copy.hpp"

namespace ferrite {

static_assert(check_backend<Cpu>());

namespace {

/// Host memory as a dense array; the caller still owns it.
Array borrowed(const void* data, const Meta& meta) {
  auto buffer = std::make_shared<Buffer>(const_cast<void*>(data), meta.bytes(), Device{});
  return {std::move(buffer), Layout::contiguous(meta.shape), meta.dtype};
}

}  // namespace

Array Cpu::allocate(const Meta& meta, std::string_view op) { return allocate_on_host(meta, op); }

void Cpu::copy_from_host(const Array& array, const void* source) {
  const Array host = borrowed(source, array.meta());
  const Array* in[] = {&host};
  Array out = array;
  run(*this, op::Copy{array.dtype()}, Ins(in, 1), Outs(&out, 1));
}

void Cpu::copy_to_host(const Array& array, void* target) {
  Array host = borrowed(target, array.meta());
  const Array* in[] = {&array};
  run(*this, op::Copy{array.dtype()}, Ins(in, 1), Outs(&host, 1));
}

Products Cpu::default_products() {
  static const Products products = [] {
    const char* const given = std::getenv("FERRITE_PRODUCTS");
    const std::string_view name = given && *given ? given : "reproducible";
    if (name == "reproducible") return Products::reproducible;
    if (name == "openblas") return Products::openblas;
    if (name == "fastest") return Products::fastest;
    throw ValueError(
        fmt::format("[cpu] FERRITE_PRODUCTS={}: must be reproducible, openblas or fastest", name));
  }();
  return products;
}

MemoryStats Cpu::memory_stats() const { return host_allocator().stats(); }

std::string Cpu::describe() const {
  const int threads = num_threads();
  std::string_view products;
  if (products_ != Products::reproducible)
    products = !cpu::has_lapack()               ? ", products its own: no OpenBLAS found"
               : products_ == Products::fastest ? ", products by the faster of two"
                                                : ", products by OpenBLAS";
  return fmt::format("cpu ({}, {} thread{}{})", isas()[chosen_isa()].name, threads, threads == 1 ? "" : "s",
                     products);
}

}  // namespace ferrite
