#include "kernel/ir/element_layout.hpp"

#include <algorithm>
#include <cstring>

#include "ferrite/kernel/emit.hpp"
#include "kernel/ir/scalar_forms.hpp"

namespace ferrite::kernel {

void append(ElementLayout& layout, const Module& module, Type type) {
  const auto place = [&](std::uint32_t size, std::uint32_t alignment) {
    layout.alignment = std::max(layout.alignment, alignment);
    layout.size = (layout.size + alignment - 1) / alignment * alignment;
    layout.size += size;
    return layout.size - size;
  };
  if (type.is_array()) {
    layout.parts.push_back({type.scalar, place(sizeof(ArrayArgument), alignof(ArrayArgument)), true, type});
  } else if (type.is_struct()) {
    const ElementLayout inner = layout_of(module, type);
    const std::uint32_t from = place(inner.size, inner.alignment);
    for (auto part : inner.parts) {
      part.offset += from;
      layout.parts.push_back(part);
    }
  } else if (type.kind != Type::Kind::none) {
    const auto size = static_cast<std::uint32_t>(bits_of(type.scalar)) / 8;
    for (int i = 0; i < type.components(); ++i) layout.parts.push_back({type.scalar, place(size, size)});
  }
}

ElementLayout layout_of(const Module& module, Type type) {
  ElementLayout layout;
  if (type.is_struct()) {
    for (const Variable& f : module.structs[type.structure].fields) append(layout, module, f.type);
  } else {
    append(layout, module, type);
  }
  layout.size = (layout.size + layout.alignment - 1) / layout.alignment * layout.alignment;
  return layout;
}

Number read_scalar(ScalarType type, const std::byte* at) {
  return visit_scalar(type, [&]<ScalarType s>() {
    typename Form<s>::Memory x;
    std::memcpy(&x, at, sizeof x);
    const auto lane = Form<s>::load(x);
    return is_float(s) ? from_real(static_cast<double>(lane)) : from_integer(static_cast<std::int64_t>(lane));
  });
}
void write_scalar(ScalarType type, std::byte* at, Number n) {
  visit_scalar(type, [&]<ScalarType s>() {
    using T = typename Form<s>::Lane;
    const auto x = Form<s>::store(is_float(s) ? static_cast<T>(n.real) : static_cast<T>(n.integer));
    std::memcpy(at, &x, sizeof x);
  });
}

}  // namespace ferrite::kernel
