// Writes safetensors: the header from what is known about all tensors, then one tensor after the other.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "ferrite/core/error.hpp"
#include "ferrite/io/atomic_file.hpp"
#include "ferrite/io/safetensors.hpp"
#include "io/format.hpp"
#include "io/safetensors_format.hpp"

namespace ferrite {
namespace {

using namespace io_detail;

using Tensors = std::map<std::string, LazyTensor, std::less<>>;

const FormatDType* find_format(DType dtype) {
  return std::find_if(std::begin(format_dtypes), std::end(format_dtypes),
                      [&](const FormatDType& f) { return f.dtype == dtype; });
}

std::vector<Tensors::const_iterator> in_file_order(const Tensors& tensors) {
  std::vector<Tensors::const_iterator> order;
  for (auto it = tensors.begin(); it != tensors.end(); ++it) order.push_back(it);
  std::stable_sort(order.begin(), order.end(), [](auto a, auto b) {
    return find_format(a->second.meta.dtype) < find_format(b->second.meta.dtype);
  });
  return order;
}

std::string json_string(std::string_view what, const std::string& text) {
  if (find_invalid_utf8(text) != std::string_view::npos) {
    throw ValueError(fmt::format("[write_safetensors] {} {}: must be UTF-8", what, in_quotes(text)));
  }
  return nlohmann::json(text).dump();
}

std::string header_of(const LazySafeTensors& file, std::span<const Tensors::const_iterator> order) {
  std::string header = "{";
  if (!file.metadata.empty()) {
    header += fmt::format("\"{}\":{{", metadata_key);
    for (const auto& [key, value] : file.metadata) {
      header += json_string("metadata key", key) + ":" + json_string("metadata value", value) + ",";
    }
    header.back() = '}';
    header += ',';
  }
  std::size_t offset = 0;
  for (const auto& it : order) {
    const auto& [name, tensor] = *it;
    if (name == metadata_key) {
      throw ValueError("[write_safetensors] tensor \"__metadata__\": the format keeps this name for itself");
    }
    const std::size_t end = offset + tensor.meta.bytes();
    header += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}},)",
                          json_string("tensor name", name), find_format(tensor.meta.dtype)->name,
                          fmt::join(tensor.meta.shape.begin(), tensor.meta.shape.end(), ","), offset, end);
    offset = end;
  }
  if (header.size() > 1) header.pop_back();
  header += '}';
  header.resize((header.size() + 7) / 8 * 8,
                ' ');  // keeps the data 8-byte aligned, as the Python package does
  return header;
}

HostTensor load(const std::string& name, const LazyTensor& tensor) {
  HostTensor loaded = tensor.load();
  const Meta meta{loaded.shape(), loaded.dtype()};
  if (meta != tensor.meta) {
    throw ValueError(fmt::format("[write_safetensors] tensor {}: is {} and was announced as {}",
                                 in_quotes(name), to_string(meta), to_string(tensor.meta)));
  }
  return loaded;
}

}  // namespace

void stream_safetensors(const std::filesystem::path& path, const LazySafeTensors& file,
                        const BytesWritten& progress) {
  const auto order = in_file_order(file.tensors);
  const std::string header = header_of(file, order);
  if (header.size() > max_header) {
    throw ValueError(fmt::format("[write_safetensors] {}, header of {} bytes: at most {} are allowed",
                                 path.string(), header.size(), max_header));
  }
  std::size_t total = 0, done = 0;
  for (const auto& it : order) total += it->second.meta.bytes();

  AtomicFile out(path);
  std::string length;
  append(length, static_cast<std::uint64_t>(header.size()));
  out.write(length + header);
  for (const auto& it : order) {
    out.write(load(it->first, it->second).bytes());
    done += it->second.meta.bytes();
    if (progress) progress(static_cast<std::int64_t>(done), static_cast<std::int64_t>(total));
  }
  out.commit();
}

void write_safetensors(const std::filesystem::path& path, const SafeTensors& file) {
  LazySafeTensors lazy{file.metadata, {}};
  for (const auto& [name, tensor] : file.tensors)
    lazy.tensors.emplace(name,
                         LazyTensor{{tensor.shape(), tensor.dtype()}, [&tensor = tensor] { return tensor; }});
  stream_safetensors(path, lazy);
}

}  // namespace ferrite
