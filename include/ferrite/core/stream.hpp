// std::cout << x for the values of the core; prints the text of to_string.
#pragma once

#include <iosfwd>

#include "ferrite/core/array.hpp"

namespace ferrite {

FERRITE_API std::ostream& operator<<(std::ostream& out, const Shape& shape);
FERRITE_API std::ostream& operator<<(std::ostream& out, DType dtype);
FERRITE_API std::ostream& operator<<(std::ostream& out, Device device);
FERRITE_API std::ostream& operator<<(std::ostream& out, const Meta& meta);

}  // namespace ferrite
