// The backend stacks that the library compiles (backend/compiled.hpp), all at once: a program that uses them
// compiles in seconds.
#pragma once

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/backend/cpu.hpp"
#include "ferrite/backend/cuda.hpp"
#include "ferrite/backend/reference.hpp"
#include "ferrite/decorators/autocast.hpp"
#include "ferrite/decorators/lazy.hpp"
#include "ferrite/decorators/parity.hpp"
#include "ferrite/decorators/profiled.hpp"
#include "ferrite/stacks/any_backend.hpp"
#include "ferrite/tensor/tensor_data.hpp"
