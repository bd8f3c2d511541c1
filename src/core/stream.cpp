// Stream output for the values of the core.
#include "ferrite/core/stream.hpp"

#include <ostream>

namespace ferrite {

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape); }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << to_string(dtype); }
std::ostream& operator<<(std::ostream& out, Device device) { return out << to_string(device); }
std::ostream& operator<<(std::ostream& out, const Meta& meta) { return out << to_string(meta); }

}  // namespace ferrite
