#include "models/pfn/loaded_network.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "core/hash.hpp"
#include "io/shared_files.hpp"

namespace ferrite::pfn {

namespace {

std::string fingerprint_of(const Config& config, const NamedTensors& weights) {
  std::uint64_t hash = hash_text(config.to_json());
  for (const auto& [name, tensor] : weights) {
    hash = hash_text(name, hash);
    hash = hash_bytes(tensor.bytes(), hash);
  }
  return fmt::format("{:016x}", hash);
}

std::string name_of_weights(Task task) { return fmt::format("{}.safetensors", to_string(task)); }

/// The file that is meant, which a folder has for each task.
std::filesystem::path weights_in(const std::filesystem::path& given, Task task) {
  std::error_code error;
  return std::filesystem::is_directory(given, error) ? given / name_of_weights(task) : given;
}

DType dtype_of(Precision precision, Device device) {
  if (precision == Precision::automatic) return device.kind == DeviceKind::cuda ? DType::bf16 : DType::f32;
  return precision == Precision::bf16 ? DType::bf16 : DType::f32;
}

}  // namespace

Precision precision_from_string(std::string_view name) {
  if (name == "auto") return Precision::automatic;
  if (name == "f32") return Precision::f32;
  if (name == "bf16") return Precision::bf16;
  throw ValueError(fmt::format("[pfn] precision '{}': choose auto, f32 or bf16", name));
}

void PredictorConfig::check() const {
  if (members < 1 || members > 1000)
    throw ValueError(fmt::format("[pfn] members {}: must lie between 1 and 1000", members));
  if (context_rows < 2)
    throw ValueError(fmt::format("[pfn] context_rows (--context-rows) {}: must be at least 2", context_rows));
  if (context_bytes < 0)
    throw ValueError(
        fmt::format("[pfn] context_bytes {}: must be at least 1, or 0 for a guess", context_bytes));
  if (query_rows < 0)
    throw ValueError(fmt::format("[pfn] query_rows {}: must be at least 1, or 0 for a guess", query_rows));
  if (members_together < 0)
    throw ValueError(
        fmt::format("[pfn] members_together {}: must be at least 1, or 0 for a guess", members_together));
  if (!(temperature > 0 && std::isfinite(temperature)))
    throw ValueError(fmt::format("[pfn] temperature {}: must be above 0 and finite", temperature));
}

std::filesystem::path default_weights(Task task) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (const char* const given = std::getenv("FERRITE_PFN_WEIGHTS"); given && *given) {
    const fs::path path = weights_in(given, task);
    if (fs::exists(path, error)) return path;
    throw ValueError(
        fmt::format("[pfn] FERRITE_PFN_WEIGHTS: {} is not there: name a file of weights, or a folder with {}",
                    path.string(), name_of_weights(task)));
  }
  const fs::path path = shared_file("pfn/" + name_of_weights(task));
  if (fs::exists(path, error)) return path;
  throw ValueError(fmt::format(
      "[pfn] no weights for {}: {} is not there; give the path of weights, name them in the environment "
      "variable FERRITE_PFN_WEIGHTS, or train some with `ferrite pfn train --task {}`",
      to_string(task), path.string(), to_string(task)));
}

namespace detail {

std::shared_ptr<LoadedNetwork> load_network(const PredictorConfig& config, Task task) {
  const std::filesystem::path path =
      config.weights.empty() ? default_weights(task) : weights_in(config.weights, task);
  const Config sizes = read_config(path);
  if (sizes.task != task)
    throw ValueError(fmt::format(
        "[pfn] {}: the weights are for {} and {} is asked for; give weights of `ferrite pfn train --task {}`",
        path.string(), to_string(sizes.task), to_string(task), to_string(task)));
  AnyBackend backend(config.backend);
  const NamedTensors weights = train::read_weights(path);  // once, for the network and its fingerprint
  Rng rng(0);
  Network<AnyBackend> network(backend, sizes.with_dtype(dtype_of(config.precision, backend.device())), rng);
  network.load_state(weights);
  return std::shared_ptr<LoadedNetwork>(new LoadedNetwork{backend,
                                                          std::move(network),
                                                          path.string(),
                                                          fingerprint_of(sizes, weights),
                                                          config.records ? Recording::yes : Recording::no,
                                                          {},
                                                          {}});
}

SharedContext LoadedNetwork::read(const TrainRows& rows) {
  const std::scoped_lock lock(one_pass);
  const auto is_free = [](const SharedContext& context) { return context.use_count() == 1; };
  for (const SharedContext& context : contexts)
    if (is_free(context) && context->can_read(rows)) {
      context->read(rows);
      return context;
    }
  std::erase_if(contexts, is_free);  // of other sizes: they would only take memory
  auto made = std::make_shared<RecordedContext<AnyBackend>>(
      network, rows, contexts.size() < most_recorded ? recording : Recording::no);
  if (made->can_read(rows)) contexts.push_back(made);
  return made;
}

}  // namespace detail
}  // namespace ferrite::pfn
