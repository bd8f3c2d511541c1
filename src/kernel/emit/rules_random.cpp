// How random numbers are written: Warp's generator, as in kernel/builtins/random.cpp.
#include "kernel/emit/rules.hpp"

namespace ferrite::kernel {

namespace {

using namespace fit;

constexpr EmitRule rules[] = {
    {Builtin::rand_init, count<1>, "pcg_hash(uint32($0))", "", "@pcg_hash"},
    {Builtin::rand_init, any, "pcg_hash(uint32($0) + pcg_hash(uint32($1)))", "", "@pcg_hash"},
    {Builtin::randi, count<1>, "randi($0)", R"(
state = pcg_hash(state);
return int(state);)",
     "@pcg_hash"},
    {Builtin::randi, any, "randi($0, $1, $2)", R"(
state = pcg_hash(state);
return int(state % (uint32(high) - uint32(low)) + uint32(low));)",
     "@pcg_hash"},
    {Builtin::randu, count<1>, "randu($0)", R"(
state = pcg_hash(state);
return state;)",
     "@pcg_hash"},
    {Builtin::randu, any, "randu($0, $1, $2)", R"(
state = pcg_hash(state);
return state % (high - low) + low;)",
     "@pcg_hash"},
    {Builtin::randf, count<1>, "random_unit($0)", "", "@random_unit"},
    {Builtin::randf, any, "randf($0, $1, $2)", "return (high - low) * random_unit(state) + low;",
     "@random_unit"},
    {Builtin::randn, any, "randn($0)", R"(
const float radius = $m{sqrt}(-2.0f * $m{log}(random_unit(state) + 5.96e-8f));
return radius * $m{cos}(random_angle(state));)",
     "@random_angle"},
    {Builtin::sample_triangle, any, "sample_triangle($0)", R"(
const float r = $m{sqrt}(random_unit(state));
return $R{1.0f - r, random_unit(state) * r};)",
     "@random_unit"},
    {Builtin::sample_unit_ring, any, "sample_unit_ring($0)", R"(
const float t = random_angle(state);
return $R{$m{cos}(t), $m{sin}(t)};)",
     "@random_angle"},
    {Builtin::sample_unit_disk, any, "sample_unit_disk($0)", R"(
const float r = $m{sqrt}(random_unit(state));
const float t = random_angle(state);
return $R{r * $m{cos}(t), r * $m{sin}(t)};)",
     "@random_angle"},
    {Builtin::sample_unit_square, any, "sample_unit_square($0)", "each random_unit(state) - 0.5f",
     "@random_unit"},
    {Builtin::sample_unit_cube, any, "sample_unit_cube($0)", "each random_unit(state) - 0.5f",
     "@random_unit"},
    {Builtin::sample_unit_sphere_surface, any, "sample_unit_sphere_surface($0)", R"(
const float phi = $m{acos}(1.0f - 2.0f * random_unit(state));
const float theta = random_angle(state);
return $R{$m{cos}(theta) * $m{sin}(phi), $m{sin}(theta) * $m{sin}(phi), $m{cos}(phi)};)",
     "@random_angle"},
    {Builtin::sample_unit_sphere, any, "sample_unit_sphere($0)", R"(
const float phi = $m{acos}(1.0f - 2.0f * random_unit(state));
const float theta = random_angle(state);
const float r = $m{cbrt}(random_unit(state));
return $R{r * $m{cos}(theta) * $m{sin}(phi), r * $m{sin}(theta) * $m{sin}(phi), r * $m{cos}(phi)};)",
     "@random_angle"},
    {Builtin::sample_unit_hemisphere_surface, any, "sample_unit_hemisphere_surface($0)", R"(
const float phi = $m{acos}(1.0f - random_unit(state));
const float theta = random_angle(state);
return $R{$m{cos}(theta) * $m{sin}(phi), $m{sin}(theta) * $m{sin}(phi), $m{cos}(phi)};)",
     "@random_angle"},
    {Builtin::sample_unit_hemisphere, any, "sample_unit_hemisphere($0)", R"(
const float phi = $m{acos}(1.0f - random_unit(state));
const float theta = random_angle(state);
const float r = $m{cbrt}(random_unit(state));
return $R{r * $m{cos}(theta) * $m{sin}(phi), r * $m{sin}(theta) * $m{sin}(phi), r * $m{cos}(phi)};)",
     "@random_angle"},
};

}  // namespace

std::span<const EmitRule> random_rules() { return rules; }

}  // namespace ferrite::kernel
