// The categories. A new one is a file here, its declaration, and its line in registry.cpp.
#pragma once

#include "models/irsynth/sketch.hpp"

namespace ferrite::irsynth::all {

extern const Category arithmetic, math, vector, matrix, control_flow, nested_loops, stencil, reduction, scan,
    gather_scatter, functions, structs, atomic, shared_memory, physics, fem;

}  // namespace ferrite::irsynth::all
