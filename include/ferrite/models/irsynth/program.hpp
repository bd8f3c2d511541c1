// A synthetic kernel: a random program that is defined for its inputs by construction, and how to launch it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ferrite/core/rng.hpp"
#include "ferrite/kernel/interpreter.hpp"
#include "ferrite/kernel/ir.hpp"

namespace ferrite::irsynth {

/// The values of a parameter: numbers from [low, high] (integers with both ends), the same for every
/// component and field. An array has a shape.
struct Argument {
  double low = 0, high = 0;
  std::vector<std::int64_t> shape;
  bool output = false;  // the kernel writes it
};

struct Program {
  kernel::Module module;  // with one kernel
  std::string category, description;
  int level = 0;
  std::vector<std::int64_t> grid;
  int block_dim = 256;
  std::vector<Argument> arguments;  // one for each parameter

  const kernel::Function& kernel() const { return module.kernels[0]; }
};

/// A kind of kernel. Each is one file in src/models/irsynth/categories.
class Sketch;
struct Category {
  std::string_view name, description;
  int lowest_level;
  void (*make)(Sketch& sketch);
  int highest_level = 7;
  bool in_warp = true;  // false: it uses features that Warp does not have
};
inline constexpr int highest_level = 7;

/// All categories, in the order of the documentation.
FERRITE_API std::span<const Category> categories();
/// Throws ValueError listing the names.
FERRITE_API const Category& category(std::string_view name);

/// The program is a function of the key. `level` says how much it may use:
///   0 one expression, 1 several statements, 2 branches, 3 loops, 4 arrays of more axes, 5 functions and
///   structs, 6 atomics, 7 all that, and a gradient.
FERRITE_API Program make_program(const Category& category, int level, RandomKey key);

/// The arguments of a launch. Number e of parameter p (components one after the other) comes from element e
/// of the sequence {key.seed, key.stream + p}: floats are low + (high - low) * uniform_at<float>, computed in
/// f64 and rounded to the type, integers integer_at from low to high.
FERRITE_API std::vector<kernel::Value> make_arguments(const Program& program, RandomKey key);

}  // namespace ferrite::irsynth
