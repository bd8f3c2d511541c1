#include "cli/bench/peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "cli/bench/eigen_calls.hpp"
#include "cli/bench/embedded.hpp"
#include "cli/bench/process.hpp"
#include "core/isa_table.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::cli::bench {

FERRITE_CHOOSE_TABLE(commands, EigenCalls)

namespace {

using Json = nlohmann::ordered_json;

Json request_for(const Row& row, const RowRunner& runner, const Timing& timing, bool on_gpu) {
  Json inputs = Json::array();
  for (const Input& input : row.inputs) {
    const Shape& shape = input.meta.shape;
    inputs.push_back({{"shape", std::vector<std::int64_t>(shape.begin(), shape.end())},
                      {"dtype", to_string(input.meta.dtype)},
                      {"classes", input.classes},
                      {"uniform", input.draw == Draw::uniform ? most_uniform : 0}});
  }
  return {{"op", row.op},
          {"dtype", row.dtype},
          {"inputs", inputs},
          {"sets", input_sets(row.cost.bytes, on_gpu)},
          {"check", runner.has_error()},
          {"warmup", timing.warmup},
          {"iterations", timing.iterations},
          {"max_seconds", timing.max_seconds},
          {"batch_seconds", batch_seconds},
          {"most_calls", most_calls}};
}

Figure figure_of(const Json& reply) {
  Figure figure;
  figure.note = reply.value("note", "");
  if (reply.contains("seconds"))
    figure.times = Times{reply["seconds"], reply["min_seconds"], reply["iterations"], reply["calls"]};
  if (reply.contains("error"))
    figure.error =
        reply["error"].is_null() ? std::numeric_limits<double>::quiet_NaN() : reply["error"].get<double>();
  return figure;
}

/// A process that runs peers.py: a line with a row goes in, a line with its figures comes back.
class PythonPeer {
 public:
  PythonPeer(const std::string& name, const Plan& plan)
      : timing_(plan.timing),
        on_gpu_(name == "torch-cuda"),
        process_({plan.python, "-c", std::string(embedded::peers_py), name, std::to_string(num_threads())},
                 environment()) {}

  /// What it is, or why it cannot run.
  Json hello() {
    const std::optional<std::string> line = process_.read_line();
    return line ? Json::parse(*line) : Json{{"missing", "python stopped at once"}};
  }
  Figure measure(const Row& row, const RowRunner& runner) {
    process_.write_line(request_for(row, runner, timing_, on_gpu_).dump());
    const std::optional<std::string> line = process_.read_line();
    if (!line) return {{}, {}, false, "its process ended"};
    try {
      return figure_of(Json::parse(*line));
    } catch (const nlohmann::json::exception&) {
      return {{}, {}, false, "answered: " + *line};
    }
  }

 private:
  /// The libraries below NumPy read one of these when they are loaded.
  static std::vector<std::string> environment() {
    std::vector<std::string> variables;
    for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
      variables.push_back(fmt::format("{}={}", name, num_threads()));
    return variables;
  }

  Timing timing_;
  bool on_gpu_;
  Process process_;
};

std::optional<Peer> open_python(const std::string& name, const Plan& plan, Report& report) {
  try {
    auto peer = std::make_shared<PythonPeer>(name, plan);
    const Json hello = peer->hello();
    if (hello.contains("missing")) throw ValueError(hello["missing"]);
    report.columns.push_back({name, hello.at("what"), true});
    return Peer{name, [peer](const Row& row, RowRunner& runner) { return peer->measure(row, runner); }};
  } catch (const std::exception& e) {
    report.notes.push_back(fmt::format("{}: {}", name, e.what()));
    return {};
  }
}

/// Times a call that writes to memory of its own, and compares what it wrote.
template <class T>
Figure measure_eigen(const Row& row, RowRunner& runner, const Timing& timing) {
  std::vector<const T*> in;
  for (const Tensor<AnyBackend>& x : runner.inputs()) in.push_back(x.primitive().template data<T>());
  const Shape& shape = row.inputs[0].meta.shape;
  const Shape out_shape = row.op == "sum" ? Shape{} : shape;
  std::vector<T> out(static_cast<std::size_t>(out_shape.numel()));
  const std::function<void()> call = chosen_table().of<T>()(row.op, in.data(), out.data(), shape[0]);
  if (!call) return {{}, {}, false, "not in this comparison"};
  Figure figure;
  figure.times = time_calls(call, timing);
  if (runner.has_error()) {
    AnyBackend cpu = runner.exact().backend();
    figure.error = relative_error(from_bytes(cpu, {out_shape, dtype_of<T>}, out.data()), runner.exact());
  }
  return figure;
}

Peer open_eigen(const Plan& plan, Report& report) {
  report.columns.push_back({"eigen", chosen_table().version() + ", into memory that is there", true});
  return {"eigen", [timing = plan.timing](const Row& row, RowRunner& runner) -> Figure {
            if (row.make_step) return {{}, {}, false, "not in this comparison"};
            if (row.dtype == "f32") return measure_eigen<float>(row, runner, timing);
            if (row.dtype == "f64") return measure_eigen<double>(row, runner, timing);
            return {{}, {}, false, "not in this dtype"};
          }};
}

}  // namespace

const std::vector<std::string>& peer_names() {
  static const std::vector<std::string> names{"eigen", "numpy", "torch", "torch-cuda"};
  return names;
}

std::vector<Peer> open_peers(const Plan& plan, Report& report) {
  for (const std::string& name : plan.peers)
    if (std::find(peer_names().begin(), peer_names().end(), name) == peer_names().end())
      throw ValueError(
          fmt::format("[bench] '{}' is not a peer; they are {}", name, fmt::join(peer_names(), ", ")));
  std::vector<Peer> peers;
  for (const std::string& name : plan.peers) {
    if (report.has_column(name)) continue;  // was named twice
    std::optional<Peer> peer = name == "eigen" ? open_eigen(plan, report) : open_python(name, plan, report);
    if (peer) peers.push_back(std::move(*peer));
  }
  return peers;
}

}  // namespace ferrite::cli::bench
