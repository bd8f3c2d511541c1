// Autocast below another decorator, which would never see it lower an input.
#include "ferrite/backend/cpu.hpp"
#include "ferrite/decorators/autocast.hpp"
#include "ferrite/decorators/profiled.hpp"

using namespace ferrite;
#ifdef COMPLETE
using B = Autocast<Profiled<Cpu>>;
#else
using B = Profiled<Autocast<Cpu>>;
#endif

int main() { B b; }
