// CudaGraph: stream capture into an arena of its own, and late reads.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <vector>

#include "backend_cuda/runtime/capture.hpp"
#include "ferrite/backend/cuda_graph.hpp"

namespace ferrite {
namespace cuda {
namespace {

/// The random keys of the step being captured: draw i of a replay adds offsets[i] to its stream. At the end
/// of the step strides[i], the number of draws of the same generator in one step, is added to offsets[i].
struct Draws {
  static constexpr std::size_t most = 4096;
  std::vector<RandomKey> keys;
  std::vector<Rng*> sources;
  std::shared_ptr<Buffer> memory;

  std::uint64_t* offsets() const { return static_cast<std::uint64_t*>(memory->data()); }
  std::uint64_t* strides() const { return offsets() + most; }
  std::uint64_t draws_of(const Rng* rng) const {
    return static_cast<std::uint64_t>(std::count(sources.begin(), sources.end(), rng));
  }
  /// Calls f(generator, its draws in one step) for each generator.
  template <class F>
  void for_each_generator(F&& f) const {
    std::vector<Rng*> distinct = sources;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (Rng* rng : distinct) f(*rng, draws_of(rng));
  }
};

/// Of the capture under way on each GPU.
std::atomic<const Draws*> captured_draws[64];

std::atomic<const Draws*>& draws_on(const DeviceContext& context) {
  return captured_draws[static_cast<std::size_t>(context.index()) % std::size(captured_draws)];
}

}  // namespace

const std::uint64_t* stream_offset(const Call& call, RandomKey key) {
  const Draws* const draws = draws_on(call.context()).load(std::memory_order_acquire);
  if (!draws) return nullptr;
  const auto found = std::find(draws->keys.rbegin(), draws->keys.rend(), key);
  if (found == draws->keys.rend()) return nullptr;
  const auto index = static_cast<std::size_t>(draws->keys.rend() - found) - 1;
  if (index >= Draws::most)
    throw BackendError(fmt::format("[{}] draw {} of a captured step: at most {} can be captured", call.op(),
                                   index + 1, Draws::most));
  return draws->offsets() + index;
}

}  // namespace cuda

struct CudaGraph::State {
  explicit State(Cuda& cuda)
      : context(cuda.context()), arena(cuda::Pool::make_arena(context.common_pool())) {}
  ~State() {
    if (executable) static_cast<void>(cudaGraphExecDestroy(executable));
    if (graph) static_cast<void>(cudaGraphDestroy(graph));
  }

  void stop_recording() {
    cuda::draws_on(context).store(nullptr, std::memory_order_release);
    scope.reset();
    record.reset();
    // The step has not run: the first replay draws its numbers.
    draws.for_each_generator([](Rng& rng, std::uint64_t count) { rng.set_position(rng.position() - count); });
  }

  cuda::DeviceContext& context;
  cuda::PoolHandle arena;
  std::optional<cuda::ArenaScope> scope;
  std::optional<RngReplay> record;
  cuda::Draws draws;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::size_t nodes = 0;
};

std::shared_ptr<CudaGraph::State> CudaGraph::begin(Cuda& cuda) {
  const cuda::OpScope scope("capture");
  auto state = std::make_shared<State>(cuda);
  cuda::DeviceContext& context = state->context;
  const cuda::DeviceGuard guard(context.index());
  if (context.is_capturing())
    throw BackendError("[capture] a capture is under way on this GPU: one at a time");
  constexpr std::size_t bytes = 2 * cuda::Draws::most * sizeof(std::uint64_t);
  state->draws.memory = context.common_pool().allocate(bytes);
  cuda::check(cudaMemsetAsync(state->draws.memory->data(), 0, bytes, context.stream()), "capture");
  cuda::check(cudaStreamBeginCapture(context.stream(), cudaStreamCaptureModeThreadLocal), "capture");
  state->scope.emplace(context, *state->arena);
  state->record.emplace(RngReplay::Record, state->draws.keys, &state->draws.sources);
  cuda::draws_on(context).store(&state->draws, std::memory_order_release);
  return state;
}

void CudaGraph::end(State& state) {
  const cuda::DeviceGuard guard(state.context.index());
  const cuda::Draws& draws = state.draws;
  const std::size_t count = std::min(draws.keys.size(), cuda::Draws::most);
  try {
    if (count > 0) cuda::advance_offsets(state.context, draws.offsets(), draws.strides(), count);
  } catch (...) {
    abandon(state);
    throw;
  }
  state.stop_recording();
  cuda::check(cudaStreamEndCapture(state.context.stream(), &state.graph), "capture");
  cuda::check(cudaGraphGetNodes(state.graph, nullptr, &state.nodes), "capture");
  cuda::check(cudaGraphInstantiate(&state.executable, state.graph, 0), "capture");
  std::vector<std::uint64_t> strides;
  for (std::size_t i = 0; i < count; ++i) strides.push_back(draws.draws_of(draws.sources[i]));
  state.context.copy_from_host(draws.strides(), strides.data(), count * sizeof(std::uint64_t));
}

void CudaGraph::abandon(State& state) noexcept {
  state.stop_recording();
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(state.context.stream(), &graph));
  if (graph) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());
}

void CudaGraph::replay() {
  const cuda::DeviceGuard guard(state_->context.index());
  cuda::check(cudaGraphLaunch(state_->executable, state_->context.stream()), "replay");
  state_->draws.for_each_generator(
      [](Rng& rng, std::uint64_t count) { rng.set_position(rng.position() + count); });
}

std::size_t CudaGraph::nodes() const { return state_->nodes; }
std::size_t CudaGraph::memory() const { return state_->arena->pool_stats().reserved; }

LateReader::LateReader(Cuda& cuda) : cuda_(cuda) {}

LateReader::~LateReader() {
  free_.insert(free_.end(), pending_.begin(), pending_.end());
  for (const Note& note : free_) {
    static_cast<void>(cudaEventDestroy(static_cast<cudaEvent_t>(note.event)));
    static_cast<void>(cudaFreeHost(note.value));
  }
}

LateReader::Note LateReader::make_note() {
  if (!free_.empty()) {
    const Note note = free_.back();
    free_.pop_back();
    return note;
  }
  Note note{};
  cuda::check(cudaHostAlloc(reinterpret_cast<void**>(&note.value), sizeof(float), cudaHostAllocDefault),
              "push");
  cudaEvent_t event = nullptr;
  const cudaError_t status = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (status != cudaSuccess) static_cast<void>(cudaFreeHost(note.value));
  cuda::check(status, "push");
  note.event = event;
  return note;
}

void LateReader::push(const Array& array) {
  if (array.shape().numel() != 1)
    throw ShapeError(fmt::format("[push] {}: must have one element", to_string(array.meta())));
  const cuda::Call call(cuda_, "push");
  if (call.context().is_capturing())
    throw BackendError(
        "[push] a note inside a capture: would not be taken again by replays; push after replay()");
  const Array value = cuda::dense(cuda_, array, DType::f32);
  Note note = make_note();
  pending_.push_back(note);
  cuda::check(cudaMemcpyAsync(note.value, value.data(), sizeof(float), cudaMemcpyDeviceToHost, call.stream()),
              "push");
  cuda::check(cudaEventRecord(static_cast<cudaEvent_t>(note.event), call.stream()), "push");
}

float LateReader::pop() {
  if (pending_.empty()) throw ValueError("[pop] nothing was pushed: must follow a push");
  const Note note = pending_.front();
  cuda::check(cudaEventSynchronize(static_cast<cudaEvent_t>(note.event)), "pop");
  pending_.pop_front();
  free_.push_back(note);
  return *note.value;
}

}  // namespace ferrite
