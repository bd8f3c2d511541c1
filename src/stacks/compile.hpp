// How a file here compiles a stack: FERRITE_COMPILE_STACK(Lazy<Cpu>).
#pragma once

#include "ferrite/stacks.hpp"

namespace ferrite {

template <CompiledStack B>
const OpTable<B>& op_table() {
  return detail::own_table<B>;
}

}  // namespace ferrite

#define FERRITE_COMPILE_STACK(...)                                          \
  namespace ferrite {                                                       \
  template FERRITE_API const OpTable<__VA_ARGS__>& op_table<__VA_ARGS__>(); \
  }
