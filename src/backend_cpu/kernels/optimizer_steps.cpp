// The multi-tensor ops. All tensors of a list are cut into pieces that threads share, so that many small
// parameters cost one parallel job; each step reads and writes every element once.
#include <cmath>
#include <vector>

#include "backend_cpu/simd/simd.hpp"
#include "ferrite/cpu/rows.hpp"
#include "ferrite/ops/optimizer_steps.hpp"

namespace ferrite {

using namespace cpu;

namespace {

struct Piece {
  std::size_t tensor;
  std::int64_t begin, end;
};

/// The first `count` tensors in pieces of chunk_size elements.
std::vector<Piece> pieces_of(Ins in, std::size_t count) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t n = in[i].shape().numel();
    for (std::int64_t begin = 0; begin < n; begin += chunk_size)
      pieces.push_back({i, begin, std::min(n, begin + chunk_size)});
  }
  return pieces;
}

template <class F>
void for_pieces(const std::vector<Piece>& pieces, F&& f) {
  parallel_for(static_cast<std::int64_t>(pieces.size()),
               [&](std::int64_t i) { f(pieces[static_cast<std::size_t>(i)]); });
}

/// kernel(x, y, n) for every block of every tensor: x[k] are n elements of input list k, y[k] of output list
/// k, which may be the same memory. Computed in the type of the third list, the state; without one, of the
/// parameters.
template <std::size_t inputs, std::size_t outputs, class Kernel>
void update_lists(Cpu& cpu, Ins in, Outs out, std::size_t count, Kernel&& kernel) {
  std::vector<Array> sources;
  std::vector<Destination> targets;
  for (std::size_t i = 0; i < inputs * count; ++i) sources.push_back(dense(cpu, in[i]));
  for (std::size_t i = 0; i < outputs * count; ++i) targets.push_back(Destination(cpu, out[i], false));
  for_pieces(pieces_of(in, count), [&](const Piece& piece) {
    visit_wide(in[(inputs > 2 ? 2 : 0) * count + piece.tensor].dtype(), [&]<class W>() {
      SmallVector<Reader<W>, inputs> read;
      SmallVector<Writer<W>, outputs> write;
      for (std::size_t k = 0; k < inputs; ++k)
        read.push_back(Reader<W>(sources[k * count + piece.tensor], block_size));
      for (std::size_t k = 0; k < outputs; ++k)
        write.push_back(Writer<W>(targets[k * count + piece.tensor], block_size));
      for (std::int64_t begin = piece.begin; begin < piece.end; begin += block_size) {
        const std::int64_t n = std::min(block_size, piece.end - begin);
        const W* x[inputs];
        W* y[outputs];
        for (std::size_t k = 0; k < inputs; ++k) x[k] = read[k](begin, n);
        for (std::size_t k = 0; k < outputs; ++k) y[k] = write[k].row(begin);
        kernel(static_cast<const W* const*>(x), static_cast<W* const*>(y), n);
        for (Writer<W>& w : write) w.finish(n);
      }
    });
  });
  for (Destination& t : targets) t.commit();
}

double scalar_value(Cpu& cpu, const Array& x) { return *dense(cpu, x, DType::f64).data<double>(); }

/// What a step does not change: `count` outputs get the inputs, which they usually are already.
void keep(Cpu& cpu, Ins in, std::size_t input, Outs out, std::size_t output, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const Array &from = in[input + i], &to = out[output + i];
    if (from.data() != to.data()) copy_into(cpu, from, to);
  }
}

template <bool decoupled, class W>
void adam_block(const op::Adam& op, double factor, const W* const* x, W* const* y, std::int64_t n) {
  const auto step = static_cast<double>(op.step);
  const W scale1 = W(1 / (1 - std::pow(op.beta1, step))), scale2 = W(1 / (1 - std::pow(op.beta2, step)));
  const W beta1 = W(op.beta1), rest1 = W(1 - op.beta1), beta2 = W(op.beta2), rest2 = W(1 - op.beta2);
  const W lr = W(op.lr), eps = W(op.eps), clip = W(factor);
  const W decay = W(op.weight_decay), kept = W(1 - op.lr * op.weight_decay);
  const W *parameter = x[0], *gradient = x[1], *first = x[2], *second = x[3];
  W *new_parameter = y[0], *new_first = y[1], *new_second = y[2];
  for_each_index(n, [=](std::int64_t i) {
    const W p = parameter[i];
    const W g = decoupled ? gradient[i] * clip : gradient[i] * clip + p * decay;
    const W m = first[i] * beta1 + g * rest1;
    const W v = second[i] * beta2 + g * g * rest2;
    new_parameter[i] = (decoupled ? p * kept : p) - m * scale1 / (std::sqrt(v * scale2) + eps) * lr;
    new_first[i] = m;
    new_second[i] = v;
  });
}

template <class W>
void plain_sgd_block(const op::Sgd& op, double factor, const W* const* x, W* const* y, std::int64_t n) {
  const W lr = W(op.lr), decay = W(op.weight_decay), clip = W(factor);
  const W *parameter = x[0], *gradient = x[1];
  W* new_parameter = y[0];
  for_each_index(n, [=](std::int64_t i) {
    new_parameter[i] = parameter[i] - (gradient[i] * clip + parameter[i] * decay) * lr;
  });
}

template <bool nesterov, class W>
void momentum_sgd_block(const op::Sgd& op, double factor, const W* const* x, W* const* y, std::int64_t n) {
  const W lr = W(op.lr), decay = W(op.weight_decay), clip = W(factor), momentum = W(op.momentum);
  const W *parameter = x[0], *gradient = x[1], *velocity = x[2];
  W *new_parameter = y[0], *new_velocity = y[1];
  for_each_index(n, [=](std::int64_t i) {
    const W g = gradient[i] * clip + parameter[i] * decay;
    const W v = velocity[i] * momentum + g;
    new_parameter[i] = parameter[i] - (nesterov ? g + v * momentum : v) * lr;
    new_velocity[i] = v;
  });
}

/// In double: squares of large f32 numbers would overflow, and the sum of all shares of a tensor rounds to
/// the same f32 as that of the whole.
template <class W>
double sum_of_squares(const W* x, std::int64_t n) {
  constexpr std::int64_t lanes = 16;  // independent sums, which the compiler makes vectors of
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t j = 0; j < lanes; ++j) {
      const auto value = static_cast<double>(x[i + j]);
      sums[j] += value * value;
    }
  for (std::int64_t j = 0; i + j < n; ++j) {
    const auto value = static_cast<double>(x[i + j]);
    sums[j] += value * value;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace

void run(Cpu& cpu, const op::GlobalNorm&, Ins in, Outs out) {
  std::vector<Array> sources;
  for (std::size_t i = 0; i < in.size(); ++i) sources.push_back(dense(cpu, in[i]));
  const std::vector<Piece> pieces = pieces_of(in, in.size());
  std::vector<double> partial(pieces.size());
  for_pieces(pieces, [&](const Piece& piece) {
    visit_wide(in[piece.tensor].dtype(), [&]<class W>() {
      Reader<W> read(sources[piece.tensor], chunk_size);
      const std::int64_t n = piece.end - piece.begin;
      partial[static_cast<std::size_t>(&piece - pieces.data())] = sum_of_squares(read(piece.begin, n), n);
    });
  });
  double total = 0;
  for (const double p : partial) total += p;
  const double norm = std::sqrt(total);
  convert_block(DType::f64, &norm, out[0].dtype(), out[0].data(), 1);
}

void run(Cpu& cpu, const op::Adam& attributes, Ins in, Outs out) {
  const std::size_t count = (in.size() - 1) / 4;
  const double clip = scalar_value(cpu, in[4 * count]);
  if (clip < 0) {
    keep(cpu, in, 0, out, 0, count);
    keep(cpu, in, 2 * count, out, count, 2 * count);
    if (attributes.copies) keep(cpu, in, 0, out, 3 * count, count);
    return;
  }
  op::Adam op = attributes;
  if (in.size() > 4 * count + 1) {
    const Array schedule = dense(cpu, in[4 * count + 1]);
    op.lr *= schedule.data<double>()[0];
    op.step += static_cast<std::int64_t>(schedule.data<double>()[1]);
  }
  const auto step = [&](auto x, auto y, std::int64_t n) {
    if (op.decoupled)
      adam_block<true>(op, clip, x, y, n);
    else
      adam_block<false>(op, clip, x, y, n);
  };
  if (!op.copies) return update_lists<4, 3>(cpu, in, out, count, step);
  update_lists<4, 4>(cpu, in, out, count, [&](auto x, auto y, std::int64_t n) {
    step(x, y, n);
    std::copy_n(y[0], n, y[3]);  // rounded as it is written
  });
}

void run(Cpu& cpu, const op::Sgd& attributes, Ins in, Outs out) {
  const std::size_t count = (in.size() - 1) / 3;
  const double clip = scalar_value(cpu, in[3 * count]);
  if (clip < 0) {
    keep(cpu, in, 0, out, 0, count);
    return keep(cpu, in, 2 * count, out, count, count);
  }
  op::Sgd op = attributes;
  if (in.size() > 3 * count + 1) op.lr *= dense(cpu, in[3 * count + 1]).data<double>()[0];
  if (op.momentum != 0) {
    return update_lists<3, 2>(cpu, in, out, count, [&](auto x, auto y, std::int64_t n) {
      if (op.nesterov)
        momentum_sgd_block<true>(op, clip, x, y, n);
      else
        momentum_sgd_block<false>(op, clip, x, y, n);
    });
  }
  update_lists<2, 1>(cpu, in, out, count,
                     [&](auto x, auto y, std::int64_t n) { plain_sgd_block(op, clip, x, y, n); });
  keep(cpu, in, 2 * count, out, count, count);  // the buffers
}

}  // namespace ferrite
