// next_token: one block for each text.
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
  float* numbers;  // [texts, vocab] in the GPU's memory, or null: there is room in shared memory
  int vocab, all;  // tokens that may be drawn; columns of the scores
  int columns;     // of the text
  double temperature, top_p, penalty;
  int top_k;
  FaultReport report;
};

template <class T>
__device__ int pick(const NextTokenArgs<T>& args, token_choice::Memory& memory, double uniform) {
  const std::int64_t n = blockIdx.x;
  float* const numbers =
      args.numbers ? args.numbers + n * args.vocab : reinterpret_cast<float*>(ptx::shared_memory());
  token_choice::Choice choice(memory, numbers, args.vocab);
  const T* const scores = args.scores + n * args.scores_stride;
  const bool* const seen = args.seen + n * args.all;
  const auto penalty = static_cast<float>(args.penalty);
  const unsigned long long best = choice.take_scores([&](int id) {
    const float score = convert_to<float>(scores[id]);
    if (penalty == 1 || !seen[id]) return score;
    return score > 0 ? score / penalty : score * penalty;
  });
  const auto highest = static_cast<unsigned>(best >> 32);
  const float top = from_ascending_key<float>(highest);
  if (highest == ~0u || !::isfinite(top)) return -1;
  if (args.temperature == 0) return static_cast<int>(~static_cast<unsigned>(best));
  token_choice::Limit<unsigned> likely{0, args.vocab};
  if (args.top_k > 0 && args.top_k < args.vocab) likely = choice.likeliest(static_cast<unsigned>(args.top_k));
  // A temperature too small for f32 is not 0: (top - top) / 0 would be NaN.
  const float temperature = fmaxf(static_cast<float>(args.temperature), std::numeric_limits<float>::min());
  choice.weigh(likely, top, temperature);
  token_choice::Limit<float> heavy{0, args.vocab};
  if (args.top_p < 1) heavy = choice.heaviest(args.top_p);
  return choice.draw(heavy, uniform);
}

template <class T>
__global__ void __launch_bounds__(token_choice::threads)
    next_token_kernel(const __grid_constant__ NextTokenArgs<T> args) {
  __shared__ token_choice::Memory memory;
  wait_for_earlier_kernels();
  const std::int64_t n = blockIdx.x;
  const std::int64_t place = std::int64_t{args.read[n]} + 1;
  const bool is_inside = place >= 0 && place < args.columns;
  if (!is_inside) {
    if (threadIdx.x == 0) {
      args.report(place, args.columns, n + 1);
      args.ids[n] = -1;
    }
    return;
  }
  const std::int64_t at = n * args.columns + place;
  std::int32_t token = args.text[at];
  if (token < 0) token = pick(args, memory, args.uniforms[at]);
  __syncthreads();  // all have read what the first changes now
  if (threadIdx.x != 0) return;
  args.text[at] = token;
  args.read[n] = static_cast<std::int32_t>(place);
  args.ids[n] = token;
  if (token >= 0 && token < args.all) args.seen[n * args.all + token] = true;
}

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
      const std::int64_t bytes = vocab * static_cast<std::int64_t>(sizeof(float));
      const auto most = static_cast<std::int64_t>(call.properties().sharedMemPerBlockOptin);
      constexpr auto own = static_cast<std::int64_t>(sizeof(token_choice::Memory)) + (1 << 10);
      const bool is_shared = bytes + own <= most;
      const Scratch<float> memory(call, is_shared ? 1 : texts * vocab);
      const NextTokenArgs<T> args{scores.data<T>(),
                                  scores.layout().strides[0],
                                  text.array().data<std::int32_t>(),
                                  read.array().data<std::int32_t>(),
                                  ids.array().data<std::int32_t>(),
                                  uniforms.data<double>(),
                                  seen.array().data<bool>(),
                                  is_shared ? nullptr : memory.data(),
                                  static_cast<int>(vocab),
                                  static_cast<int>(all),
                                  static_cast<int>(in[1].shape()[1]),
                                  op.temperature,
                                  op.top_p,
                                  op.repetition_penalty,
                                  static_cast<int>(std::min(op.top_k, vocab)),
                                  FaultReport(call)};
      const auto kernel = next_token_kernel<T>;
      if (is_shared && bytes + own > 48 << 10)
        allow_all_shared_memory(call, reinterpret_cast<const void*>(kernel));
      launch(call, kernel, grid_of(texts), BlockSize{token_choice::threads, is_shared ? bytes : 0}, args,
             Start::early);
    }
  });
  text.commit();
  read.commit();
  seen.commit();
  ids.commit();
  call.finish();
}

}  // namespace ferrite
