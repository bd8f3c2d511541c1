// The backend stacks that the library compiles (backend/compiled.hpp), all at once: a program that uses them
// compiles in seconds.
#pragma once

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/backend/any.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/cuda.hpp"
#include "ferrite/backend/lazy.hpp"
#include "ferrite/backend/parity.hpp"
#include "ferrite/backend/profiled.hpp"
#include "ferrite/backend/reference.hpp"
#include "ferrite/ops/all.hpp"
#include "ferrite/tensor_data.hpp"
