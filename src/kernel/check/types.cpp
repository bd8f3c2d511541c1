// Annotations.
#include <fmt/format.h>

#include <set>

#include "kernel/check/checker.hpp"

namespace ferrite::kernel {

using Kind = syntax::ExprKind;

std::optional<std::string_view> ModuleChecker::warp_name(const syntax::Expr& e) const {
  if (e.kind != Kind::attribute || e.args[0].kind != Kind::name) return std::nullopt;
  const auto module = file_.modules.find(e.args[0].text);
  if (module == file_.modules.end() || module->second != "warp") return std::nullopt;
  return e.text;
}

void ModuleChecker::check_bound(const syntax::Expr& e) const {
  std::set<const syntax::Expr*> seen;
  const auto look = [&](const auto& self, const syntax::Expr& at, int depth) -> void {
    if (depth > deepest_constant) return;
    if (at.kind == Kind::name)
      with_constant(at.text, [&](const syntax::Expr& value) {
        if (value.kind == Kind::none && !value.text.empty())
          fail(at.place,
               fmt::format("the value of '{}' comes from Python: bind one to {}", at.text, value.text));
        if (seen.insert(&value).second) self(self, value, depth + 1);
      });
    for (const syntax::Expr& arg : at.args) self(self, arg, depth + 1);
  };
  look(look, e, 0);
}

std::optional<Type> ModuleChecker::simple_type(const syntax::Expr& e, int depth) const {
  if (const auto name = warp_name(e)) return type_from_name(*name);
  if (e.kind != Kind::name || depth > 50) return std::nullopt;
  if (e.text == "float" || e.text == "int" || e.text == "bool") return type_from_name(e.text);
  if (const auto index = find_struct(e.text)) return Type::structure_of(static_cast<std::size_t>(*index));
  std::optional<Type> alias;  // vec = wp.vec3
  with_constant(e.text, [&](const syntax::Expr& value) { alias = simple_type(value, depth + 1); });
  return alias;
}

Type ModuleChecker::annotation(const syntax::Expr& e, const syntax::Expr* any) const {
  if (const auto simple = simple_type(e)) return *simple;
  if (e.kind == Kind::name && e.text == "Any") {
    if (any != nullptr) return annotation(*any);
    fail(e.place,
         "Any stands for the type that a launch gives: bind one to the kernel's parameter, kernel.name");
  }
  check_bound(e);
  // wp.array[float], wp.array2d[float], wp.array(dtype=float, ndim=2), wp.array2d(dtype=float)
  const bool applied = e.kind == Kind::subscript || e.kind == Kind::call;
  const syntax::Expr& head = applied ? e.args[0] : e;
  const auto name = warp_name(head);
  if (!applied || !name || !name->starts_with("array")) {
    if (name && name->starts_with("array"))
      fail(e.place, fmt::format("the array has no element type: write wp.{}[float]", *name));
    fail(e.place, e.kind == Kind::name ? fmt::format("unknown type '{}'", e.text)
                                       : "this is not a type of the kernel language");
  }
  int dims = 1;
  if (name->size() == 7 && (*name)[5] >= '1' && (*name)[5] <= '4' && (*name)[6] == 'd')
    dims = (*name)[5] - '0';
  else if (*name != "array")
    fail(head.place, fmt::format("wp.{} is not a type of the kernel language", *name));
  const syntax::Expr* dtype = nullptr;
  for (std::size_t i = 1; i < e.args.size(); ++i) {
    const std::string_view keyword = e.kind == Kind::call ? std::string_view(e.keywords[i - 1]) : "";
    if (keyword == "ndim" && e.args[i].kind == Kind::integer && e.args[i].integer >= 1 &&
        e.args[i].integer <= 4)
      dims = static_cast<int>(e.args[i].integer);
    else if ((keyword.empty() || keyword == "dtype") && dtype == nullptr)
      dtype = &e.args[i];
    else
      fail(e.args[i].place, "an array has dtype and ndim, which is 1 to 4");
  }
  if (dtype == nullptr) fail(e.place, "the array has no element type: write dtype=float");
  const Type element = annotation(*dtype, any);
  if (element.is_array()) fail(dtype->place, "arrays of arrays are not supported: use an array of more axes");
  if (element.is_struct()) {
    const Struct& s = module_.structs[element.structure];
    if (s.fields.empty()) fail(dtype->place, fmt::format("an array of '{}', which has no fields", s.name));
    for (const Variable& f : s.fields)
      if (f.type.is_array())
        fail(dtype->place,
             fmt::format("arrays of structs that hold arrays are not supported: field '{}'", f.name));
  }
  return element.array(dims);
}

}  // namespace ferrite::kernel
