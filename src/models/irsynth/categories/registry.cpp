// All categories, and the making of a program from one.
#include <fmt/format.h>

#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {

std::span<const Category> categories() {
  static const Category list[] = {all::arithmetic,     all::math,          all::vector,  all::matrix,
                                  all::control_flow,   all::nested_loops,  all::stencil, all::scan,
                                  all::gather_scatter, all::functions,     all::structs, all::reduction,
                                  all::atomic,         all::shared_memory, all::physics, all::fem};
  return list;
}

const Category& category(std::string_view name) {
  std::string names;
  for (const Category& c : categories()) {
    if (c.name == name) return c;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", c.name);
  }
  throw ValueError(fmt::format("[irsynth] category '{}': there are {}", name, names));
}

Program make_program(const Category& category, int level, RandomKey key) {
  if (level < category.lowest_level || level > category.highest_level)
    throw ValueError(fmt::format("[irsynth] {} of level {}: it has levels {} to {}", category.name, level,
                                 category.lowest_level, category.highest_level));
  Sketch sketch(key, level);
  category.make(sketch);
  return sketch.finish(category);
}

std::vector<kernel::Value> make_arguments(const Program& program, RandomKey key) {
  std::vector<kernel::Value> values;
  const kernel::Function& k = program.kernel();
  for (std::size_t p = 0; p < program.arguments.size(); ++p) {
    const Argument& a = program.arguments[p];
    const Type type = k.variables[p].type;
    const RandomKey numbers{key.seed, key.stream + p};
    std::uint64_t e = 0;
    const auto fill = [&](Type t, std::vector<kernel::Number>& out, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i, ++e) {
        if (kernel::is_float(t.scalar)) {
          const double x = a.low + (a.high - a.low) * double{uniform_at<float>(numbers, e)};
          out.push_back(kernel::literal(t.scalar, x).number);
        } else {
          const auto low = static_cast<std::int64_t>(a.low), high = static_cast<std::int64_t>(a.high);
          out.push_back(kernel::from_integer(low == high ? low : integer_at(numbers, e, low, high + 1)));
        }
      }
    };
    kernel::Value value{type, {}, a.shape, {}};
    std::int64_t count = 1;
    for (const std::int64_t n : a.shape) count *= n;
    if (type.kind == Type::Kind::structure) {
      for (std::int64_t i = 0; i < count; ++i)
        for (const kernel::Variable& f : program.module.structs[type.structure].fields)
          fill(f.type, value.numbers, f.type.components());
    } else {
      fill(type, value.numbers, count * type.components());
    }
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace ferrite::irsynth
