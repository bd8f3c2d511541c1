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
  std::size_t count() const { return std::min(keys.size(), most); }
};

/// A generator of the step. Replays whose offsets are 0 draw from its position `first` on; the next one draws
/// from `next` on unless something else has moved the generator.
struct Generator {
  Rng* rng;
  std::uint64_t draws_per_step, first = 0, next = 0;
};

std::vector<Generator> generators_of(const Draws& draws) {
  std::vector<Generator> all;
  for (Rng* rng : draws.sources) {
    const auto known = std::find_if(all.begin(), all.end(), [&](const Generator& g) { return g.rng == rng; });
    if (known == all.end())
      all.push_back({rng, 1});
    else
      ++known->draws_per_step;
  }
  return all;
}

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
  State(Cuda& cuda, const State* beside)
      : context(cuda.context()),
        arena(beside ? beside->arena
                     : std::shared_ptr<cuda::Pool>(cuda::Pool::make_arena(context.common_pool()))) {}
  ~State() {
    if (executable) static_cast<void>(cudaGraphExecDestroy(executable));
    if (graph) static_cast<void>(cudaGraphDestroy(graph));
  }

  void stop_recording() {
    cuda::draws_on(context).store(nullptr, std::memory_order_release);
    scope.reset();
    record.reset();
    // The step has not run: the first replay draws its numbers.
    generators = cuda::generators_of(draws);
    for (cuda::Generator& g : generators) {
      g.rng->set_position(g.rng->position() - g.draws_per_step);
      g.first = g.next = g.rng->position();
    }
  }

  /// For each draw what `value` says of its generator, in the memory of the GPU.
  template <class F>
  void write_for_draws(std::uint64_t* target, F&& value) {
    std::vector<std::uint64_t> values;
    for (std::size_t i = 0; i < draws.count(); ++i) {
      const auto own = std::find_if(generators.begin(), generators.end(),
                                    [&](const cuda::Generator& g) { return g.rng == draws.sources[i]; });
      values.push_back(value(*own));
    }
    context.copy_from_host(target, values.data(), values.size() * sizeof(std::uint64_t));
  }

  cuda::DeviceContext& context;
  std::shared_ptr<cuda::Pool> arena;
  std::optional<cuda::ArenaScope> scope;
  std::optional<RngReplay> record;
  cuda::Draws draws;
  std::vector<cuda::Generator> generators;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  std::size_t nodes = 0;
};

std::shared_ptr<CudaGraph::State> CudaGraph::begin(Cuda& cuda, const CudaGraph* beside) {
  const cuda::OpScope scope("capture");
  if (beside && beside->state_->context.index() != cuda.context().index())
    throw BackendError("[capture] beside a graph of another GPU: must be of the same");
  auto state = std::make_shared<State>(cuda, beside ? beside->state_.get() : nullptr);
  cuda::DeviceContext& context = state->context;
  context.refuse_aside("capture");
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
  try {
    if (draws.count() > 0)
      cuda::advance_offsets(state.context, draws.offsets(), draws.strides(), draws.count());
  } catch (...) {
    abandon(state);
    throw;
  }
  state.stop_recording();
  cuda::check(cudaStreamEndCapture(state.context.stream(), &state.graph), "capture");
  cuda::check(cudaGraphGetNodes(state.graph, nullptr, &state.nodes), "capture");
  cuda::check(cudaGraphInstantiate(&state.executable, state.graph, 0), "capture");
  state.write_for_draws(draws.strides(), [](const cuda::Generator& g) { return g.draws_per_step; });
}

void CudaGraph::abandon(State& state) noexcept {
  state.stop_recording();
  cudaGraph_t graph = nullptr;
  static_cast<void>(cudaStreamEndCapture(state.context.stream(), &graph));
  if (graph) static_cast<void>(cudaGraphDestroy(graph));
  static_cast<void>(cudaGetLastError());
}

void CudaGraph::replay() {
  state_->context.refuse_aside("replay");
  const cuda::DeviceGuard guard(state_->context.index());
  std::vector<cuda::Generator>& generators = state_->generators;
  // A step that was no replay, or a state that was loaded, has moved a generator.
  if (std::any_of(generators.begin(), generators.end(),
                  [](const cuda::Generator& g) { return g.rng->position() != g.next; }))
    state_->write_for_draws(state_->draws.offsets(),
                            [](const cuda::Generator& g) { return g.rng->position() - g.first; });
  cuda::check(cudaGraphLaunch(state_->executable, state_->context.stream()), "replay");
  for (cuda::Generator& g : generators) {
    g.next = g.rng->position() + g.draws_per_step;
    g.rng->set_position(g.next);
  }
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
