// Priors: raw Formula datasets, finished datasets of the default mixture and of each family, and how long a
// tensor takes to be handed to another library.
#include "ferrite/interop/dlpack.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "suite.hpp"

namespace ferrite::bench {
namespace {

using namespace priors;

template <class B>
Measurement formula(std::int64_t count) {
  B backend;
  std::int64_t first = 0;
  RawBatch<B> batch;
  Measurement m = time_calls(backend, [&] {
    batch = generate_formula(backend, FormulaConfig{}, 64, 4, 1, first, count);
    first += count;
  });
  m.bytes = static_cast<double>(count) * 64 * 5 * sizeof(float);
  return m;
}

/// 1024 rows, 2 to 20 features, classification; every call makes other datasets.
template <class B>
Measurement datasets(Family family, std::int64_t count) {
  B backend;
  Config config;
  config.family = family;
  std::int64_t first = 0;
  Batch<B> batch;
  return time_calls(backend, [&] {
    batch = generate(backend, config, 1, first, count);
    first += count;
  });
}

Measurement hand_over() {
  Cuda cuda;
  const Tensor<Cuda> x = generate(cuda, Config{}, 1, 0, 16).x;
  return time_calls(
      cuda,
      [&] {
        DLManagedTensor* const managed = to_dlpack(x);
        managed->deleter(managed);
      },
      Clock::wall);
}

}  // namespace

void add_priors(Suite& suite) {
  suite.add("priors/formula/1M", [] { return formula<Cuda>(1'000'000); });
  for (const Family family :
       {Family::mixture, Family::formula, Family::graph, Family::mlp_scm, Family::tree_scm, Family::gp})
    suite.add("priors/" + std::string(to_string(family)) + "/1024x20/8192",
              [=] { return datasets<Cuda>(family, 8192); });
  suite.add("priors/dlpack", hand_over);
}

}  // namespace ferrite::bench
