// Finished datasets of every prior: one block after another takes the next dataset and makes it, as
// models/priors/generate.hpp says. Blocks stay, as many as the GPU runs at once, each with a workspace of its
// own. Compiled without contraction: the bits are those of the Cpu.
#include <algorithm>
#include <vector>

#include "models/priors/cuda/block_team.cuh"
#include "models/priors/generate.hpp"

namespace ferrite {
namespace cuda {
namespace {

using namespace priors;

constexpr int outputs = 6, blocks_per_processor = 2;
constexpr std::int64_t plan_bytes = (sizeof(FamilyPlan) + 63) / 64 * 64;
/// Workspaces of all blocks together take no more, unless one alone does.
constexpr std::int64_t workspace_limit = std::int64_t{2} << 30;

struct PriorArgs {
  Config config;
  std::uint64_t seed;
  std::int64_t first, count;
  void* out[outputs];
  unsigned long long* next;  // the dataset that no block has taken yet
  std::byte* workspaces;
  std::int64_t workspace_bytes;
};

struct TeamState {
  PostPlan post;
  FourierSeries series;
  int counts[block_warps];
  unsigned long long taken;
};

__global__ void __launch_bounds__(block_threads, blocks_per_processor)
    prior_kernel(const __grid_constant__ PriorArgs args) {
  extern __shared__ float4 tile[];
  __shared__ TeamState state;
  BlockTeam team(reinterpret_cast<float*>(tile), state.counts);
  std::byte* const memory = args.workspaces + args.workspace_bytes * blockIdx.x;
  FamilyPlan& plan = *reinterpret_cast<FamilyPlan*>(memory);
  Workspace w;
  place_workspace(args.config, memory + plan_bytes, w);
  w.series = &state.series;
  w.post = &state.post;
  for (;;) {
    team.once([&] { state.taken = atomicAdd(args.next, 1ull); });
    const auto i = static_cast<std::int64_t>(state.taken);
    if (i >= args.count) return;
    generate_dataset(team, args.config, args.seed, static_cast<std::uint64_t>(args.first + i), plan, w,
                     slice_of(args.out, args.config, i));
  }
}

}  // namespace
}  // namespace cuda

using namespace cuda;

void run(Cuda& cuda, const op::PriorDatasets& op, Ins, Outs out) {
  const Call call(cuda, op_name(op));
  std::vector<Destination> targets;
  for (const Array& array : out) targets.emplace_back(cuda, array, false);
  PriorArgs args{op.config, op.seed, op.first, op.count, {}, nullptr, nullptr, 0};
  for (int i = 0; i < outputs; ++i) args.out[i] = targets[i].array().data<void>();
  Workspace measured;
  args.workspace_bytes = plan_bytes + place_workspace(op.config, nullptr, measured);
  const std::int64_t resident = std::int64_t{call.properties().multiProcessorCount} * blocks_per_processor;
  const std::int64_t blocks =
      std::min({op.count, resident, std::max(workspace_limit / args.workspace_bytes, std::int64_t{1})});
  const Scratch<std::byte> workspaces(call, blocks * args.workspace_bytes);
  const Scratch<unsigned long long> next(call, 1);
  args.workspaces = workspaces.data();
  args.next = next.data();
  check(cudaMemsetAsync(args.next, 0, sizeof *args.next, call.stream()), call.op());
  check(cudaFuncSetAttribute(prior_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(BlockTeam::shared_bytes(max_hidden))),
        call.op());
  launch(call, prior_kernel, grid_of(blocks),
         {block_threads, BlockTeam::shared_bytes(workspace_width(op.config))}, args);
  for (Destination& target : targets) target.commit();
  call.finish();
}

}  // namespace ferrite
