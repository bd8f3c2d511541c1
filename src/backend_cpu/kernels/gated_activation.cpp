// gated_activation and its gradient, each one pass over memory.
#include "ferrite/ops/gated_activation.hpp"

#include "backend_cpu/math/element_math.hpp"
#include "ferrite/cpu/rows.hpp"

namespace ferrite {

using namespace cpu;

namespace {

using op::UnaryFn;

/// Of f32 the functions are polynomials; of f64 they are calls.
template <class W>
constexpr Loop loop_of = std::is_same_v<W, float> ? Loop::vector : Loop::scalar;

template <UnaryFn fn, class W>
void activate_block(const W* gate, const W* up, W* y, std::int64_t n) {
  for_each_index<loop_of<W>>(
      n, [=](std::int64_t i) { y[i] = formulas::unary(Math<W>{}, fn, gate[i], W{1}) * up[i]; });
}

template <UnaryFn fn, class W>
void differentiate_block(const W* dy, const W* gate, const W* up, W* dgate, W* dup, std::int64_t n) {
  for_each_index<loop_of<W>>(
      n, [=](std::int64_t i) { dgate[i] = formulas::backward(Math<W>{}, fn, gate[i], dy[i] * up[i], W{1}); });
  for_each_index<loop_of<W>>(
      n, [=](std::int64_t i) { dup[i] = dy[i] * formulas::unary(Math<W>{}, fn, gate[i], W{1}); });
}

bool has_kernel(Activation activation) {
  return activation == Activation::silu || activation == Activation::gelu;
}

/// f.template operator()<fn, W>() with the function and the type in which it is computed.
template <class F>
void visit_activation(Activation activation, DType dtype, F&& f) {
  visit_wide(dtype, [&]<class W>() {
    if (activation == Activation::silu)
      f.template operator()<UnaryFn::silu, W>();
    else
      f.template operator()<UnaryFn::gelu_tanh, W>();
  });
}

/// Calls f(begin, n) for the blocks of all elements, on several threads; make() gives each its own f.
template <class Make>
void for_each_block(std::int64_t count, Make&& make) {
  parallel_ranges(count, chunk_size, [&](std::int64_t chunk, std::int64_t end) {
    auto f = make();
    for (std::int64_t begin = chunk; begin < end; begin += block_size)
      f(begin, std::min(block_size, end - begin));
  });
}

}  // namespace

bool accepts(const Cpu&, const op::GatedActivation& op, MetaSpan) { return has_kernel(op.activation); }

void run(Cpu& cpu, const op::GatedActivation& op, Ins in, Outs out) {
  const Array gate = dense(cpu, in[0]), up = dense(cpu, in[1]);
  Destination y(cpu, out[0], false);
  visit_activation(op.activation, gate.dtype(), [&]<UnaryFn fn, class W>() {
    for_each_block(gate.shape().numel(), [&] {
      return [g = Reader<W>(gate, block_size), u = Reader<W>(up, block_size), to = Writer<W>(y, block_size)](
                 std::int64_t begin, std::int64_t n) mutable {
        activate_block<fn>(g(begin, n), u(begin, n), to.row(begin), n);
        to.finish(n);
      };
    });
  });
  y.commit();
}

bool accepts(const Cpu&, const op::GatedActivationBackward& op, MetaSpan in) {
  return has_kernel(op.activation) && in[0].dtype == in[1].dtype;
}

void run(Cpu& cpu, const op::GatedActivationBackward& op, Ins in, Outs out, Accumulate mask) {
  const Array dy = dense(cpu, in[0]), gate = dense(cpu, in[1]), up = dense(cpu, in[2]);
  Destination dgate(cpu, out[0], accumulates(mask, 0)), dup(cpu, out[1], accumulates(mask, 1));
  visit_activation(op.activation, gate.dtype(), [&]<UnaryFn fn, class W>() {
    for_each_block(gate.shape().numel(), [&] {
      return [d = Reader<W>(dy, block_size), g = Reader<W>(gate, block_size), u = Reader<W>(up, block_size),
              to_gate = Writer<W>(dgate, block_size),
              to_up = Writer<W>(dup, block_size)](std::int64_t begin, std::int64_t n) mutable {
        differentiate_block<fn>(d(begin, n), g(begin, n), u(begin, n), to_gate.row(begin), to_up.row(begin),
                                n);
        to_gate.finish(n);
        to_up.finish(n);
      };
    });
  });
  dgate.commit();
  dup.commit();
}

}  // namespace ferrite
