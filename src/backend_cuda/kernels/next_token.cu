// next_token: one block for each text, or a cluster of them where a few tokens are looked for among many.
#include "ferrite/ops/next_token.hpp"

#include "backend_cuda/kit/indices.cuh"
#include "backend_cuda/kit/ptx.cuh"
#include "backend_cuda/kit/shared_memory.hpp"
#include "backend_cuda/kit/token_choice.cuh"
#include "ferrite/cuda/launch.hpp"

namespace ferrite {
namespace cuda {
namespace {

template <class T>
struct NextTokenArgs {
  const T* scores;
  std::int64_t scores_stride;  // from one text to the next
  std::int32_t *text, *read, *ids;
  const double* uniforms;
  bool* seen;
  float* numbers;  // [texts, vocab] in the GPU's memory, or null: there is room in dynamic shared memory
  int vocab, all;  // tokens that may be drawn; columns of the scores
  int columns;     // of the text
  double temperature, top_p, penalty;
  int top_k;  // 0: all
  FaultReport report;

  /// How many of the likeliest tokens count, 0 for all.
  __host__ __device__ unsigned likeliest() const {
    return temperature == 0 ? 1 : static_cast<unsigned>(top_k);
  }
  __host__ __device__ bool looks_for_few() const {
    return likeliest() > 0 && likeliest() <= token_choice::FewTokens::most_k;
  }
};

/// Whether the highest score, given as a key, is finite.
__device__ __forceinline__ bool is_usable(unsigned highest) {
  return ::isfinite(from_ascending_key<float>(highest));
}

/// The place of the token that is drawn among those that are likely.
template <class T>
__device__ int draw(const NextTokenArgs<T>& args, token_choice::Choice& choice,
                    const token_choice::Limit<unsigned>& likely, unsigned highest, double uniform) {
  // A temperature too small for f32 is not 0: (top - top) / 0 would be NaN.
  const float temperature = fmaxf(static_cast<float>(args.temperature), std::numeric_limits<float>::min());
  choice.weigh(likely, from_ascending_key<float>(highest), temperature);
  token_choice::Limit<float> heavy{0, args.vocab};
  if (args.top_p < 1) heavy = choice.heaviest(args.top_p);
  return choice.draw(heavy, uniform);
}

/// For the first block of a cluster, with the help of the others. -1: the scores cannot be used.
template <class T>
__device__ int pick(const NextTokenArgs<T>& args, token_choice::Memory& memory, double uniform) {
  const std::int64_t n = ptx::cluster_in_grid();
  const T* const scores = args.scores + n * args.scores_stride;
  const bool* const seen = args.seen + n * args.all;
  const auto penalty = static_cast<float>(args.penalty);
  const auto score_of = [&](int id) {
    const float score = convert_to<float>(scores[id]);
    if (penalty == 1 || !seen[id]) return score;
    return score > 0 ? score / penalty : score * penalty;
  };
  if (args.looks_for_few()) {
    token_choice::FewTokens& few = memory.few;
    const unsigned highest = few.find(args.likeliest(), args.vocab, score_of);
    if (ptx::block_in_cluster() > 0 || !is_usable(highest)) return -1;
    if (few.count <= token_choice::FewTokens::most) {
      if (args.temperature == 0) return few.tokens[0];
      token_choice::Choice choice(memory, few.scores, few.count);
      return few.tokens[draw(args, choice, choice.limit(few.least), highest, uniform)];
    }
  }
  float* const numbers =
      args.numbers ? args.numbers + n * args.vocab : reinterpret_cast<float*>(ptx::shared_memory());
  token_choice::Choice choice(memory, numbers, args.vocab);
  const unsigned long long best = choice.take_scores(score_of);
  const auto highest = static_cast<unsigned>(best >> 32);
  if (!is_usable(highest)) return -1;
  if (args.temperature == 0) return static_cast<int>(~static_cast<unsigned>(best));
  token_choice::Limit<unsigned> likely{0, args.vocab};
  if (args.top_k > 0) likely = choice.likeliest(static_cast<unsigned>(args.top_k));
  return draw(args, choice, likely, highest, uniform);
}

template <class T>
__global__ void __launch_bounds__(token_choice::threads)
    next_token_kernel(const __grid_constant__ NextTokenArgs<T> args) {
  __shared__ token_choice::Memory memory;
  wait_for_earlier_kernels();
  const std::int64_t n = ptx::cluster_in_grid();
  const bool is_first = ptx::block_in_cluster() == 0, is_alone = ptx::cluster_blocks() == 1;
  const std::int64_t place = std::int64_t{args.read[n]} + 1;
  const bool is_inside = place >= 0 && place < args.columns;
  if (!is_inside) {
    if (is_first && threadIdx.x == 0) {
      args.report(place, args.columns, n + 1);
      args.ids[n] = -1;
    }
    return;
  }
  const std::int64_t at = n * args.columns + place;
  std::int32_t token = args.text[at];
  const bool is_given = token >= 0;
  if (!is_alone) ptx::arrive_at_cluster();  // this block has read what the first changes in the end
  if (!is_given) token = pick(args, memory, args.uniforms[at]);
  if (!is_first) return;
  if (is_given && !is_alone) ptx::wait_for_cluster();
  __syncthreads();  // all have read what the first thread changes now
  if (threadIdx.x != 0) return;
  args.text[at] = token;
  args.read[n] = static_cast<std::int32_t>(place);
  args.ids[n] = token;
  if (token >= 0 && token < args.all) args.seen[n * args.all + token] = true;
}

/// From here on a cluster of blocks looks through them. One block, with eight for each thread, would wait
/// once.
constexpr std::int64_t many_tokens = 1 << 13;

/// The output, dense, with what the input holds.
class State {
 public:
  State(Cuda& cuda, const Array& in, const Array& out) : target_(cuda, out, false) {
    if (in.data() != target_.array().data() || !in.layout().is_contiguous())
      copy_into(cuda, in, target_.array());
  }
  const Array& array() const { return target_.array(); }
  void commit() { target_.commit(); }

 private:
  Destination target_;
};

}  // namespace
}  // namespace cuda

using namespace cuda;

bool accepts(const Cuda&, const op::NextToken&, MetaSpan in) {
  constexpr std::int64_t most = std::int64_t{1} << 30;  // what the kernel counts in 32 bits
  return in[0].dtype != DType::f64 && in[0].shape[0] <= most && in[0].shape[1] <= most &&
         in[1].shape[1] <= most;
}

void run(Cuda& cuda, const op::NextToken& op, Ins in, Outs out) {
  const std::int64_t texts = in[0].shape()[0], all = in[0].shape()[1];
  if (texts == 0) return;
  const Call call(cuda, op_name(op));
  const Array scores = in[0].layout().strides[1] == 1 ? in[0] : dense(cuda, in[0]);
  const Array uniforms = dense(cuda, in[3]);
  State text(cuda, in[1], out[0]), read(cuda, in[2], out[1]), seen(cuda, in[4], out[2]);
  Destination ids(cuda, out[3], false);
  const std::int64_t vocab = op.vocabulary > 0 ? std::min(all, op.vocabulary) : all;
  visit_floating(scores.dtype(), [&]<class T>() {
    if constexpr (!std::is_same_v<T, double>) {
      NextTokenArgs<T> args{scores.data<T>(),
                            scores.layout().strides[0],
                            text.array().data<std::int32_t>(),
                            read.array().data<std::int32_t>(),
                            ids.array().data<std::int32_t>(),
                            uniforms.data<double>(),
                            seen.array().data<bool>(),
                            nullptr,
                            static_cast<int>(vocab),
                            static_cast<int>(all),
                            static_cast<int>(in[1].shape()[1]),
                            op.temperature,
                            op.top_p,
                            op.repetition_penalty,
                            op.top_k < vocab ? static_cast<int>(op.top_k) : 0,
                            FaultReport(call)};
      const auto kernel = next_token_kernel<T>;
      BlockSize block{token_choice::threads};
      if (args.looks_for_few() && vocab >= many_tokens && runs_hopper_code()) {
        const std::int64_t processors = call.properties().multiProcessorCount;
        block.cluster = 8;
        while (block.cluster > 1 && texts * block.cluster > processors) block.cluster /= 2;
      }
      const std::int64_t bytes = vocab * static_cast<std::int64_t>(sizeof(float));
      const auto most = static_cast<std::int64_t>(call.properties().sharedMemPerBlockOptin);
      constexpr auto own = static_cast<std::int64_t>(sizeof(token_choice::Memory)) + (1 << 10);
      // The few have a place of their own, and are hardly ever too many.
      const bool is_shared = !args.looks_for_few() && bytes + own <= most;
      const Scratch<float> numbers(call, is_shared ? 1 : texts * vocab);
      if (is_shared) {
        block.shared_bytes = bytes;
        if (bytes + own > 48 << 10) allow_all_shared_memory(call, reinterpret_cast<const void*>(kernel));
      } else {
        args.numbers = numbers.data();
      }
      launch(call, kernel, grid_of(texts * block.cluster), block, args, Start::early);
    }
  });
  text.commit();
  read.commit();
  seen.commit();
  ids.commit();
  call.finish();
}

}  // namespace ferrite
