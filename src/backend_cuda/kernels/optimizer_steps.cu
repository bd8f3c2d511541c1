// SGD and Adam: all parameters of a call in one launch. Each element is read once and written once; learning
// rate, step and clip factor are read on the device where they are given there.
#include <cmath>

#include "backend_cuda/kit/multi_tensor.cuh"
#include "ferrite/ops/optimizer_steps.hpp"

namespace ferrite {
namespace cuda {
namespace {

constexpr int lanes = 4;

/// What a step needs beside the tensors. The schedule, if there is one, overrides the numbers of the host.
struct Numbers {
  double lr, beta1, beta2, eps, weight_decay, momentum, step;
  const void* clip;
  const double* schedule;
  bool clip_is_f64, decoupled, nesterov;

  __device__ double clip_factor() const {
    return clip_is_f64 ? *static_cast<const double*>(clip) : *static_cast<const float*>(clip);
  }
  __device__ double rate() const { return schedule ? schedule[0] * lr : lr; }
  __device__ double steps() const { return schedule ? schedule[1] + step : step; }
};

/// Lists: parameter, gradient, first moment, second moment.
template <class W>
struct AdamStep {
  static constexpr int lists = 4;
  W scale1, scale2, beta1, rest1, beta2, rest2, lr, eps, clip, decay, kept;
  bool decoupled;

  __device__ explicit AdamStep(const Numbers& n)
      : scale1(W(1 / (1 - ::pow(n.beta1, n.steps())))),
        scale2(W(1 / (1 - ::pow(n.beta2, n.steps())))),
        beta1(W(n.beta1)),
        rest1(W(1 - n.beta1)),
        beta2(W(n.beta2)),
        rest2(W(1 - n.beta2)),
        lr(W(n.rate())),
        eps(W(n.eps)),
        clip(W(n.clip_factor())),
        decay(W(n.weight_decay)),
        kept(W(1 - n.rate() * n.weight_decay)),
        decoupled(n.decoupled) {}

  __device__ void operator()(W& p, W g, W* state) const {
    if (clip < 0) return;
    g = decoupled ? g * clip : g * clip + p * decay;
    state[0] = state[0] * beta1 + g * rest1;
    state[1] = state[1] * beta2 + g * g * rest2;
    p = (decoupled ? p * kept : p) - state[0] * scale1 / (::sqrt(state[1] * scale2) + eps) * lr;
  }
};

/// Lists: parameter, gradient, and with momentum the velocity.
template <class W, bool has_momentum>
struct SgdStep {
  static constexpr int lists = has_momentum ? 3 : 2;
  W lr, decay, clip, momentum;
  bool nesterov;

  __device__ explicit SgdStep(const Numbers& n)
      : lr(W(n.rate())),
        decay(W(n.weight_decay)),
        clip(W(n.clip_factor())),
        momentum(W(n.momentum)),
        nesterov(n.nesterov) {}

  __device__ void operator()(W& p, W g, W* state) const {
    if (clip < 0) return;
    g = g * clip + p * decay;
    if constexpr (has_momentum) {
      state[0] = state[0] * momentum + g;
      g = nesterov ? g + state[0] * momentum : state[0];
    }
    p -= g * lr;
  }
};

/// C is the dtype of copies of the parameters, in a last list of the table, or void.
template <class Step, class P, class G, class W, class C, class Table>
__global__ void __launch_bounds__(piece_threads)
    update_kernel(const __grid_constant__ Table table, const Numbers numbers) {
  constexpr int states = Step::lists - 2;
  constexpr bool has_copies = !std::is_void_v<C>;
  using Copy = std::conditional_t<has_copies, C, P>;
  // The powers take a hundred instructions: one thread computes them for the block.
  __shared__ alignas(Step) unsigned char memory[sizeof(Step)];
  if (threadIdx.x == 0) new (memory) Step(numbers);
  __syncthreads();
  const Step step = *reinterpret_cast<const Step*>(memory);

  const Piece piece = own_piece(table);
  P* const parameter = static_cast<P*>(table.data[0][piece.tensor]);
  const G* const gradient = static_cast<const G*>(table.data[1][piece.tensor]);
  W* state[states > 0 ? states : 1];
  bool aligned = is_aligned_to(parameter, lanes) && is_aligned_to(gradient, lanes);
  for (int k = 0; k < states; ++k) {
    state[k] = static_cast<W*>(table.data[2 + k][piece.tensor]);
    aligned = aligned && is_aligned_to(state[k], lanes);
  }
  Copy* copy = nullptr;
  if constexpr (has_copies) {
    copy = static_cast<Copy*>(table.data[Step::lists][piece.tensor]);
    aligned = aligned && is_aligned_to(copy, lanes);
  }
  const std::int64_t whole = aligned ? piece.begin + (piece.end - piece.begin) / lanes * lanes : piece.begin;
  for (std::int64_t i = piece.begin + threadIdx.x * lanes; i < whole; i += piece_threads * lanes) {
    auto p = *reinterpret_cast<const Pack<P, lanes>*>(parameter + i);
    const auto g = *reinterpret_cast<const Pack<G, lanes>*>(gradient + i);
    Pack<W, lanes> s[states > 0 ? states : 1];
    [[maybe_unused]] Pack<Copy, lanes> c;
    for (int k = 0; k < states; ++k) s[k] = *reinterpret_cast<const Pack<W, lanes>*>(state[k] + i);
    for (int j = 0; j < lanes; ++j) {
      W value = convert_to<W>(p.lane[j]), own[states > 0 ? states : 1];
      for (int k = 0; k < states; ++k) own[k] = s[k].lane[j];
      step(value, convert_to<W>(g.lane[j]), own);
      p.lane[j] = convert_to<P>(value);
      if constexpr (has_copies) c.lane[j] = convert_to<Copy>(value);
      for (int k = 0; k < states; ++k) s[k].lane[j] = own[k];
    }
    *reinterpret_cast<Pack<P, lanes>*>(parameter + i) = p;
    if constexpr (has_copies) *reinterpret_cast<Pack<Copy, lanes>*>(copy + i) = c;
    for (int k = 0; k < states; ++k) *reinterpret_cast<Pack<W, lanes>*>(state[k] + i) = s[k];
  }
  for (std::int64_t i = whole + threadIdx.x; i < piece.end; i += piece_threads) {
    W value = convert_to<W>(parameter[i]), own[states > 0 ? states : 1];
    for (int k = 0; k < states; ++k) own[k] = state[k][i];
    step(value, convert_to<W>(gradient[i]), own);
    parameter[i] = convert_to<P>(value);
    if constexpr (has_copies) copy[i] = convert_to<Copy>(value);
    for (int k = 0; k < states; ++k) state[k][i] = own[k];
  }
}

/// The lists of a step as dense arrays that are updated in place. Outputs that are not the dense inputs
/// themselves are filled from them at the end. Copies of the parameters are one list more.
template <int lists, bool has_copies>
class UpdateLists {
 public:
  static constexpr int all = lists + (has_copies ? 1 : 0);

  UpdateLists(Cuda& cuda, Ins in, Outs out, std::size_t count) : cuda_(cuda), out_(out), count_(count) {
    for (std::size_t i = 0; i < count; ++i) {
      for (int k = 0; k < lists; ++k) {
        const Array& x = in[static_cast<std::size_t>(k) * count + i];
        if (k == 1) {  // read only: in the parameter's dtype, or in that of the state
          const DType state = in[i].dtype() == DType::f64 ? DType::f64 : DType::f32;
          rows_[k].push_back(dense(cuda, x, x.dtype() == in[i].dtype() ? x.dtype() : state));
          continue;
        }
        const Array& y = out_of(k, i);
        const bool in_place =
            y.layout().is_contiguous() && y.data() == x.data() && x.layout().is_contiguous();
        Array target = y.layout().is_contiguous() ? y : cuda.allocate(y.meta());
        if (!in_place) copy_into(cuda, x, target);
        rows_[k].push_back(target);
      }
      if (!has_copies) continue;
      const Array& copy = out_of(lists, i);
      rows_[all - 1].push_back(copy.layout().is_contiguous() ? copy : cuda.allocate(copy.meta()));
    }
  }

  /// Calls f(rows) for the tensors of one pair of dtypes after the other.
  template <class F>
  void for_each_dtype(F&& f) const {
    std::vector<bool> done(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      if (done[i]) continue;
      std::vector<Array> group[all];
      for (std::size_t j = i; j < count_; ++j) {
        if (rows_[0][j].dtype() != rows_[0][i].dtype() || rows_[1][j].dtype() != rows_[1][i].dtype())
          continue;
        done[j] = true;
        for (int k = 0; k < all; ++k) group[k].push_back(rows_[k][j]);
      }
      f(group);
    }
  }
  void commit() {
    for (std::size_t i = 0; i < count_; ++i) {
      for (int k = 0; k < all; ++k) {
        if (k == 1) continue;
        const Array& y = out_of(k, i);
        if (!y.layout().is_contiguous()) copy_into(cuda_, rows_[k][i], y);
      }
    }
  }

 private:
  /// Outputs have no gradients among them.
  const Array& out_of(int list, std::size_t i) const {
    return out_[static_cast<std::size_t>(list == 0 ? 0 : list - 1) * count_ + i];
  }

  Cuda& cuda_;
  Outs out_;
  std::size_t count_;
  std::vector<Array> rows_[all];
};

template <template <class> class StepOf, class P, class G, class C = void, std::size_t lists>
void launch_update(const Call& call, const std::vector<Array> (&rows)[lists], const Numbers& numbers) {
  using W = std::conditional_t<std::is_same_v<P, double>, double, float>;
  for_tables(rows, [&]<class Table>(const Table& table, std::uint32_t blocks) {
    update_kernel<StepOf<W>, P, G, W, C><<<blocks, piece_threads, 0, call.stream()>>>(table, numbers);
  });
}

/// With copies, the parameters are f32.
template <template <class> class StepOf, bool has_copies = false>
void update(Cuda& cuda, std::string_view name, Ins in, Outs out, std::size_t count, Numbers numbers) {
  using Lists = UpdateLists<StepOf<float>::lists, has_copies>;
  const Call call(cuda, name);
  Lists tensors(cuda, in, out, count);
  tensors.for_each_dtype([&](const std::vector<Array>(&rows)[Lists::all]) {
    if constexpr (has_copies) {
      if (rows[Lists::all - 1][0].dtype() == DType::bf16)
        launch_update<StepOf, float, float, __nv_bfloat16>(call, rows, numbers);
      else
        launch_update<StepOf, float, float, __half>(call, rows, numbers);
    } else {
      const bool same = rows[0][0].dtype() == rows[1][0].dtype();
      visit_floating(rows[0][0].dtype(), [&]<class P>() {
        if constexpr (is_16_bit<P>) {
          if (!same) return launch_update<StepOf, P, float>(call, rows, numbers);
        }
        launch_update<StepOf, P, P>(call, rows, numbers);
      });
    }
  });
  tensors.commit();
  call.finish();
}

template <class W>
using PlainSgd = SgdStep<W, false>;
template <class W>
using MomentumSgd = SgdStep<W, true>;

/// The clip factor and the schedule, which must stay alive until the launch.
struct DeviceNumbers {
  Array clip, schedule;

  DeviceNumbers(Cuda& cuda, Ins in, std::size_t clip_index) {
    clip = in[clip_index].dtype() == DType::f64 ? in[clip_index] : dense(cuda, in[clip_index], DType::f32);
    if (in.size() > clip_index + 1) schedule = dense(cuda, in[clip_index + 1]);
  }
  void put_into(Numbers& numbers) const {
    numbers.clip = clip.data();
    numbers.clip_is_f64 = clip.dtype() == DType::f64;
    numbers.schedule = schedule.defined() ? schedule.data<double>() : nullptr;
  }
};

}  // namespace
}  // namespace cuda

void run(Cuda& cuda, const op::Adam& op, Ins in, Outs out) {
  const std::size_t count = (in.size() - 1) / 4;
  cuda::Numbers numbers{
      op.lr,   op.beta1, op.beta2,     op.eps, op.weight_decay, 0, static_cast<double>(op.step), nullptr,
      nullptr, false,    op.decoupled, false};
  const cuda::DeviceNumbers device(cuda, in, 4 * count);
  device.put_into(numbers);
  if (op.copies) return cuda::update<cuda::AdamStep, true>(cuda, op_name(op), in, out, count, numbers);
  cuda::update<cuda::AdamStep>(cuda, op_name(op), in, out, count, numbers);
}

void run(Cuda& cuda, const op::Sgd& op, Ins in, Outs out) {
  const std::size_t count = (in.size() - 1) / 3;
  cuda::Numbers numbers{op.lr, 0,       0,       0,     op.weight_decay, op.momentum,
                        0,     nullptr, nullptr, false, false,           op.nesterov};
  const cuda::DeviceNumbers device(cuda, in, 3 * count);
  device.put_into(numbers);
  if (op.momentum != 0) return cuda::update<cuda::MomentumSgd>(cuda, op_name(op), in, out, count, numbers);
  cuda::update<cuda::PlainSgd>(cuda, op_name(op), in, out, count, numbers);
  for (std::size_t i = 0; i < count; ++i) {  // the buffers stay as they are, wherever they are
    if (in[2 * count + i].data() != out[count + i].data())
      cuda::copy_into(cuda, in[2 * count + i], out[count + i]);
  }
}

}  // namespace ferrite
