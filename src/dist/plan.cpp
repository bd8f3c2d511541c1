// The rates of one GPU were measured on an H200 with GPT-2 124M (benches/results/2026-11-17-h200-gpt-steps).
#include "ferrite/dist/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ferrite/core/error.hpp"

namespace ferrite::dist {

namespace {

// Share of the peak that products and attention reach in a step, and bytes that all other kernels move for
// each token, layer and channel: 110 ms for 65,536 tokens, of which the products take 76.
constexpr double product_efficiency = 0.70, bandwidth_efficiency = 0.88, moved_bytes = 238;
// Of saved activations for each token, layer and channel: 23.2 GiB for 65,536 tokens, less the states.
constexpr double saved_bytes = 37;
// AdamW reads and writes a parameter, two moments and the gradient in 32 bits, and writes a 16-bit copy.
constexpr double updated_bytes = 30;
constexpr double master_bytes = 4, copy_bytes = 2, moment_bytes = 8, kept_gradient_bytes = 4;
// Backward is two thirds of a step's computation. The first and the last bucket are not hidden by it.
constexpr double backward_share = 2.0 / 3, hiding_share = 0.9;

template <class Facts>
const Facts& named(const std::vector<Facts>& all, const std::string& name, const char* what) {
  const auto found = std::ranges::find_if(all, [&](const Facts& facts) { return facts.name == name; });
  if (found != all.end()) return *found;
  std::string names;
  for (const Facts& facts : all) names += (names.empty() ? "" : ", ") + facts.name;
  throw ValueError(fmt::format("[dist plan] {} '{}': there are {}", what, name, names));
}

struct Nodes {
  double inside, between;  // GPUs of a node, nodes
};
Nodes nodes_of(const PlanConfig& c) {
  const auto gpus = static_cast<double>(c.gpus), most = static_cast<double>(c.gpus_per_node);
  return {std::min(gpus, most), gpus / std::min(gpus, most)};
}

/// Seconds of half an all_reduce of so many bytes: a reduce_scatter or an all_gather, by rings inside the
/// nodes and, with the part that each GPU then has, between them.
double half_of_sum(const PlanConfig& c, double bytes) {
  const LinkFacts &link = named(known_links(), c.link, "link"),
                  &network = named(known_links(), c.network, "network");
  const auto ring = [](double ranks, double size, const LinkFacts& facts) {
    return (ranks - 1) / ranks * size / facts.bandwidth + (ranks - 1) * facts.latency;
  };
  const Nodes nodes = nodes_of(c);
  return ring(nodes.inside, bytes, link) + ring(nodes.between, bytes / nodes.inside, network);
}

}  // namespace

const std::vector<GpuFacts>& known_gpus() {
  static const std::vector<GpuFacts> all = {{"a100", 312e12, 2.04e12, 80e9},
                                            {"h100", 989e12, 3.35e12, 80e9},
                                            {"h200", 989e12, 4.80e12, 141e9},
                                            {"b200", 2250e12, 8.00e12, 180e9}};
  return all;
}

const std::vector<LinkFacts>& known_links() {
  // About four fifths of the nominal rate of one direction, which NCCL's rings reach for large messages.
  static const std::vector<LinkFacts> all = {{"nvlink", 360e9, 3e-6},     {"nvlink3", 240e9, 3e-6},
                                             {"pcie5", 50e9, 5e-6},       {"pcie4", 25e9, 5e-6},
                                             {"ib", 40e9, 8e-6},          {"ib200", 20e9, 8e-6},
                                             {"ethernet100", 10e9, 3e-5}, {"ethernet10", 1e9, 5e-5}};
  return all;
}

std::string_view to_string(Sharding sharding) {
  return sharding == Sharding::zero1 ? "zero1" : "data_parallel";
}

void PlanConfig::check() const {
  model.check();
  named(known_gpus(), gpu, "gpu");
  named(known_links(), link, "link");
  named(known_links(), network, "network");
  const auto positive = [](const char* what, std::int64_t value) {
    if (value < 1) throw ValueError(fmt::format("[dist plan] {} {}: must be at least 1", what, value));
  };
  positive("gpus", gpus);
  positive("gpus_per_node", gpus_per_node);
  positive("batch", batch);
  positive("micro_batches", micro_batches);
  if (length < 1 || length > model.context)
    throw ValueError(fmt::format("[dist plan] length {}: must lie in 1 to {}, the model's context", length,
                                 model.context));
  if (gpus > gpus_per_node && gpus % gpus_per_node != 0)
    throw ValueError(
        fmt::format("[dist plan] {} GPUs in nodes of {}: must fill whole nodes", gpus, gpus_per_node));
  if (gradient_bytes != 2 && gradient_bytes != 4)
    throw ValueError(fmt::format("[dist plan] gradient_bytes {}: must be 2 or 4", gradient_bytes));
}

Plan plan_training(const PlanConfig& c) {
  c.check();
  const GpuFacts& gpu = named(known_gpus(), c.gpu, "gpu");
  const auto parameters = static_cast<double>(c.model.parameter_count()),
             layers = static_cast<double>(c.model.layers), width = static_cast<double>(c.model.dim),
             length = static_cast<double>(c.length), rows = static_cast<double>(c.batch),
             passes = static_cast<double>(c.micro_batches), gpus = static_cast<double>(c.gpus),
             tokens = rows * length * passes;
  const bool shards = c.sharding == Sharding::zero1;
  const double owned = shards ? parameters / gpus : parameters;

  Plan plan;
  // Causal attention computes half of the scores.
  const double flops_per_token = 6 * parameters + 6 * layers * width * length;
  plan.products = tokens * flops_per_token / (product_efficiency * gpu.products);
  const double bandwidth = bandwidth_efficiency * gpu.bandwidth;
  plan.elements = tokens * layers * width * moved_bytes / bandwidth;
  plan.update = owned * updated_bytes / bandwidth;
  const double computing = plan.products + plan.elements;

  const double reduced = c.gpus == 1 ? 0 : half_of_sum(c, parameters * c.gradient_bytes);
  // data_parallel gathers the sums of gradients, zero1 the weights, when the update is done.
  const double gathered =
      c.gpus == 1 ? 0 : half_of_sum(c, parameters * (shards ? copy_bytes : c.gradient_bytes));
  const double hiding = hiding_share * backward_share * computing / passes;
  const double hidden = std::min(shards ? reduced : reduced + gathered, hiding);
  plan.sent = reduced + gathered;
  plan.exposed = plan.sent - hidden;
  plan.seconds = computing + plan.update + plan.exposed;
  plan.tokens_per_second = gpus * tokens / plan.seconds;
  const double alone = computing + parameters * updated_bytes / bandwidth;
  plan.scaling = plan.tokens_per_second / (gpus * tokens / alone);
  plan.bytes = parameters * (master_bytes + copy_bytes + kept_gradient_bytes) + owned * moment_bytes +
               rows * length * layers * width * saved_bytes;
  plan.fits = plan.bytes < 0.95 * gpu.memory;
  return plan;
}

}  // namespace ferrite::dist
