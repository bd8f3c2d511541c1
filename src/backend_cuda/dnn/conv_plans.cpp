// Convolutions as graphs of cuDNN's backend interface: one operation, its proposals, its execution plans.
#include "backend_cuda/dnn/conv_plans.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "backend_cuda/dnn/dnn_plan.hpp"
#include "backend_cuda/runtime/compile_times.hpp"
#include "backend_cuda/runtime/stopwatch.hpp"
#include "ferrite/core/error.hpp"

namespace ferrite::cuda {

struct ConvPlan {
  ImageLayout layout;
  DnnPlan plan;
};

namespace {

enum Uid : std::int64_t { x_id = 1, w_id, y_id, bias_id, sums_id };

/// Smaller convolutions take as long as their launches, and building ten plans (some are compiled) does not
/// pay.
constexpr double conv_worth_comparing = 1 << 22;
constexpr std::size_t most_conv_workspace = std::size_t{4} << 30;

/// The sums of a biased convolution are f32, and never written.
DnnDescriptor describe_tensor(const ConvProblem& p, Uid id, const std::int64_t (&dims)[4],
                              ImageLayout layout) {
  const bool is_virtual = id == sums_id;
  const std::int64_t c = dims[1], h = dims[2], w = dims[3];
  const std::int64_t nchw[] = {c * h * w, h * w, w, 1}, nhwc[] = {h * w * c, 1, w * c, c};
  DnnDescriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
             dnn_data_type(is_virtual   ? DType::f32
                           : id == w_id ? p.weights
                                        : p.dtype));
  if (is_virtual) tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, layout == ImageLayout::nchw ? nchw : nhwc);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, std::int64_t{id});
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16});
  check(tensor.finalize() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM, "conv2d");
  return tensor;
}

/// Where the parts of an operation go, by kind.
struct Attributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};
constexpr Attributes attributes_of[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};

/// y = sums + bias, in f32 and rounded once; the operation, last in a list of what it is made of.
std::vector<DnnDescriptor> describe_bias(const ConvProblem& p, ImageLayout layout, const DnnDescriptor& sums,
                                         const DnnDescriptor& y) {
  std::vector<DnnDescriptor> parts;
  parts.push_back(describe_tensor(p, bias_id, {1, p.y[1], 1, 1}, layout));
  DnnDescriptor& add = parts.emplace_back(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD);
  add.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  if (!add.finalize()) return {};
  DnnDescriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sums);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, parts[0]);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (!operation.finalize()) return {};
  parts.push_back(std::move(operation));
  return parts;
}

/// The operation graph, last in a list of the descriptors it is made of; nothing if cuDNN refuses it.
DnnParts describe(cudnnHandle_t handle, const ConvProblem& p, ImageLayout layout) {
  const bool is_double = p.dtype == DType::f64;
  DnnDescriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2});
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
                  is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION);
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, p.padding);
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, p.padding);
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, p.dilation);
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, p.stride);
  if (!convolution.finalize()) return nullptr;

  DnnDescriptor x = describe_tensor(p, x_id, p.x, layout), w = describe_tensor(p, w_id, p.w, layout),
                y = describe_tensor(p, y_id, p.y, layout), sums = describe_tensor(p, sums_id, p.y, layout);
  const Attributes& names = attributes_of[static_cast<int>(p.kind)];
  DnnDescriptor operation(names.operation);
  operation.set(names.x, x);
  operation.set(names.w, w);
  operation.set(names.y, p.biased ? sums : y);
  operation.set(names.convolution, convolution);
  if (is_double) {
    operation.set(names.alpha, CUDNN_TYPE_DOUBLE, 1.0);
    operation.set(names.beta, CUDNN_TYPE_DOUBLE, 0.0);
  } else {
    operation.set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f);
    operation.set(names.beta, CUDNN_TYPE_FLOAT, 0.0f);
  }
  if (!operation.finalize()) return nullptr;
  auto parts = std::make_shared<std::vector<DnnDescriptor>>();
  std::vector<cudnnBackendDescriptor_t> operations{operation.get()};
  if (p.biased) {
    *parts = describe_bias(p, layout, sums, y);
    if (parts->empty()) return nullptr;
    operations.push_back(parts->back().get());
  }
  DnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
            std::span<const cudnnBackendDescriptor_t>(operations));
  if (!graph.finalize()) return nullptr;
  for (DnnDescriptor* part : {&convolution, &x, &w, &y, &sums, &operation, &graph})
    parts->push_back(std::move(*part));
  return parts;
}

bool is_wanted(const ConvProblem& p, std::span<const cudnnBackendNumericalNote_t> notes) {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  if (has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) || has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) ||
      has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION))
    return false;
  // Large Winograd tiles lose some three decimal digits.
  if (has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6) || has(CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13))
    return false;
  return p.dtype != DType::f32 || p.tf32 || !has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

struct Proposal {
  ImageLayout layout;
  DnnParts graph;
  std::shared_ptr<DnnDescriptor> config;
  std::string name;  // layout, engine and its settings
};

/// Appends up to `most` proposals of one heuristic.
void propose(const ConvProblem& p, ImageLayout layout, const DnnParts& graph, cudnnBackendHeurMode_t mode,
             std::size_t most, std::vector<Proposal>& proposals) {
  DnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph->back());
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (!heuristic.finalize()) return;
  constexpr std::int64_t most_asked = 256;  // those with tensor cores come first, wanted or not
  std::size_t taken = 0;
  for (DnnDescriptor& config :
       heuristic.list(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, most_asked)) {
    const auto engines = config.list(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1);
    if (engines.empty()) continue;
    if (!is_wanted(p, engines[0].list<cudnnBackendNumericalNote_t>(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                                   CUDNN_TYPE_NUMERICAL_NOTE,
                                                                   CUDNN_NUMERICAL_NOTE_TYPE_COUNT)))
      continue;
    std::string name =
        fmt::format("{}/{}", layout == ImageLayout::nchw ? "nchw" : "nhwc",
                    engines[0].get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64));
    for (const DnnDescriptor& knob : config.list(
             CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, CUDNN_KNOB_TYPE_COUNTS))
      name += fmt::format(",{}={}",
                          static_cast<int>(knob.get<cudnnBackendKnobType_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                                                            CUDNN_TYPE_KNOB_TYPE)),
                          knob.get<std::int64_t>(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64));
    const auto same = [&](const Proposal& other) { return other.name == name; };
    if (std::any_of(proposals.begin(), proposals.end(), same)) continue;
    proposals.push_back({layout, graph, std::make_shared<DnnDescriptor>(std::move(config)), std::move(name)});
    if (++taken == most) return;
  }
}

std::vector<Proposal> propose(Libraries& libraries, const ConvProblem& p, bool all) {
  const Libraries::Dnn dnn(libraries);
  std::vector<Proposal> proposals;
  if (const DnnParts graph = describe(dnn.handle(), p, ImageLayout::nchw)) {
    propose(p, ImageLayout::nchw, graph, CUDNN_HEUR_MODE_A, 16, proposals);
    propose(p, ImageLayout::nchw, graph, CUDNN_HEUR_MODE_FALLBACK, 16, proposals);
  }
  // Tensor cores need channels last, and so do the engines that add a bias; without them that layout only
  // costs copies.
  const bool tensor_cores = size_of(p.dtype) == 2 || p.tf32;
  if (p.biased || (all && tensor_cores)) {
    if (const DnnParts graph = describe(dnn.handle(), p, ImageLayout::nhwc))
      propose(p, ImageLayout::nhwc, graph, CUDNN_HEUR_MODE_A, 6, proposals);
  }
  return proposals;
}

/// Nothing if the engine turns out not to take the problem.
std::shared_ptr<const ConvPlan> build(Libraries& libraries, const Proposal& proposal) {
  auto plan = build_plan(libraries, proposal.graph, *proposal.config, most_conv_workspace);
  return plan ? std::make_shared<ConvPlan>(ConvPlan{proposal.layout, std::move(*plan)}) : nullptr;
}

std::string text_of(const ConvProblem& p) {
  static constexpr std::string_view kinds[] = {"forward", "input gradient", "weight gradient"};
  return fmt::format("conv2d {}{} {}{}{} x {} w {} stride {} padding {} dilation {}",
                     kinds[static_cast<int>(p.kind)], p.biased ? " with bias" : "", to_string(p.dtype),
                     p.tf32 ? " tf32" : "",
                     p.weights == p.dtype ? "" : fmt::format(" to {}", to_string(p.weights)), p.x, p.w,
                     p.stride, p.padding, p.dilation);
}

double work_of(const ConvProblem& p) {
  double work = 1;
  for (const std::int64_t extent : p.y) work *= static_cast<double>(extent);
  for (const std::int64_t extent : {p.w[1], p.w[2], p.w[3]}) work *= static_cast<double>(extent);
  return work;
}

/// The first proposal that works: `preferred`, or else by the order of the heuristic.
std::shared_ptr<const ConvPlan> build_first(Libraries& libraries, std::span<const Proposal> proposals,
                                            std::optional<std::size_t> preferred) {
  if (preferred) {
    if (auto plan = build(libraries, proposals[*preferred])) return plan;
  }
  for (const Proposal& proposal : proposals) {
    if (auto plan = build(libraries, proposal)) return plan;
  }
  return nullptr;
}

}  // namespace

ConvPlans::Entry ConvPlans::choose(Libraries& libraries, const Call& call, const ConvProblem& problem,
                                   const Run& run) {
  const bool compares = libraries.tuner().compares() && work_of(problem) >= conv_worth_comparing;
  const std::vector<Proposal> proposals = propose(libraries, problem, compares);
  if (!compares) return {build_first(libraries, proposals, {}), true};
  std::vector<std::string> names;
  for (const Proposal& proposal : proposals) names.push_back(proposal.name);
  const std::string text = text_of(problem);
  if (call.context().is_capturing()) {
    const auto choice = libraries.tuner().recall(text, names);
    return {build_first(libraries, proposals, choice), choice.has_value()};
  }
  std::vector<std::shared_ptr<const ConvPlan>> built(proposals.size());  // compiling one takes up to seconds
  const auto choice = libraries.tuner().choose(text, names, [&](std::size_t i) {
    try {
      if (!built[i]) built[i] = build(libraries, proposals[i]);
      if (built[i]) return median_seconds(call.context(), [&] { run(*built[i]); });
    } catch (const Error&) {  // refused at launch, or no memory to try it
      static_cast<void>(cudaGetLastError());
    }
    return std::numeric_limits<double>::infinity();
  });
  if (choice && built[*choice]) return {built[*choice], true};
  return {build_first(libraries, proposals, choice), true};
}

std::shared_ptr<const ConvPlan> ConvPlans::get(Libraries& libraries, const Call& call,
                                               const ConvProblem& problem, const Run& run) {
  const auto known = [&]() -> std::optional<Entry> {
    const std::lock_guard guard(mutex_);
    const auto found = plans_.find(problem);
    return found == plans_.end() ? std::nullopt : std::optional(found->second);
  }();
  if (known && (known->is_final || call.context().is_capturing())) return known->plan;
  const Entry entry = [&] {
    const CompileScope compiling("plan " + text_of(problem));
    return choose(libraries, call, problem, run);
  }();
  const std::lock_guard guard(mutex_);
  auto [place, is_new] = plans_.try_emplace(problem, entry);
  if (!is_new && !place->second.is_final) {
    retired_.push_back(std::move(place->second.plan));
    place->second = entry;
  }
  return place->second.plan;
}

ImageLayout layout_of(const ConvPlan& plan) { return plan.layout; }

void execute(Libraries& libraries, const Call& call, const ConvPlan& plan, const Array& x, const Array& w,
             const Array& y, const Array& bias) {
  const std::int64_t ids[] = {x_id, w_id, y_id, bias_id};
  void* const pointers[] = {x.data<void>(), w.data<void>(), y.data<void>(),
                            bias.defined() ? bias.data<void>() : nullptr};
  const std::size_t count = bias.defined() ? 4 : 3;
  execute(libraries, call, plan.plan, std::span(ids, count), std::span(pointers, count));
}

}  // namespace ferrite::cuda
