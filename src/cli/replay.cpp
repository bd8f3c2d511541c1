// ferrite replay: runs the op of a replay file on a backend, compares with the outputs in the file, and
// writes results and gradients.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/replay_file.hpp"
#include "ferrite/ops/launch.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::cli {

namespace {

struct Options {
  std::string file, backend = "cpu", op, attributes, out;
  bool grad = false, json = false;
};

/// What a replay gives: the outputs, how they compare, and the gradients of the floating inputs.
struct Result {
  std::vector<HostTensor> outputs;
  std::vector<Comparison> comparisons;
  NamedTensors gradients;
  std::vector<std::string> without_gradient;
  bool agrees() const {
    return std::all_of(comparisons.begin(), comparisons.end(),
                       [](const Comparison& c) { return c.agrees(); });
  }
};

template <class B>
HostTensor to_host(B& b, const Array& x) {
  return HostTensor::make(x.dtype(), x.shape(), [&](std::span<std::byte> bytes) {
    const Array dense = detail::contiguous(b, x);
    b.copy_to_host(dense, bytes.data());
  });
}

template <class B>
Array upload(B& b, const HostTensor& x) {
  Array array = b.allocate({x.shape(), x.dtype()});
  b.copy_from_host(array, x.bytes().data());
  return array;
}

/// The tensor under the given layout, as it lay in memory when the file was written.
template <class B>
Array upload(B& b, const HostTensor& x, const Layout& layout) {
  if (layout.is_contiguous()) return upload(b, x);
  std::int64_t reach = 1;
  for (int i = 0; i < layout.shape.rank(); ++i)
    reach += std::max<std::int64_t>(layout.shape[i] - 1, 0) * std::abs(layout.strides[i]);
  Reference host;
  const Tensor<Reference> room = zeros(host, {reach}, x.dtype());
  Array view = room.primitive().with_layout(layout);
  const Array dense = upload(host, x);
  const Array* source[] = {&dense};
  host.run(op::Copy{x.dtype()}, Ins(source, 1), Outs(&view, 1));
  return upload(b, to_host(host, room.primitive())).with_layout(layout);
}

/// One op on one backend with its type erased: for every op of every backend only these are compiled.
template <class B>
struct Calls {
  using D = Autodiff<B>;
  using Primitive = typename D::Primitive;

  Primitives<B> (*evaluate)(B&, const void* op, Ins);
  Primitives<D> (*record)(D&, const void* op, Refs<Primitive>);
  /// Null where no kernel of the backend accumulates.
  void (*accumulate)(B&, const void* op, Ins, Outs, Accumulate) = nullptr;
  bool (*accepts)(const B&, const void* op, MetaSpan);
  Metas (*infer)(const void* op, MetaSpan);

  template <class Op>
  static Calls of() {
    Calls calls;
    calls.evaluate = [](B& b, const void* op, Ins in) {
      return ferrite::evaluate(b, *static_cast<const Op*>(op), in);
    };
    calls.record = [](D& d, const void* op, Refs<Primitive> in) {
      return ferrite::evaluate(d, *static_cast<const Op*>(op), in);
    };
    if constexpr (RunsAccumulating<B, Op>)
      calls.accumulate = [](B& b, const void* op, Ins in, Outs out, Accumulate mask) {
        b.run(*static_cast<const Op*>(op), in, out, mask);
      };
    calls.accepts = [](const B& b, const void* op, MetaSpan in) {
      return detail::kernel_accepts(b, *static_cast<const Op*>(op), in);
    };
    calls.infer = [](const void* op, MetaSpan in) { return static_cast<const Op*>(op)->infer(in); };
    return calls;
  }
};

/// Adds to what accumulating outputs held before: inside the kernel where the backend has one that can.
template <class B>
Primitives<B> run_accumulating(B& b, const Calls<B>& calls, const void* op, Ins in, const ReplayFile& file) {
  const Metas metas = detail::metas_of(in), results = calls.infer(op, metas);
  SmallVector<Array, 3> before;
  for (std::size_t k = 0; k < results.size(); ++k) {
    const bool adds = accumulates(file.accumulate, k);
    if (adds)
      detail::check_shape("replay", fmt::format("before{}", k), file.before[k].shape(), results[k].shape);
    before.push_back(adds ? upload(b, file.before[k]) : b.allocate(results[k]));
  }
  if (calls.accumulate && calls.accepts(b, op, metas)) {
    Primitives<B> out;
    for (Array& y : before) out.push_back(y);
    calls.accumulate(b, op, in, out, file.accumulate);
    return out;
  }
  Primitives<B> out = calls.evaluate(b, op, in);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const Array* operands[] = {&before[k], &out[k]};
    if (accumulates(file.accumulate, k))
      out[k] = evaluate(b, op::Binary{op::BinaryFn::add}, Ins(operands, 2))[0];
  }
  return out;
}

template <class B>
void run_forward(B& b, const Calls<B>& calls, const detail::ErasedOp& op, const ReplayFile& file,
                 Result& result) {
  std::vector<Array> inputs;
  std::vector<const Array*> refs;
  for (std::size_t i = 0; i < file.inputs.size(); ++i)
    inputs.push_back(upload(b, file.inputs[i], file.layouts[i]));
  for (const Array& x : inputs) refs.push_back(&x);
  const Ins in(refs.data(), refs.size());
  const auto out = file.accumulate == Accumulate::none ? calls.evaluate(b, op.op, in)
                                                       : run_accumulating(b, calls, op.op, in, file);
  for (const Array& y : out) result.outputs.push_back(to_host(b, y));
  if (file.expected.empty()) return;
  if (file.expected.size() != result.outputs.size())
    throw ShapeError(fmt::format("[replay] the file has {} outputs: {} has {}", file.expected.size(),
                                 op.name(), result.outputs.size()));
  result.comparisons =
      detail::compare_outputs({op, file.accumulate, file.inputs, file.before, result.outputs, file.expected});
}

/// Every floating input becomes a leaf; the root gradient is grad0 or ones.
template <class B>
void run_backward(Autodiff<B>& b, const Calls<B>& calls, const detail::ErasedOp& op, const ReplayFile& file,
                  Result& result) {
  using D = Autodiff<B>;
  std::vector<Tensor<D>> inputs;
  std::vector<const typename D::Primitive*> refs;
  for (std::size_t i = 0; i < file.inputs.size(); ++i) {
    const Tensor<D> x(b, b.wrap(upload(b.inner(), file.inputs[i], file.layouts[i])));
    inputs.push_back(is_floating(x.dtype()) ? parameter(x, fmt::format("in{}", i)) : x);
  }
  for (const Tensor<D>& x : inputs) refs.push_back(&x.primitive());
  const auto out = calls.record(b, op.op, Refs<typename D::Primitive>(refs.data(), refs.size()));
  const Tensor<B> root = file.root_gradient ? Tensor<B>(b.inner(), upload(b.inner(), *file.root_gradient))
                                            : full(b.inner(), out[0].layout().shape, 1, out[0].dtype());
  const Gradients<B> grads = b.backward(out[0], BackwardConfig<B>{}.with_root(cast(root, out[0].dtype())));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_floating(inputs[i].dtype())) continue;
    const Tensor<B> grad = grads.find(inputs[i]);
    if (grad.defined())
      result.gradients[fmt::format("grad_in{}", i)] = to_host(b.inner(), grad.primitive());
    else
      result.without_gradient.push_back(fmt::format("in{}", i));
  }
}

template <class B>
Result run_on(const Calls<B>& calls, const detail::ErasedOp& op, const ReplayFile& file, bool grad) {
  Result result;
  Autodiff<B> b;
  run_forward(b.inner(), calls, op, file, result);
  if (grad) run_backward(b, calls, op, file, result);
  return result;
}

template <class Op>
Result run_on_cuda([[maybe_unused]] const std::string& backend, [[maybe_unused]] const detail::ErasedOp& op,
                   [[maybe_unused]] const ReplayFile& file, [[maybe_unused]] bool grad) {
#if FERRITE_HAS_CUDA
  if (backend == "cuda") return run_on(Calls<Cuda>::of<Op>(), op, file, grad);
  if (backend == "lazy-cuda") return run_on(Calls<Lazy<Cuda>>::of<Op>(), op, file, grad);
  return run_on(Calls<CudaParity>::of<Op>(), op, file, grad);
#else
  Cuda missing;  // throws, and says what is missing
  return {};
#endif
}

Result run_on(const std::string& backend, const ReplayFile& file, bool grad) {
  std::optional<Result> result;
  const auto try_op = [&]<class Op>() {
    if (file.op != Op::type_name) return;
    const Op op = parse_attributes<Op>(file.attributes);
    const auto erased = detail::ErasedOp::of(op);
    if (backend == "reference")
      result = run_on(Calls<Reference>::of<Op>(), erased, file, grad);
    else if (backend == "parity")
      result = run_on(Calls<CpuParity>::of<Op>(), erased, file, grad);
    else if (backend == "cpu")
      result = run_on(Calls<Cpu>::of<Op>(), erased, file, grad);
    else if (backend == "lazy-cpu")
      result = run_on(Calls<Lazy<Cpu>>::of<Op>(), erased, file, grad);
    else
      result = run_on_cuda<Op>(backend, erased, file, grad);
  };
  for_each_op(try_op);
  try_op.template operator()<op::Launch>();  // no op of the library, but a call of the user's kernel
  if (!result)
    throw ParseError(fmt::format("[replay] there is no op '{}'; `ferrite ops` lists them", file.op));
  return *std::move(result);
}

void write_results(const Options& options, const ReplayFile& file, const Result& result) {
  SafeTensors content{{{"op", file.op}, {"attributes", file.attributes}, {"backend", options.backend}},
                      result.gradients};
  for (std::size_t k = 0; k < result.outputs.size(); ++k)
    content.tensors[fmt::format("out{}", k)] = result.outputs[k];
  write_safetensors(options.out, content);
}

std::string describe(const HostTensor& x) { return to_string(Meta{x.shape(), x.dtype()}); }

void print_text(const Options& options, const ReplayFile& file, const Result& result) {
  fmt::print("{} {} on {}\n", file.op, file.attributes, options.backend);
  const bool show_values = options.out.empty() && result.comparisons.empty();
  const auto print_values = [&](const HostTensor& x) {
    if (show_values) fmt::print("{}\n", detail::format_elements({x.shape(), x.dtype()}, x.bytes().data()));
  };
  for (std::size_t k = 0; k < result.outputs.size(); ++k) {
    fmt::print("  out{} {}", k, describe(result.outputs[k]));
    if (result.comparisons.empty()) {
      fmt::print("\n");
    } else if (const Comparison& c = result.comparisons[k]; c.agrees()) {
      fmt::print(": agrees with the file, worst error {:.3g} of what is allowed\n", c.ratio);
    } else {
      fmt::print(
          ": differs from the file in {} of {} elements\n    worst at element {}: {} has {:.9g}, the file "
          "{:.9g}; error {:.3g}, allowed {:.3g}\n",
          c.differing, result.outputs[k].numel(), c.index, options.backend, c.value, c.expected, c.error,
          c.allowed);
    }
    print_values(result.outputs[k]);
  }
  for (const auto& [name, grad] : result.gradients) {
    fmt::print("  {} {}\n", name, describe(grad));
    print_values(grad);
  }
  for (const std::string& name : result.without_gradient) fmt::print("  {} gets no gradient\n", name);
  if (!options.out.empty()) fmt::print("  written to {}\n", options.out);
}

void print_json(const Options& options, const ReplayFile& file, const Result& result) {
  using Json = nlohmann::ordered_json;
  const auto tensor = [](const std::string& name, const HostTensor& x) {
    return Json{{"name", name},
                {"dtype", to_string(x.dtype())},
                {"shape", std::vector<std::int64_t>(x.shape().begin(), x.shape().end())}};
  };
  // JSON has no infinities: they become null.
  Json outputs = Json::array(), gradients = Json::array();
  for (std::size_t k = 0; k < result.outputs.size(); ++k) {
    Json entry = tensor(fmt::format("out{}", k), result.outputs[k]);
    if (!result.comparisons.empty()) {
      const Comparison& c = result.comparisons[k];
      entry.update({{"agrees", c.agrees()},
                    {"ratio", c.ratio},
                    {"differing", c.differing},
                    {"index", c.index},
                    {"value", c.value},
                    {"expected", c.expected},
                    {"error", c.error},
                    {"allowed", c.allowed}});
    }
    outputs.push_back(std::move(entry));
  }
  for (const auto& [name, grad] : result.gradients) gradients.push_back(tensor(name, grad));
  const Json json{{"op", file.op},
                  {"attributes", Json::parse(file.attributes)},
                  {"backend", options.backend},
                  {"outputs", outputs},
                  {"gradients", gradients},
                  {"without_gradient", result.without_gradient}};
  fmt::print("{}\n", json.dump(2));
}

int run(const Options& options) {
  const ReplayFile file = read_replay_file(options.file, options.op, options.attributes);
  Result result;
  try {
    result = run_on(options.backend, file, options.grad);
  } catch (const BackendError& e) {  // parity found a difference, or a kernel failed
    fmt::print(stderr, "ferrite: {}\n", e.what());
    return difference;
  }
  if (!options.out.empty()) write_results(options, file, result);
  if (options.json)
    print_json(options, file, result);
  else
    print_text(options, file, result);
  return result.agrees() ? success : difference;
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("replay", "Run the op call of a .safetensors file and compare or write its results");
  command
      ->add_option("file", options->file,
                   "Written by Parity, or by hand: metadata op and attributes, tensors in0, in1, ...")
      ->required();
  command
      ->add_option(
          "--backend", options->backend,
          "reference, cpu, cuda, lazy-cpu, lazy-cuda, parity (cpu checked against reference), or cuda-parity "
          "(cuda against cpu)")
      ->check(CLI::IsMember({"reference", "cpu", "cuda", "lazy-cpu", "lazy-cuda", "parity", "cuda-parity"}))
      ->capture_default_str();
  command->add_option("--op", options->op, "The op, instead of the file's");
  command->add_option("--attributes", options->attributes, "Its attributes as JSON, instead of the file's");
  command->add_flag("--grad", options->grad,
                    "Also the gradients of all floating inputs, from the root gradient grad0 or ones");
  command->add_option("--out", options->out, "Write out0, ... and grad_in0, ... to this .safetensors file");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Exit code 1 if an output differs from out0, out1, ... of the file.\n"
      "Examples:\n"
      "  ferrite replay parity-reports/softmax-1.safetensors --backend cpu\n"
      "  ferrite replay call.safetensors --backend reference --grad --out results.safetensors\n"
      "  ferrite replay x.safetensors --op softmax --attributes '{\"axis\":-1}'");
  command->callback([&action, options] { action = [options] { return run(*options); }; });
}

}  // namespace ferrite::cli
