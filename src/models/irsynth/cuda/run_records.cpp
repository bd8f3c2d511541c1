// Synthetic kernels on a GPU: modules of many, with their arguments in one copy, all launched before waiting
// for the first result. One thread at a time uses the GPU, while the others compile.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <list>
#include <mutex>

#include "backend_cuda/jit/library.hpp"
#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/models/irsynth/record.hpp"
#include "models/irsynth/compile.hpp"
#include "models/irsynth/memory.hpp"

namespace ferrite::irsynth {

namespace {

constexpr const char* what = "irsynth";

/// A loaded module.
class Library {
 public:
  explicit Library(const std::string& code) {
    cuda::check(cudaLibraryLoadData(&handle_, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0), what);
  }
  ~Library() { static_cast<void>(cudaLibraryUnload(handle_)); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  cudaKernel_t kernel(const std::string& name) const {
    cudaKernel_t found = nullptr;
    cuda::check(cudaLibraryGetKernel(&found, handle_, name.c_str()), what);
    return found;
  }

 private:
  cudaLibrary_t handle_ = nullptr;
};

/// The arrays of many launches, one after the other on the GPU and on the host.
class Arena {
 public:
  std::size_t place(std::vector<std::byte>& bytes) {
    const std::size_t at = (host_.size() + 255) / 256 * 256;
    host_.resize(at + bytes.size());
    std::memcpy(host_.data() + at, bytes.data(), bytes.size());
    return at;
  }
  std::byte* upload(cuda::DeviceContext& context) {
    buffer_ = context.allocate(std::max<std::size_t>(host_.size(), 1));
    context.copy_from_host(buffer_->data(), host_.data(), host_.size());
    return static_cast<std::byte*>(buffer_->data());
  }
  void download(cuda::DeviceContext& context) {
    context.copy_to_host(host_.data(), buffer_->data(), host_.size());
  }
  const std::byte* at(std::size_t place) const { return host_.data() + place; }

 private:
  std::vector<std::byte> host_;
  std::shared_ptr<Buffer> buffer_;
};

void launch(cuda::DeviceContext& context, cudaKernel_t kernel, const Program& program, Memory& memory) {
  kernel::LaunchArgument grid;
  for (std::size_t axis = 0; axis < program.grid.size(); ++axis) {
    grid.shape[axis] = static_cast<std::int32_t>(program.grid[axis]);
    grid.size *= grid.shape[axis];
  }
  grid.block_dim = program.block_dim;
  std::vector<void*> arguments{&grid};
  for (std::size_t k = 0; k < program.arguments.size(); ++k) arguments.push_back(memory.arguments()[k]);
  const auto blocks = static_cast<unsigned>((grid.size + grid.block_dim - 1) / grid.block_dim);
  cuda::check(
      cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(blocks),
                       dim3(static_cast<unsigned>(grid.block_dim)), arguments.data(), 0, context.stream()),
      what);
}

void run_module(cuda::DeviceContext& context, const std::string& code, std::span<Record> records) {
  std::list<Memory> memories;
  std::vector<std::vector<std::size_t>> places;
  Arena arena;
  for (Record& r : records) {
    Memory& memory = memories.emplace_back(r.program.module, r.inputs);
    std::vector<std::size_t>& at = places.emplace_back(r.inputs.size());
    for (std::size_t k = 0; k < at.size(); ++k)
      if (r.inputs[k].type.is_array()) at[k] = arena.place(memory.bytes(k));
  }
  auto memory = memories.begin();
  {
    static std::mutex in_use;
    const std::lock_guard guard(in_use);
    const Library library(code);
    std::byte* const base = arena.upload(context);
    for (std::size_t i = 0; i < records.size(); ++i, ++memory) {
      if (!records[i].failure.empty()) continue;
      for (std::size_t k = 0; k < places[i].size(); ++k) memory->array(k).data = base + places[i][k];
      launch(context, library.kernel(fmt::format("record{}_entry", i)), records[i].program, *memory);
    }
    arena.download(context);  // waits for all of them
  }
  memory = memories.begin();
  for (std::size_t i = 0; i < records.size(); ++i, ++memory) {
    Record& r = records[i];
    if (!r.failure.empty()) continue;
    for (std::size_t k = 0; k < places[i].size(); ++k)
      if (r.inputs[k].type.is_array())
        std::memcpy(memory->bytes(k).data(), arena.at(places[i][k]), memory->bytes(k).size());
    const double apart = roundings_between(r.outputs, memory->values());
    if (apart <= parity_roundings)
      r.checks.gpu = context.properties().name;
    else
      r.failure = fmt::format("the GPU's outputs are {} roundings from the interpreter's", apart);
  }
}

}  // namespace

void run_records_on_gpu(const Config& given, std::span<Record> records) {
  cuda::DeviceContext& context = cuda::DeviceContext::of(given.gpu);
  Config config = given;
  config.architecture = context.properties().major * 10 + context.properties().minor;
  for_each_module(records, [&](std::span<Record> part) {
    const cuda::DeviceGuard guard(context.index());
    compile_module(config, part, Code::ptx, Texts::backward);  // which are not run here
    run_module(context, compile_module(config, part, Code::cubin, Texts::forward), part);
  });
}

}  // namespace ferrite::irsynth
