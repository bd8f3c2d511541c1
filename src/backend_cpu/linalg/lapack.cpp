// Finds OpenBLAS and gives its functions plain signatures: sizes by value, workspaces as large as they ask
// for.
#include "backend_cpu/linalg/lapack.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

namespace ferrite::cpu {

namespace {

/// OpenBLAS with LAPACK inside, as Linux distributions have it.
void* library() {
  static void* const handle = [] {
    void* found = nullptr;
    for (const char* name : {"libopenblas.so.0", "libopenblas.so"})
      if (!found) found = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (const char* name :
         {"spotrf_", "dpotrf_", "sgetrf_", "dgetrf_", "sgeqrf_", "dgeqrf_", "sorgqr_", "dorgqr_", "ssyevd_",
          "dsyevd_", "sgesdd_", "dgesdd_", "cblas_strsm", "cblas_dtrsm"})
      if (found && !dlsym(found, name)) found = nullptr;  // built without LAPACK
    return found;
  }();
  return handle;
}

/// The Fortran function of this name for T, e.g. dpotrf_.
template <class F, class T>
F* function(const char* name) {
  return reinterpret_cast<F*>(
      dlsym(library(), (std::string(1, sizeof(T) == 4 ? 's' : 'd') + name + "_").c_str()));
}

/// Calls f(work, size) twice: first with size -1, which asks for the best size.
template <class T, class F>
void with_workspace(F&& f) {
  T best = 0;
  f(&best, -1);
  // The size is a whole number that T may have rounded down.
  const int size =
      std::max(1, static_cast<int>(std::nextafter(best, std::numeric_limits<T>::infinity())) + 1);
  std::vector<T> work(static_cast<std::size_t>(size));
  f(work.data(), size);
}

namespace calls {

template <class T>
int potrf(char triangle, int n, T* a) {
  using F = void(const char*, const int*, T*, const int*, int*);
  static F* const call = function<F, T>("potrf");
  int info = 0;
  const int stride = std::max(n, 1);
  call(&triangle, &n, a, &stride, &info);
  return info;
}

template <class T>
int getrf(int m, int n, T* a, int* pivots) {
  using F = void(const int*, const int*, T*, const int*, int*, int*);
  static F* const call = function<F, T>("getrf");
  int info = 0;
  const int stride = std::max(m, 1);
  call(&m, &n, a, &stride, pivots, &info);
  return info;
}

template <class T>
int geqrf(int m, int n, T* a, T* tau) {
  using F = void(const int*, const int*, T*, const int*, T*, T*, const int*, int*);
  static F* const call = function<F, T>("geqrf");
  int info = 0;
  const int stride = std::max(m, 1);
  with_workspace<T>([&](T* work, int size) { call(&m, &n, a, &stride, tau, work, &size, &info); });
  return info;
}

template <class T>
int orgqr(int m, int n, int k, T* a, const T* tau) {
  using F = void(const int*, const int*, const int*, T*, const int*, const T*, T*, const int*, int*);
  static F* const call = function<F, T>("orgqr");
  int info = 0;
  const int stride = std::max(m, 1);
  with_workspace<T>([&](T* work, int size) { call(&m, &n, &k, a, &stride, tau, work, &size, &info); });
  return info;
}

template <class T>
int syevd(char triangle, int n, T* a, T* values) {
  using F =
      void(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, int*, const int*, int*);
  static F* const call = function<F, T>("syevd");
  const char vectors = 'V';
  int info = 0, integers = -1;
  const int stride = std::max(n, 1);
  std::vector<int> whole(1);
  with_workspace<T>([&](T* work, int size) {
    call(&vectors, &triangle, &n, a, &stride, values, work, &size, whole.data(), &integers, &info);
    if (size == -1) {
      integers = std::max(1, whole[0]);
      whole.resize(static_cast<std::size_t>(integers));
    }
  });
  return info;
}

template <class T>
int gesdd(int m, int n, T* a, T* s, T* u, T* vt) {
  using F = void(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*, const int*, T*,
                 const int*, int*, int*);
  static F* const call = function<F, T>("gesdd");
  const char reduced = 'S';
  int info = 0;
  const int stride = std::max(m, 1), k = std::min(m, n), vt_stride = std::max(k, 1);
  std::vector<int> whole(static_cast<std::size_t>(8 * std::max(k, 1)));
  with_workspace<T>([&](T* work, int size) {
    call(&reduced, &m, &n, a, &stride, s, u, &stride, vt, &vt_stride, work, &size, whole.data(), &info);
  });
  return info;
}

template <class T>
void trsm(bool lower, bool transposed, bool unit_diagonal, int n, int k, const T* a, T* x) {
  enum {
    row_major = 101,
    no_transpose = 111,
    transpose,
    upper_triangle = 121,
    lower_triangle,
    non_unit = 131,
    unit,
    left = 141
  };
  using F = void(int, int, int, int, int, int, int, T, const T*, int, T*, int);
  static F* const found =
      reinterpret_cast<F*>(dlsym(library(), sizeof(T) == 4 ? "cblas_strsm" : "cblas_dtrsm"));
  found(row_major, left, lower ? lower_triangle : upper_triangle, transposed ? transpose : no_transpose,
        unit_diagonal ? unit : non_unit, n, k, T{1}, a, n, x, k);
}

}  // namespace calls

}  // namespace

template <class T>
const Lapack<T>* Lapack<T>::get() {
  static constexpr Lapack functions{calls::potrf<T>, calls::getrf<T>, calls::geqrf<T>, calls::orgqr<T>,
                                    calls::syevd<T>, calls::gesdd<T>, calls::trsm<T>};
  return library() ? &functions : nullptr;
}
template struct Lapack<float>;
template struct Lapack<double>;

namespace {
/// The first to come keeps the number of threads, the last to leave sets it again.
struct ThreadsOutside {
  std::mutex mutex;
  int users = 0, threads = 1;
};
ThreadsOutside& threads_outside() {
  static ThreadsOutside state;
  return state;
}
void set_threads(int count) {
  using F = void(int);
  if (auto* const set = reinterpret_cast<F*>(dlsym(library(), "openblas_set_num_threads"))) set(count);
}
}  // namespace

LapackOnOneThread::LapackOnOneThread() {
  if (!library()) return;
  ThreadsOutside& outside = threads_outside();
  const std::lock_guard lock(outside.mutex);
  if (outside.users++ > 0) return;
  using F = int();
  auto* const get = reinterpret_cast<F*>(dlsym(library(), "openblas_get_num_threads"));
  outside.threads = get ? get() : 1;
  if (outside.threads > 1) set_threads(1);
}

LapackOnOneThread::~LapackOnOneThread() {
  if (!library()) return;
  ThreadsOutside& outside = threads_outside();
  const std::lock_guard lock(outside.mutex);
  if (--outside.users == 0 && outside.threads > 1) set_threads(outside.threads);
}

bool has_lapack() { return library() != nullptr; }

std::string describe_lapack() {
  if (!library()) return "not found: Eigen factorises large matrices, on one thread";
  using Config = char*();
  auto* const config = reinterpret_cast<Config*>(dlsym(library(), "openblas_get_config"));
  return config ? config() : "OpenBLAS";
}

}  // namespace ferrite::cpu
