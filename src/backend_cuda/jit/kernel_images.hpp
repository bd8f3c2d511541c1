// User kernels on one GPU: compiled by NVRTC or read from disk, loaded once, and the launch parameters chosen
// for them.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "backend_cuda/jit/library.hpp"
#include "backend_cuda/runtime/device_context.hpp"
#include "ferrite/cuda/call.hpp"
#include "ferrite/kernel/kernel.hpp"
#include "kernel/compile/nvrtc.hpp"

namespace ferrite::cuda {

/// Threads per block, and grid elements per thread.
struct LaunchShape {
  int threads = 256;
  int items = 1;
};
/// The first is used if nothing is measured.
inline constexpr LaunchShape launch_shapes[] = {{256, 1}, {128, 1}, {256, 2}, {256, 4}, {128, 4}, {256, 8}};

class KernelImages {
 public:
  /// Made at first use and never destroyed, as the context it belongs to. Any thread.
  static KernelImages& of(DeviceContext& context);

  struct Image {
    cudaKernel_t kernel = nullptr;
    /// By the number of bits of the grid's size: an index of launch_shapes, or -1.
    std::array<std::atomic<std::int8_t>, 33> shapes;
    /// Of a raw kernel: the bytes of each parameter, where the driver knows them.
    std::optional<std::vector<std::size_t>> parameters;
  };
  /// Throws BackendError if it has to be compiled inside a capture, or if there is no NVRTC; KernelError with
  /// its log if NVRTC refuses it.
  std::shared_ptr<Image> get(const Call& call, const kernel::Kernel& kernel, int block_dim);
  /// The same for a kernel of a user's CUDA text, which is asked for only if it is not loaded yet; `id` is
  /// unique to the text and the name. Throws ValueError if the text has no kernel of this name.
  std::shared_ptr<Image> get_raw(const Call& call, const std::string& name, std::uint64_t id,
                                 const std::function<kernel::RawText()>& text);

 private:
  explicit KernelImages(DeviceContext& context)
      : context_(context), disk_(kernel::BinaryCache::from_environment()) {}

  struct Library {
    cudaLibrary_t handle = nullptr;
    std::uint64_t used = 0;  // when, in calls of get
    bool captured = false;   // a graph may launch it at any time: it stays
    std::unordered_map<std::string, std::shared_ptr<Image>> images = {};  // by the kernel's name
  };
  /// What a library is made of.
  struct Text {
    std::string identity;  // the same for everything that one library holds
    std::string entry;     // the kernel's symbol
    std::function<std::string(int architecture)> compile;
  };
  /// `text` is asked only if the key is new.
  std::shared_ptr<Image> find(const Call& call, std::uint64_t key, std::string_view name,
                              const std::function<Text()>& text);
  Library& load(const Call& call, const Text& text);
  std::shared_ptr<Image> image_of(const Call& call, Library& library, const std::string& entry);
  void make_room();

  DeviceContext& context_;
  kernel::BinaryCache disk_;
  std::mutex mutex_;
  std::uint64_t clock_ = 0;
  std::unordered_map<std::string, Library> libraries_;  // by identity
  struct Known {
    std::shared_ptr<Image> image;
    Library* origin;  // what it was loaded from
  };
  /// By kernel and size of blocks: avoids looking up the text. Kernels made in a loop from one text are many
  /// here and one there, so it is emptied from time to time.
  std::unordered_map<std::uint64_t, Known> images_;
};

}  // namespace ferrite::cuda
