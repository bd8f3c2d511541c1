// How a file here compiles a stack: FERRITE_COMPILE_STACK(Lazy<Cpu>).
#pragma once

#include "ferrite/backend/own_table.hpp"
#include "ferrite/stacks.hpp"

// A specialisation, not a template that any file could instantiate: Parity<Cpu, Reference> would compile the
// tables of Cpu and Reference again.
#define FERRITE_COMPILE_STACK(...)                           \
  namespace ferrite {                                        \
  template <>                                                \
  FERRITE_API OpTable<__VA_ARGS__> op_table<__VA_ARGS__>() { \
    return detail::own_table<__VA_ARGS__>;                   \
  }                                                          \
  }
