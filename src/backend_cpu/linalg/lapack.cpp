// Gives the functions of LAPACK plain signatures: sizes by value, workspaces as large as they ask
// for.
#include "backend_cpu/linalg/lapack.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend_cpu/linalg/openblas.hpp"

namespace ferrite::cpu {

namespace {

/// The Fortran function of this name for T, e.g. dpotrf_.
template <class F, class T>
F* function(const char* name) {
  return reinterpret_cast<F*>(
      find_in_openblas((std::string(1, sizeof(T) == 4 ? 's' : 'd') + name + "_").c_str()));
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
      reinterpret_cast<F*>(find_in_openblas(sizeof(T) == 4 ? "cblas_strsm" : "cblas_dtrsm"));
  found(row_major, left, lower ? lower_triangle : upper_triangle, transposed ? transpose : no_transpose,
        unit_diagonal ? unit : non_unit, n, k, T{1}, a, n, x, k);
}

}  // namespace calls

}  // namespace

template <class T>
const Lapack<T>* Lapack<T>::get() {
  static constexpr Lapack functions{calls::potrf<T>, calls::getrf<T>, calls::geqrf<T>, calls::orgqr<T>,
                                    calls::syevd<T>, calls::gesdd<T>, calls::trsm<T>};
  return has_lapack() ? &functions : nullptr;
}
template struct Lapack<float>;
template struct Lapack<double>;

bool has_lapack() {
  static const bool found = find_in_openblas("dpotrf_") != nullptr;
  return found;
}

std::string describe_lapack() {
  if (!has_lapack()) return "not found: Eigen factorises large matrices, on one thread";
  using Config = char*();
  auto* const config = reinterpret_cast<Config*>(find_in_openblas("openblas_get_config"));
  return config ? config() : "OpenBLAS";
}

}  // namespace ferrite::cpu
