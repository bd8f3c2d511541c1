// A vector of a type that no dtype stands for.
#include "ferrite/backend/cpu.hpp"
#include "ferrite/tensor/host.hpp"
#include "ferrite/tensor/tensor.hpp"

using namespace ferrite;
#ifdef COMPLETE
using Value = int;
#else
using Value = unsigned long;
#endif

int main() {
  Cpu b;
  from_vector(b, std::vector<Value>{1, 2});
}
