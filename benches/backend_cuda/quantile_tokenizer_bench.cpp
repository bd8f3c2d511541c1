// QuantileTokenizer with 100 bins on a table of 10 million rows and 20 columns: fits and tokens of a table in
// device memory, and of one in pinned host memory, whose copy alone has a row too.
#include <memory>

#include "ferrite/backend/cuda_device.hpp"
#include "ferrite/models/quantile_tokenizer/quantile_tokenizer.hpp"
#include "suite.hpp"

namespace ferrite::bench {
namespace {

using quantile_tokenizer::QuantileTokenizer;

constexpr std::int64_t rows = 10'000'000, columns = 20;
constexpr double bytes = 4.0 * rows * columns;

/// Normal numbers whose rows or columns lie dense; small whole numbers; numbers of eight orders of magnitude.
Tensor<Cuda> table(Cuda& cuda, std::string_view kind) {
  Rng rng(1);
  if (kind == "columns") return transpose(randn(cuda, {columns, rows}, rng), 0, 1);
  if (kind == "ties") return floor(rand(cuda, {rows, columns}, rng, 0, 4));
  const auto x = randn(cuda, {rows, columns}, rng);
  return kind == "tails" ? exp(x * 3) : x;
}

Measurement fit(std::string_view kind) {
  Cuda cuda;
  const auto x = table(cuda, kind);
  Measurement m = time_calls(
      cuda, [&] { QuantileTokenizer::fit(x); }, Clock::latency);
  m.bytes = bytes;
  return m;
}

Measurement transform(std::string_view kind) {
  Cuda cuda;
  const auto x = table(cuda, kind);
  const auto fitted = QuantileTokenizer::fit(x);
  Tensor<Cuda> tokens;
  Measurement m = time_calls(cuda, [&] { tokens = fitted.transform(x); });
  m.bytes = 1.25 * bytes;
  return m;
}

/// What `use` makes of a table that comes from pinned memory.
template <class F>
Measurement from_pinned(F use) {
  Cuda cuda;
  const auto memory = pinned_memory(static_cast<std::size_t>(bytes));
  cuda.copy_to_host(table(cuda, "rows").primitive(), memory.get());
  Measurement m = time_calls(
      cuda,
      [&] {
        use(from_bytes(cuda, {{rows, columns}, DType::f32}, memory.get()));
      },
      Clock::latency);
  m.bytes = bytes;
  return m;
}

}  // namespace

void add_tokenizer(Suite& suite) {
  const auto name = [](std::string_view op, std::string_view kind) {
    return row_name(op, "f32", kind) + "/10Mx20";
  };
  for (const char* kind : {"rows", "columns", "ties", "tails"}) {
    suite.add(name("tokenizer_fit", kind), [=] { return fit(kind); });
    suite.add(name("tokenizer_transform", kind), [=] { return transform(kind); });
  }
  suite.add(name("host_copy", "pinned"),
            [] { return from_pinned([](const Tensor<Cuda>& x) { x.backend().synchronize(); }); });
  suite.add(name("tokenizer_fit_transform", "pinned"),
            [] { return from_pinned([](const Tensor<Cuda>& x) { QuantileTokenizer::fit_transform(x); }); });
}

}  // namespace ferrite::bench
