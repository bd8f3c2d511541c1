// all_reduce of a group beside MPI_Allreduce called directly: `mpirun -n 2
// build/release/benches/mpi_all_reduce`. The two run in turn, each after a barrier; medians of rank 0.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "ferrite/dist/mpi.hpp"
#include "ferrite/stacks.hpp"

using namespace ferrite;

namespace {

class Timer {
 public:
  template <class F>
  void time(const F& f) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = std::chrono::steady_clock::now();
    f();
    times_.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  double median() {
    std::sort(times_.begin(), times_.end());
    return times_[times_.size() / 2];
  }

 private:
  std::vector<double> times_;
};

}  // namespace

int main() {
  dist::MpiGroup group, by_mpi(dist::Reduction::mpi);
  Cpu b;
  if (group.rank() == 0)
    std::printf("%d ranks, f32, us\n%10s %14s %12s %15s %8s\n", group.size(), "kB", "MPI_Allreduce",
                "all_reduce", "Reduction::mpi", "ratio");
  for (const std::int64_t kb : {4, 64, 1024, 16 << 10, 64 << 10}) {
    const Array in = ones(b, {kb * 256}).primitive(), out = zeros(b, {kb * 256}).primitive();
    Timer direct, ours, theirs;
    for (int i = 0; i < (kb > 1024 ? 15 : 200); ++i) {
      direct.time([&] {
        MPI_Allreduce(in.data(), out.data(), static_cast<int>(kb * 256), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      });
      ours.time([&] { group.all_reduce(in, out); });
      theirs.time([&] { by_mpi.all_reduce(in, out); });
    }
    if (group.rank() == 0)
      std::printf("%10lld %14.1f %12.1f %15.1f %8.2f\n", static_cast<long long>(kb), direct.median(),
                  ours.median(), theirs.median(), direct.median() / ours.median());
  }
}
