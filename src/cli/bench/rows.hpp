// The rows of `ferrite bench`: what is run, on which inputs, and what it must compute and move.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/stacks.hpp"

namespace ferrite::cli::bench {

/// How an input is drawn. Sums get positive numbers, because around zero their error would measure the
/// cancellation, and small ones, because the largest f16 is 65504: uniform is in [0, most_uniform).
enum class Draw : std::uint8_t { normal, uniform, classes };
inline constexpr double most_uniform = 1e-3;

struct Input {
  Meta meta;
  Draw draw = Draw::normal;
  std::int64_t classes = 0;                        // for Draw::classes: numbers in [0, classes)
  std::optional<HostTensor> value = std::nullopt;  // instead of drawn ones
};

/// Whether a row's speed is given in operations or in bytes per second.
enum class Bound : std::uint8_t { flops, bytes };

/// An op on inputs, or a training step. Peers find it by op, dtype and the shapes of its inputs.
struct Row {
  std::string op, dtype, size;
  Bound bound = Bound::bytes;
  Cost cost;             // of one call
  double tolerance = 0;  // the relative error that the op allows itself; 0 where errors are not measured
  std::vector<Input> inputs;
  std::function<Tensors<AnyBackend>(TensorSpan<AnyBackend>)> call;
  /// Training rows have this in place of `call`: it makes a model and gives one step of its training.
  std::function<std::function<void()>(AnyBackend&)> make_step;

  /// "softmax/f32/4096x1024"
  std::string name() const { return op + "/" + dtype + "/" + size; }
};

/// Which rows to run. What is empty does not restrict, but examples must be asked for by their size.
struct Selection {
  std::vector<std::string> ops, sizes, dtypes{"f32"};
  std::string filter;  // a regular expression that is searched in the name
};

/// Every row in these dtypes, in the order in which they run.
std::vector<Row> all_rows(const std::vector<std::string>& dtypes);
/// Throws ValueError for an op, a size or a dtype that no row has, and if nothing is left.
std::vector<Row> select_rows(const Selection& selection);

/// Adds the steps of two small networks; f32 only.
void add_training_rows(std::vector<Row>& rows);
/// Adds every op of the library that takes inputs of the dtype, on its small example: what a call costs.
/// Their size is `example_size`, by which they are asked for.
void add_example_rows(std::vector<Row>& rows, DType dtype);
inline constexpr std::string_view example_size = "example";

/// Whether plain loops end in seconds: at most 2.2 GFLOP and 130 MB.
bool suits_plain_loops(const Cost& cost);
/// Whether a backend of this name runs plain loops, alone or beside another.
bool runs_plain_loops(const std::string& backend);

}  // namespace ferrite::cli::bench
