#include "cli/bench/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "ferrite/ops/batch_norm.hpp"
#include "ferrite/ops/conv2d.hpp"
#include "ferrite/ops/softmax.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite::cli::bench {

namespace {

/// "4096x1024"
std::string extents(const Shape& shape) {
  std::string text;
  for (int i = 0; i < shape.rank(); ++i) text += (i > 0 ? "x" : "") + std::to_string(shape[i]);
  return text;
}

/// Makes rows of one dtype.
class Rows {
 public:
  Rows(std::vector<Row>& rows, DType dtype) : rows_(rows), dtype_(dtype) {}

  Input normal(const Shape& shape) const { return {{shape, dtype_}}; }

  template <class Op>
  void add(const char* name, const std::string& size, const Op& op, std::vector<Input> inputs,
           Bound bound = Bound::bytes) {
    Metas in;
    for (const Input& input : inputs) in.push_back(input.meta);
    const Metas out = op.infer(in);
    rows_.push_back({name,
                     std::string(to_string(dtype_)),
                     size,
                     bound,
                     op_cost(op, in, out),
                     op_tolerance(op, in, out),
                     std::move(inputs),
                     [op](TensorSpan<AnyBackend> tensors) { return eval_list(op, tensors); },
                     {}});
  }

  void vectors(const char* size, std::int64_t n) {
    const Input x = normal({n});
    add("copy", size, op::Copy{dtype_}, {x});
    add("add", size, op::Binary{op::BinaryFn::add}, {x, x});
    add("mul", size, op::Binary{op::BinaryFn::mul}, {x, x});
    add("relu", size, op::Unary{op::UnaryFn::relu}, {x});
    add("sigmoid", size, op::Unary{op::UnaryFn::sigmoid}, {x});
    add("gelu", size, op::Unary{op::UnaryFn::gelu_tanh}, {x});
    add("sum", size, op::Reduce{op::ReduceFn::sum, {}}, {{{{n}, dtype_}, Draw::uniform}});
  }

  void tables(const Shape& shape) {
    const Input x = normal(shape), channels = normal({shape[1]});
    add("softmax", extents(shape), op::Softmax{}, {x});
    add("layer_norm", extents(shape), op::LayerNorm{}, {x, channels, channels});
    add("cross_entropy", extents(shape), op::SoftmaxCrossEntropy{},
        {x, {{{shape[0]}, DType::i64}, Draw::classes, shape[1]}});
  }

  void matmul(std::int64_t n) {
    add("matmul", std::to_string(n), op::Matmul{}, {normal({n, n}), normal({n, n})}, Bound::flops);
  }

  /// As many outputs as inputs, and an image as large as before.
  void conv2d(const Shape& image) {
    op::ConvGeometry geometry;
    geometry.padding = {1, 1};
    add("conv2d", extents(image), op::Conv2d{geometry}, {normal(image), normal({image[1], image[1], 3, 3})},
        Bound::flops);
  }

  void pools(const Shape& image) {
    add("max_pool2d", extents(image), op::MaxPool2d{}, {normal(image)});
    add("avg_pool2d", extents(image), op::AvgPool2d{}, {normal(image)});
  }

  /// Weights are f32, as in mixed precision.
  void batch_norm(const Shape& image) {
    const Input channels{{{image[1]}, dtype_ == DType::f64 ? DType::f64 : DType::f32}};
    add("batch_norm", extents(image), op::BatchNorm{}, {normal(image), channels, channels});
  }

 private:
  std::vector<Row>& rows_;
  DType dtype_;
};

/// Throws if a wanted name is not among those that rows have.
template <class Get>
void check_known(const char* what, const std::vector<std::string>& wanted, const std::vector<Row>& rows,
                 Get&& get) {
  std::vector<std::string> known;
  for (const Row& row : rows)
    if (std::find(known.begin(), known.end(), get(row)) == known.end()) known.push_back(get(row));
  for (const std::string& name : wanted)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw ValueError(
          fmt::format("[bench] '{}' is the {} of no row; they are {}", name, what, fmt::join(known, ", ")));
}

bool holds(const std::vector<std::string>& wanted, const std::string& name) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
}

std::regex compiled(const std::string& filter) {
  try {
    return std::regex(filter);
  } catch (const std::regex_error& e) {
    throw ValueError(fmt::format("[bench] --filter '{}' is not a regular expression: {}", filter, e.what()));
  }
}

}  // namespace

std::vector<Row> all_rows(const std::vector<std::string>& dtypes) {
  constexpr std::pair<const char*, std::int64_t> sizes[] = {{"1K", 1'000},       {"10K", 10'000},
                                                            {"100K", 100'000},   {"1M", 1'000'000},
                                                            {"10M", 10'000'000}, {"100M", 100'000'000}};
  const Shape large{32, 64, 128, 128}, small{1, 32, 64, 64}, middle{32, 64, 32, 32};
  std::vector<Row> rows;
  for (const std::string& name : dtypes) {
    const DType dtype = dtype_from_string(name);
    if (!is_floating(dtype))
      throw ValueError(
          fmt::format("[bench] '{}' is not a dtype of the rows; they are f32, f64, f16, bf16", name));
    Rows of(rows, dtype);
    for (const auto& [size, n] : sizes) of.vectors(size, n);
    of.tables({4096, 1024});
    for (std::int64_t n = 128; n <= 4096; n *= 2) of.matmul(n);
    for (const Shape& image : {small, large}) of.conv2d(image);
    of.pools(large);
    of.batch_norm(middle);
    if (dtype == DType::f32) add_training_rows(rows);
    add_example_rows(rows, dtype);
  }
  return rows;
}

std::vector<Row> select_rows(const Selection& selection) {
  std::vector<Row> rows = all_rows(selection.dtypes);
  check_known("op", selection.ops, rows, [](const Row& row) { return row.op; });
  check_known("size", selection.sizes, rows, [](const Row& row) { return row.size; });
  const std::regex filter = compiled(selection.filter);
  std::erase_if(rows, [&](const Row& row) {
    return (selection.sizes.empty() && row.size == example_size) || !holds(selection.ops, row.op) ||
           !holds(selection.sizes, row.size) || !std::regex_search(row.name(), filter);
  });
  if (rows.empty())
    throw ValueError("[bench] no row has such an op, size and name; `ferrite bench --list` shows all rows");
  return rows;
}

bool suits_plain_loops(const Cost& cost) { return cost.flops <= 2.2e9 && cost.bytes <= 1.3e8; }

bool runs_plain_loops(const std::string& backend) { return backend == "reference" || backend == "parity"; }

}  // namespace ferrite::cli::bench
