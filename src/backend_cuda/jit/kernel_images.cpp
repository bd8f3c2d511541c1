// From CUDA text to a loaded kernel.
#include "backend_cuda/jit/kernel_images.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backend_cuda/runtime/compile_times.hpp"
#include "backend_cuda/runtime/outside_capture.hpp"
#include "ferrite/core/error.hpp"
#include "ferrite/kernel/emit.hpp"

namespace ferrite::cuda {

namespace {
constexpr std::size_t most_libraries = 1024, most_images = 4096;
constexpr std::uint64_t raw_keys = std::uint64_t{1} << 63;  // apart from those of kernel::Kernel

bool includes_files(const std::vector<std::string>& options) {
  return std::any_of(options.begin(), options.end(), [](const std::string& option) {
    return option.starts_with("-include") || option.starts_with("--pre-include");
  });
}

/// Nothing if the driver is older than CUDA 12.4.
std::optional<std::vector<std::size_t>> parameters_of(cudaKernel_t kernel) {
  std::vector<std::size_t> sizes;
  for (std::size_t offset = 0, size = 0;; sizes.push_back(size)) {
    const cudaError_t status =
        cudaFuncGetParamInfo(reinterpret_cast<const void*>(kernel), sizes.size(), &offset, &size);
    if (status == cudaSuccess) continue;
    static_cast<void>(cudaGetLastError());
    if (status == cudaErrorInvalidValue) return sizes;  // beyond the last
    return std::nullopt;
  }
}

}  // namespace

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
  return find(call, kernel.id() * 2 + (block_dim > 256), kernel.name(), [&] {
    return Text{kernel.cuda_source(block_dim), kernel::entry_name(kernel.function()),
                [this, &kernel, block_dim](int architecture) {
                  return kernel::cached_cubin(kernel.cuda_source(block_dim), architecture, disk_);
                }};
  });
}

std::shared_ptr<KernelImages::Image> KernelImages::get_raw(const Call& call, const std::string& name,
                                                           std::uint64_t id,
                                                           const std::function<kernel::RawText()>& text_of) {
  auto image = find(call, raw_keys + id, name, [&] {
    const kernel::RawText text = text_of();
    // What a file that it includes says is not known here: such a text is compiled for each RawKernel.
    const bool is_whole = text.source.find("#include") == std::string::npos && !includes_files(text.options);
    return Text{
        fmt::format("raw {} {}\n{}", is_whole ? 0 : id + 1, fmt::join(text.options, "\n"), text.source), name,
        [this, text, is_whole](int architecture) {
          return is_whole ? kernel::cached_cubin(text, architecture, disk_)
                          : kernel::raw_cubin(text, architecture);
        }};
  });
  const std::lock_guard guard(mutex_);
  if (!image->parameters) image->parameters = parameters_of(image->kernel);
  return image;
}

std::shared_ptr<KernelImages::Image> KernelImages::find(const Call& call, std::uint64_t key,
                                                        std::string_view name,
                                                        const std::function<Text()>& text_of) {
  const std::lock_guard guard(mutex_);
  ++clock_;
  const bool capturing = context_.is_capturing();
  auto found = images_.find(key);
  if (found == images_.end()) {
    const Text text = text_of();
    if (capturing && !libraries_.contains(text.identity))
      throw BackendError(
          "[" + std::string(name) +
          "] is not compiled yet, which a CUDA graph cannot capture: launch it once before, or "
          "prepare it");
    if (images_.size() >= most_images) images_.clear();  // each is found again by its text
    Library& library = load(call, text);
    found = images_.emplace(key, Known{image_of(call, library, text.entry), &library}).first;
  }
  Library& origin = *found->second.origin;
  origin.used = clock_;
  origin.captured |= capturing;
  return found->second.image;
}

std::shared_ptr<KernelImages::Image> KernelImages::image_of(const Call& call, Library& library,
                                                            const std::string& entry) {
  std::shared_ptr<Image>& image = library.images[entry];
  if (image != nullptr) return image;
  const OutsideCapture outside;
  auto made = std::make_shared<Image>();
  for (auto& shape : made->shapes) shape = -1;
  const cudaError_t status = cudaLibraryGetKernel(&made->kernel, library.handle, entry.c_str());
  if (status == cudaErrorSymbolNotFound) {
    static_cast<void>(cudaGetLastError());
    throw ValueError(fmt::format(
        "[{}] the CUDA text has no kernel of this name: declare it as extern \"C\" __global__ void {}(...)",
        entry, entry));
  }
  check(status, call.op());
  return image = std::move(made);
}

KernelImages::Library& KernelImages::load(const Call& call, const Text& text) {
  if (const auto known = libraries_.find(text.identity); known != libraries_.end()) return known->second;
  make_room();
  const OutsideCapture outside;
  const CompileScope compiling("compile kernels");
  const cudaDeviceProp& gpu = context_.properties();
  const std::string code = text.compile(gpu.major * 10 + gpu.minor);
  Library library;
  check(cudaLibraryLoadData(&library.handle, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        call.op());
  return libraries_.emplace(text.identity, library).first->second;
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
