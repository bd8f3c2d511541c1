// The fourteen ops every backend must run; all others can be made of them.
#pragma once

#include "ferrite/ops/argreduce.hpp"
#include "ferrite/ops/binary.hpp"
#include "ferrite/ops/copy.hpp"
#include "ferrite/ops/fill.hpp"
#include "ferrite/ops/gather.hpp"
#include "ferrite/ops/iota.hpp"
#include "ferrite/ops/matmul.hpp"
#include "ferrite/ops/random.hpp"
#include "ferrite/ops/reduce.hpp"
#include "ferrite/ops/scan.hpp"
#include "ferrite/ops/scatter.hpp"
#include "ferrite/ops/scatter_add.hpp"
#include "ferrite/ops/unary.hpp"
#include "ferrite/ops/where.hpp"
