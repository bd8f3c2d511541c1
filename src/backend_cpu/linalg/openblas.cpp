// Finds OpenBLAS as Linux distributions have it, and keeps its number of threads.
#include "backend_cpu/linalg/openblas.hpp"

#include <dlfcn.h>

#include <mutex>

#include "ferrite/core/thread_pool.hpp"

namespace ferrite::cpu {

namespace {

void* library() {
  static void* const handle = [] {
    void* found = nullptr;
    for (const char* name : {"libopenblas.so.0", "libopenblas.so"})
      if (!found) found = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (const char* name :
         {"spotrf_", "dpotrf_", "sgetrf_", "dgetrf_", "sgeqrf_", "dgeqrf_", "sorgqr_", "dorgqr_", "ssyevd_",
          "dsyevd_", "sgesdd_", "dgesdd_", "cblas_strsm", "cblas_dtrsm", "cblas_sgemm", "cblas_dgemm"})
      if (found && !dlsym(found, name)) found = nullptr;  // built without LAPACK
    return found;
  }();
  return handle;
}

struct Threads {
  std::mutex mutex;
  int on_one = 0;  // objects of OpenBlasOnOneThread
  int set = 0;     // what OpenBLAS was told last; 0: nothing yet
};
Threads& threads() {
  static Threads state;
  return state;
}

void tell(Threads& state, int count) {
  if (state.set == count) return;
  using F = void(int);
  static auto* const set = reinterpret_cast<F*>(find_in_openblas("openblas_set_num_threads"));
  if (set) set(count);
  state.set = count;
}

}  // namespace

void* find_in_openblas(const char* function) { return library() ? dlsym(library(), function) : nullptr; }

bool openblas_runs_side_by_side() {
  static const bool has_posix_threads = [] {
    enum { serial, posix_threads, openmp };  // as OpenBLAS numbers them
    using F = int();
    auto* const kind = reinterpret_cast<F*>(find_in_openblas("openblas_get_parallel"));
    return kind && kind() == posix_threads;
  }();
  return has_posix_threads;
}

void give_openblas_our_threads() {
  Threads& state = threads();
  const std::lock_guard lock(state.mutex);
  if (state.on_one == 0) tell(state, num_threads());
}

OpenBlasOnOneThread::OpenBlasOnOneThread() {
  if (!library()) return;
  Threads& state = threads();
  const std::lock_guard lock(state.mutex);
  if (state.on_one++ == 0) tell(state, 1);
}

OpenBlasOnOneThread::~OpenBlasOnOneThread() {
  if (!library()) return;
  Threads& state = threads();
  const std::lock_guard lock(state.mutex);
  --state.on_one;
}

}  // namespace ferrite::cpu
