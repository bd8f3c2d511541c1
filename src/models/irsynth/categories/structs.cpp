// Structs: as parameters, as variables, as arguments of functions.
#include "models/irsynth/categories/categories.hpp"

namespace ferrite::irsynth {
namespace {

void make(Sketch& s) {
  s.functions = s.draw.chance(0.5);
  s.composites = s.draw.chance(0.5);
  s.axes(s.draw.chance(0.25) ? 2 : 1);
  kernel::Struct form;
  form.name = s.fresh({"Params", "Material", "State", "Config", "Body", "Settings", "Cell"});
  const int fields = s.draw.between(2, 4);
  static constexpr std::string_view names[] = {"mass",   "scale", "offset", "center", "rate",
                                               "weight", "limit", "speed",  "axis",   "gain"};
  const int first = s.draw.below(6);
  for (int k = 0; k < fields; ++k)
    form.fields.push_back(
        {std::string(names[first + k]), s.draw.chance(0.3) ? Type::vector(3, s.real) : s.real_type()});
  s.module().structs.push_back(form);
  const Type type = Type::structure_of(0);
  s.description = "a struct of " + std::to_string(fields) + " fields";
  if (s.draw.chance(0.6)) {  // given to the kernel
    const Range range{0.5, 1.5};
    const Term given = s.parameter(s.fresh({"params", "p", "cfg", "mat", "args"}), type, range);
    for (int k = 0; k < fields; ++k) s.let({kernel::field(s.module(), given.expr, k), range});
    return s.body(s.real_type());
  }
  // Made by the thread, and changed.
  const int v = s.declare(type, s.fresh({"state", "obj", "item", "cell"}));
  std::vector<Range> ranges;
  Expr made = kernel::construct(type, {});
  for (int k = 0; k < fields; ++k) {
    const Type field = form.fields[static_cast<std::size_t>(k)].type;
    Term value = field == s.real_type() ? s.expression(1) : s.composite(field, 1);
    ranges.push_back(value.range);
    made.args.push_back(std::move(value.expr));
  }
  const auto place = [&](int k) { return kernel::field(s.module(), kernel::variable(s.function(), v), k); };
  if (s.draw.chance(0.5)) {
    s.assign(kernel::variable(s.function(), v), std::move(made));
  } else {
    s.assign(kernel::variable(s.function(), v), kernel::construct(type, {}));
    for (int k = 0; k < fields; ++k) s.assign(place(k), std::move(made.args[static_cast<std::size_t>(k)]));
  }
  for (int k = 0; k < fields; ++k) s.let({place(k), ranges[static_cast<std::size_t>(k)]});
  s.body(s.real_type());
}

}  // namespace
const Category all::structs{"structs", "@wp.struct parameters and variables", 5, make};
}  // namespace ferrite::irsynth
