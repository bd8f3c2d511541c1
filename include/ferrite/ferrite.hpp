// The umbrella header: tensors, ops, backends, autodiff, layers, optimisers, training, files.
#pragma once

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/autodiff/checkpoint.hpp"
#include "ferrite/ops/list.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/tensor.hpp"
#include "ferrite/tensor_data.hpp"
