#include "stacks/compile.hpp"

FERRITE_COMPILE_STACK(ErrorModel)
