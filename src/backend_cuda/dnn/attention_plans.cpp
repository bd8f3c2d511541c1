// Attention as the graphs that cuDNN's engines look for. Order and dtypes of the operations matter to them:
// another graph of the same meaning is refused or slow.
#include "backend_cuda/dnn/attention_plans.hpp"

#include <fmt/format.h>

#include <bit>
#include <initializer_list>
#include <limits>

#include "backend_cuda/dnn/dnn_graph.hpp"
#include "backend_cuda/runtime/compile_times.hpp"
#include "backend_cuda/runtime/libraries.hpp"
#include "backend_cuda/runtime/stopwatch.hpp"

namespace ferrite::cuda {

struct AttentionPlan {
  DnnPlan plan;
  std::vector<std::int64_t> ids;  // of the arrays in memory, in the order of `execute`, then of scalars
  std::deque<float> scalars;
  bool backward;
  std::int64_t row_sums;     // elements of an f32 array that the backward pass keeps for each query
  std::int64_t dq_elements;  // and of one in which dq is summed; 0: it is written at once
};

namespace {

using Extents = DnnGraph::Extents;
using Id = DnnGraph::Id;

enum Place : std::uint8_t { q_at, k_at, v_at, o_at, grad_at, dq_at, dk_at, dv_at };

/// The deterministic gradient stores B H T S elements of 16 bits.
constexpr std::size_t most_attention_workspace = std::size_t{8} << 30;

class Builder {
 public:
  explicit Builder(const AttentionProblem& p)
      : p_(p),
        type_(dnn_data_type(p.dtype)),
        pairs_{p.batch, p.heads, p.queries, p.keys},
        rows_{p.batch, p.heads, p.queries, 1} {}

  DnnGraph graph;
  std::vector<Id> memory;

  void forward() {
    const Id q = array(q_at, p_.queries, p_.depth), k = transposed(k_at, p_.keys, p_.depth),
             v = array(v_at, p_.keys, p_.width), o = array(o_at, p_.queries, p_.width), lse = row_array();
    Id s = biased(scaled(product(q, k)));
    if (p_.causal) s = masked(s);
    const Id top = row_value(), sum = row_value(), log = row_value();
    graph.reduce(CUDNN_REDUCE_TENSOR_MAX, top, s);
    const Id e = exponential(difference(s, top));
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, sum, e);
    graph.pointwise(CUDNN_POINTWISE_LOG, log, sum);
    graph.pointwise(CUDNN_POINTWISE_ADD, lse, top, log);
    const Id weights = graph.value(pairs_, type_);
    graph.pointwise(CUDNN_POINTWISE_DIV, weights, e, sum);
    graph.matmul(weights, v, o);
    memory = {q, k, v, o, lse};
    if (bias_ != 0) memory.push_back(bias_);
  }

  void backward() {
    const Id q = array(q_at, p_.queries, p_.depth), k = transposed(k_at, p_.keys, p_.depth),
             v = transposed(v_at, p_.keys, p_.width), o = array(o_at, p_.queries, p_.width),
             lse = row_array(), grad = array(grad_at, p_.queries, p_.width),
             dq = array(dq_at, p_.queries, p_.depth), dk = array(dk_at, p_.keys, p_.depth),
             dv = array(dv_at, p_.keys, p_.width), row_sums = row_array();
    // The sum over grad o of each query.
    const std::int64_t h = p_.heads, t = p_.queries, e = p_.width;
    const Id products = graph.value({p_.batch, h, t, e}, {h * t * e, t * e, h * e, 1}, CUDNN_DATA_FLOAT);
    graph.pointwise(CUDNN_POINTWISE_MUL, products, grad, o);
    const Id sums = row_value();
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, sums, products);
    graph.pointwise(CUDNN_POINTWISE_MUL, row_sums, sums, graph.scalar(1));
    // The weights again, and dv.
    Id s = difference(biased(scaled(product(q, k))), lse);
    if (p_.causal) s = masked(s);
    const Id weights = exponential(s);
    product_into(dv, flipped(weights), grad, p_.width);
    // The gradient of the scores, and dk.
    const Id difference_of_rows = difference(product(grad, v), row_sums), unscaled = graph.value(pairs_);
    graph.pointwise(CUDNN_POINTWISE_MUL, unscaled, difference_of_rows, weights);
    const Id ds = scaled(unscaled);
    product_into(dk, flipped(ds), q, p_.depth);
    // dq: written by the product itself, or summed in f32 in whatever order its parts arrive.
    const std::int64_t* strides = p_.strides[k_at];
    const Id keys = graph.value({p_.batch, p_.key_heads, p_.keys, p_.depth},
                                {strides[0], strides[1], strides[2], 1}, CUDNN_DATA_FLOAT);
    graph.reshape(keys, k);
    memory = {q, k, v, o, lse, grad, dq, dk, dv, row_sums};
    if (bias_ != 0) memory.push_back(bias_);
    if (p_.same_bits) {
      graph.matmul(ds, keys, dq);
      return;
    }
    const std::int64_t d = p_.depth;
    const Id total = graph.tensor({p_.batch, h, t, d}, {h * t * d, t * d, d, 1}, CUDNN_DATA_FLOAT);
    graph.matmul(ds, keys, total);
    graph.pointwise(CUDNN_POINTWISE_IDENTITY, dq, total);
    memory.push_back(total);
  }

 private:
  Id array(Place place, std::int64_t rows, std::int64_t columns) {
    const std::int64_t* strides = p_.strides[place];
    return graph.tensor({p_.batch, heads_of(place), rows, columns}, {strides[0], strides[1], strides[2], 1},
                        type_);
  }
  Id transposed(Place place, std::int64_t rows, std::int64_t columns) {
    const std::int64_t* strides = p_.strides[place];
    return graph.tensor({p_.batch, heads_of(place), columns, rows}, {strides[0], strides[1], 1, strides[2]},
                        type_);
  }
  std::int64_t heads_of(Place place) const {
    const bool of_keys = place == k_at || place == v_at || place == dk_at || place == dv_at;
    return of_keys ? p_.key_heads : p_.heads;
  }
  /// One f32 for each query.
  Id row_array() { return graph.tensor(rows_, row_strides(), CUDNN_DATA_FLOAT); }
  Id row_value() { return graph.value(rows_, row_strides(), CUDNN_DATA_FLOAT); }
  Extents row_strides() const { return {p_.heads * p_.queries, p_.queries, 1, 1}; }

  Id product(Id a, Id b) {
    const Id s = graph.value(pairs_);
    graph.matmul(a, b, s);
    return s;
  }
  /// to = a b for every head of queries, summed over the heads that share keys.
  void product_into(Id to, Id a, Id b, std::int64_t columns) {
    if (p_.key_heads == p_.heads) return graph.matmul(a, b, to);
    const std::int64_t h = p_.heads, n = p_.keys;
    const Id each = graph.value({p_.batch, h, n, columns}, {h * n * columns, n * columns, columns, 1}, type_);
    graph.matmul(a, b, each);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, to, each);
  }
  Id biased(Id s) {
    if (p_.bias_batch == 0) return s;
    const std::int64_t h = p_.bias_heads, t = p_.queries, pitch = (p_.keys + 7) / 8 * 8;
    bias_ = graph.tensor({p_.bias_batch, h, t, p_.keys}, {h * t * pitch, t * pitch, pitch, 1}, type_);
    const Id y = graph.value(pairs_);
    graph.pointwise(CUDNN_POINTWISE_ADD, y, s, bias_);
    return y;
  }
  Id scaled(Id s) {
    const Id y = graph.value(pairs_);
    if (scale_ == 0) scale_ = graph.scalar(std::bit_cast<float>(p_.scale));
    graph.pointwise(CUDNN_POINTWISE_MUL, y, s, scale_);
    return y;
  }
  Id difference(Id s, Id row) {
    const Id y = graph.value(pairs_);
    graph.pointwise(CUDNN_POINTWISE_SUB, y, s, row);
    return y;
  }
  Id exponential(Id s) {
    const Id y = graph.value(pairs_);
    graph.pointwise(CUDNN_POINTWISE_EXP, y, s);
    return y;
  }
  /// -inf where the key comes after the query.
  Id masked(Id s) {
    const Id row = graph.value(pairs_, CUDNN_DATA_INT32), column = graph.value(pairs_, CUDNN_DATA_INT32),
             keeps = graph.value(pairs_, CUDNN_DATA_BOOLEAN), y = graph.value(pairs_);
    graph.index(2, row, s);
    graph.index(3, column, s);
    graph.pointwise(CUDNN_POINTWISE_CMP_GE, keeps, row, column, 0, CUDNN_DATA_BOOLEAN);
    graph.pointwise(CUDNN_POINTWISE_BINARY_SELECT, y, s,
                    graph.scalar(-std::numeric_limits<float>::infinity()), keeps);
    return y;
  }
  /// Keys as rows, rounded for the product that follows.
  Id flipped(Id s) {
    const std::int64_t t = p_.queries, n = p_.keys;
    const Id y = graph.value({p_.batch, p_.heads, n, t}, {p_.heads * t * n, t * n, 1, n}, type_);
    graph.reshape(y, s);
    return y;
  }

  const AttentionProblem& p_;
  cudnnDataType_t type_;
  Extents pairs_, rows_;
  Id scale_ = 0, bias_ = 0;
};

std::shared_ptr<const AttentionPlan> build(Libraries& libraries, const AttentionProblem& p) {
  Builder builder(p);
  if (p.backward)
    builder.backward();
  else
    builder.forward();
  auto plan = builder.graph.plan(libraries, most_attention_workspace);
  if (!plan) return nullptr;
  const std::int64_t rows = p.backward ? p.batch * p.heads * p.queries : 0;
  std::vector<std::int64_t> ids = builder.memory;
  ids.insert(ids.end(), builder.graph.scalar_ids().begin(), builder.graph.scalar_ids().end());
  return std::make_shared<AttentionPlan>(AttentionPlan{std::move(*plan), std::move(ids),
                                                       builder.graph.scalars(), p.backward, rows,
                                                       p.same_bits ? 0 : rows * p.depth});
}

/// Dense rows that start at multiples of 16 bytes.
bool lies_well(const Array& x) {
  if (!x.defined()) return true;
  const Shape& strides = x.layout().strides;
  if (strides[3] != 1 || reinterpret_cast<std::uintptr_t>(x.data()) % 16 != 0) return false;
  for (int i = 0; i < 3; ++i)
    if (strides[i] % 8 != 0 || (strides[i] <= 0 && x.shape()[i] > 1)) return false;
  return true;
}

}  // namespace

AttentionProblem AttentionProblem::of(const AttentionArrays& a, bool causal, double scale, bool same_bits) {
  AttentionProblem p{};
  p.batch = a.q.shape()[0], p.heads = a.q.shape()[1], p.queries = a.q.shape()[2], p.depth = a.q.shape()[3];
  p.key_heads = a.k.shape()[1], p.keys = a.v.shape()[2], p.width = a.v.shape()[3];
  if (a.bias.defined()) p.bias_batch = a.bias.shape()[0], p.bias_heads = a.bias.shape()[1];
  const Array* arrays[] = {&a.q, &a.k, &a.v, &a.o, &a.grad, &a.dq, &a.dk, &a.dv};
  for (int i = 0; i < 8; ++i)
    for (int axis = 0; arrays[i]->defined() && axis < 3; ++axis)
      p.strides[i][axis] = arrays[i]->layout().strides[axis];
  p.scale = std::bit_cast<std::uint32_t>(static_cast<float>(scale));
  p.dtype = a.q.dtype();
  p.causal = causal;
  p.backward = a.grad.defined();
  p.same_bits = same_bits || !p.backward;
  return p;
}

namespace {

/// Fewer products take as long as their launches, and a plan for every length of a prompt does not pay.
constexpr double worth_a_plan = 1e7;
/// For longer sequences own kernels are never faster, but for narrow heads, which cuDNN fills up to 64
/// columns.
constexpr std::int64_t longest_compared = 128, narrow = 32;

double products_of(const AttentionArrays& a) {
  const Shape &q = a.q.shape(), &v = a.v.shape();
  return static_cast<double>(q[0] * q[1] * q[2]) * static_cast<double>(v[2] * (q[3] + v[3]));
}

}  // namespace

bool suits_dnn(const AttentionArrays& a, bool causal, double scale) {
  const std::int64_t queries = a.q.shape()[2], keys = a.v.shape()[2], depth = a.q.shape()[3],
                     width = a.v.shape()[3];
  if (size_of(a.q.dtype()) != 2 || a.lse.dtype() != DType::f32) return false;
  if (depth % 8 != 0 || width % 8 != 0 || depth > 256 || width > 256 || queries < 2 || keys < 2) return false;
  if ((causal && queries != keys) || products_of(a) < worth_a_plan) return false;
  if (!(scale > 0)) return false;  // cuDNN 9.14 gives NaN
  // With more entries in a batch, or more heads, its kernels fail when they run: as deep as a grid may be.
  constexpr std::int64_t most_entries = 65535;
  if (a.q.shape()[0] > most_entries || a.q.shape()[1] > most_entries) return false;
  // Older versions of cuDNN give wrong gradients for rows beyond a multiple of 128.
  if (a.grad.defined() && (queries % 128 != 0 || keys % 128 != 0) && cudnnGetVersion() <= 91500) return false;
  for (const Array* x : {&a.q, &a.k, &a.v, &a.o, &a.grad, &a.dq, &a.dk, &a.dv})
    if (!lies_well(*x)) return false;
  return a.lse.layout().is_contiguous();
}

bool suits_dnn_with_mask(const AttentionArrays& a, bool causal, double scale) {
  return a.q.shape()[2] > longest_compared && suits_dnn(a, causal, scale);
}

namespace {

void execute(Libraries& libraries, const Call& call, const AttentionPlan& plan, const AttentionArrays& a) {
  const Scratch<float> row_sums(call, plan.row_sums), dq_sums(call, plan.dq_elements);
  std::vector<void*> pointers;
  for (const Array* x : {&a.q, &a.k, &a.v, &a.o, &a.lse}) pointers.push_back(x->data<void>());
  if (plan.backward) {
    for (const Array* x : {&a.grad, &a.dq, &a.dk, &a.dv}) pointers.push_back(x->data<void>());
    pointers.push_back(row_sums.data());
  }
  if (a.bias.defined()) pointers.push_back(a.bias.data<void>());
  if (plan.dq_elements > 0) pointers.push_back(dq_sums.data());
  for (const float& scalar : plan.scalars) pointers.push_back(const_cast<float*>(&scalar));
  execute(libraries, call, plan.plan, plan.ids, pointers);
}

std::string text_of(const AttentionProblem& p) {
  const std::string bias =
      p.bias_batch > 0 ? fmt::format(" bias {} x {}", p.bias_batch, p.bias_heads) : std::string();
  return fmt::format("attention {}{}{}{} {} b {} h {} / {} t {} s {} d {} e {}",
                     p.backward ? "gradient" : "forward", p.causal ? " causal" : "",
                     p.same_bits ? "" : " fastest", bias, to_string(p.dtype), p.batch, p.heads, p.key_heads,
                     p.queries, p.keys, p.depth, p.width);
}

}  // namespace

std::shared_ptr<const AttentionPlan> AttentionPlans::get(Libraries& libraries, const Call& call,
                                                         const AttentionArrays& arrays,
                                                         const AttentionProblem& p,
                                                         const std::function<void()>& own) {
  const std::lock_guard guard(mutex_);
  Entry& entry = plans_[p];
  if (entry.is_final) return entry.wins ? entry.plan : nullptr;
  const CompileScope compiling("plan " + text_of(p));
  if (!entry.plan) entry.plan = build(libraries, p);
  const bool cannot_win = p.queries > longest_compared && std::max(p.depth, p.width) > narrow;
  entry.is_final = !entry.plan || cannot_win || !libraries.tuner().compares();
  if (entry.is_final) return entry.plan;
  const std::string names[] = {"cudnn", "own"};
  if (call.context().is_capturing()) {
    const auto known = libraries.tuner().recall(text_of(p), names);
    entry.wins = known.value_or(0) == 0;
    return entry.wins ? entry.plan : nullptr;
  }
  const auto choice = libraries.tuner().choose(text_of(p), names, [&](std::size_t i) {
    return median_seconds(call.context(), [&] {
      if (i == 0)
        execute(libraries, call, *entry.plan, arrays);
      else
        own();
    });
  });
  entry.is_final = true;
  entry.wins = choice.value_or(0) == 0;
  return entry.wins ? entry.plan : nullptr;
}

bool attend_by_dnn(Cuda& cuda, const Call& call, const AttentionArrays& arrays, bool causal, double scale,
                   const std::function<void()>& own) {
  if (!suits_dnn(arrays, causal, scale)) return false;
  Libraries& libraries = Libraries::of(call.context());
  const auto problem =
      AttentionProblem::of(arrays, causal, scale, cuda.determinism() == Determinism::same_bits);
  const auto plan = libraries.attention().get(libraries, call, arrays, problem, own);
  if (!plan) return false;
  execute(libraries, call, *plan, arrays);
  return true;
}

}  // namespace ferrite::cuda
