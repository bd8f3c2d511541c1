#include "dist/backend_checks.hpp"
#include "dist/on_ranks.hpp"

namespace ferrite::testing {
namespace {

TEST(Backends, TensorsOfEveryBackend) {
  for (const int ranks : {1, 2, 3}) on_ranks(ranks, [](Handle& g) { check_backends(*g); });
}

}  // namespace
}  // namespace ferrite::testing
