// From CUDA text to a loaded kernel.
#include "backend_cuda/jit/kernel_images.hpp"

#include <algorithm>
#include <vector>

#include "backend_cuda/runtime/compile_times.hpp"
#include "backend_cuda/runtime/outside_capture.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/kernel/emit.hpp"
#include "kernel/compile/nvrtc.hpp"

namespace ferrite::cuda {

namespace {
constexpr std::size_t most_libraries = 1024, most_images = 4096;
}

KernelImages& KernelImages::of(DeviceContext& context) {
  static std::mutex making;
  static std::array<KernelImages*, 64> all{};
  const std::lock_guard guard(making);
  KernelImages*& images = all.at(static_cast<std::size_t>(context.index()));
  if (images == nullptr) images = new KernelImages(context);
  return *images;
}

std::shared_ptr<KernelImages::Image> KernelImages::get(const Call& call, const kernel::Kernel& kernel,
                                                       int block_dim) {
  const std::lock_guard guard(mutex_);
  ++clock_;
  const bool capturing = context_.is_capturing();
  const std::uint64_t key = kernel.id() * 2 + (block_dim > 256);
  auto found = images_.find(key);
  if (found == images_.end()) {
    const std::string& source = kernel.cuda_source(block_dim);
    if (capturing && !libraries_.contains(source))
      throw BackendError(
          "[" + std::string(kernel.name()) +
          "] is not compiled yet, which a CUDA graph cannot capture: launch it once before, or "
          "call prepare(kernel)");
    if (images_.size() >= most_images) images_.clear();  // each is found again by its text
    Library& library = load(call, source);
    found = images_.emplace(key, Known{image_of(call, library, kernel), &library}).first;
  }
  Library& origin = *found->second.origin;
  origin.used = clock_;
  origin.captured |= capturing;
  return found->second.image;
}

std::shared_ptr<KernelImages::Image> KernelImages::image_of(const Call& call, Library& library,
                                                            const kernel::Kernel& kernel) {
  const std::string entry = kernel::entry_name(kernel.function());
  std::shared_ptr<Image>& image = library.images[entry];
  if (image != nullptr) return image;
  const OutsideCapture outside;
  auto made = std::make_shared<Image>();
  for (auto& shape : made->shapes) shape = -1;
  check(cudaLibraryGetKernel(&made->kernel, library.handle, entry.c_str()), call.op());
  return image = std::move(made);
}

KernelImages::Library& KernelImages::load(const Call& call, const std::string& source) {
  if (const auto known = libraries_.find(source); known != libraries_.end()) return known->second;
  make_room();
  const OutsideCapture outside;
  const CompileScope compiling("compile kernels");
  const cudaDeviceProp& gpu = context_.properties();
  const std::string code = kernel::cached_cubin(source, gpu.major * 10 + gpu.minor, disk_);
  Library library;
  check(cudaLibraryLoadData(&library.handle, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        call.op());
  return libraries_.emplace(source, library).first->second;
}

/// Unloads the least recently used half, after all work that may still need it.
void KernelImages::make_room() {
  if (libraries_.size() < most_libraries) return;
  std::vector<std::uint64_t> ages;
  for (const auto& [source, library] : libraries_) ages.push_back(library.used);
  std::nth_element(ages.begin(), ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 2), ages.end());
  const std::uint64_t limit = ages[ages.size() / 2];
  context_.synchronize();
  std::erase_if(images_, [&](const auto& entry) {
    const Library& origin = *entry.second.origin;
    return !origin.captured && origin.used <= limit;
  });
  std::erase_if(libraries_, [&](const auto& entry) {
    const Library& library = entry.second;
    if (library.captured || library.used > limit) return false;
    static_cast<void>(cudaLibraryUnload(library.handle));
    return true;
  });
}

}  // namespace ferrite::cuda
