// What a user's project looks like: find_package(ferrite), one include, one loss, one gradient. And the
// helpers for kernels, as a kernel outside the library uses them.
#include <ferrite/ferrite.hpp>

#include "cpu_kit.hpp"

int main() {
  ferrite::Autodiff<ferrite::Cpu> backend;
  ferrite::Rng rng(0);
  const auto w = ferrite::parameter(ferrite::randn(backend, {3, 4}, rng), "w");
  const auto x = ferrite::randn(backend, {8, 4}, rng);
  const auto loss = mean(square(linear(x, w)));
  return loss.backward().of(w).shape() == ferrite::Shape{3, 4} && cpu_kit_works() ? 0 : 1;
}
