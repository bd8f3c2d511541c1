// How a layer uses the chosen one of its copies (cmake/InstructionSets.cmake). Each copy has one table of
// functions, the only name in it that others see:
//
//   FERRITE_ISA_TABLE(kernel, Executor) = {compile, run};    in a file of the copies
//   FERRITE_CHOOSE_TABLE(kernel, Executor)                   in another file of the layer: chosen_table()
//
// A table is a constant: no code of a copy may run before it is chosen.
#pragma once

#include "core/isa_list.hpp"
#include "ferrite/core/isa.hpp"

#define FERRITE_ISA_JOIN(layer, isa) ferrite_##layer##_##isa
#define FERRITE_ISA_NAME(layer, isa) FERRITE_ISA_JOIN(layer, isa)
#define FERRITE_ISA_DECLARE(isa, layer, Type) extern "C" const Type FERRITE_ISA_JOIN(layer, isa);
#define FERRITE_ISA_ADDRESS(isa, layer) &FERRITE_ISA_JOIN(layer, isa),

/// The table of this copy. FERRITE_ISA is the set that the file is compiled for.
#define FERRITE_ISA_TABLE(layer, Type)                        \
  extern "C" const Type FERRITE_ISA_NAME(layer, FERRITE_ISA); \
  constinit const Type FERRITE_ISA_NAME(layer, FERRITE_ISA)

/// Defines chosen_table().
#define FERRITE_CHOOSE_TABLE(layer, Type)                                                \
  FERRITE_EACH_ISA(FERRITE_ISA_DECLARE, layer, Type)                                     \
  static const Type& chosen_table() {                                                    \
    static constexpr const Type* all[] = {FERRITE_EACH_ISA(FERRITE_ISA_ADDRESS, layer)}; \
    static const Type& chosen = *all[chosen_isa()];                                      \
    return chosen;                                                                       \
  }
