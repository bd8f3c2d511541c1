// LAPACK as OpenBLAS has it: it divides the work of one large matrix among
// threads, which Eigen does not. Where it is not installed, Eigen does everything.
#pragma once

#include <string>

#include "ferrite/core/export.hpp"

namespace ferrite::cpu {

/// LAPACK's functions for one type of elements. Matrices are column-major: LAPACK sees the transpose of ours.
/// Each returns LAPACK's `info`, 0 for success.
template <class T>
struct Lapack {
  /// Null if there is no OpenBLAS.
  static const Lapack* get();

  int (*potrf)(char triangle, int n, T* a);
  int (*getrf)(int m, int n, T* a, int* pivots);
  int (*geqrf)(int m, int n, T* a, T* tau);
  int (*orgqr)(int m, int n, int k, T* a, const T* tau);
  int (*syevd)(char triangle, int n, T* a, T* values);
  int (*gesdd)(int m, int n, T* a, T* s, T* u, T* vt);
  /// X [n, k] holds B and becomes the solution of A X = B, or of A^T X = B. This one takes row-major
  /// matrices.
  void (*trsm)(bool lower, bool transposed, bool unit_diagonal, int n, int k, const T* a, T* x);
};

FERRITE_API bool has_lapack();
/// "OpenBLAS 0.3.21 ...", or what its absence means.
FERRITE_API std::string describe_lapack();

}  // namespace ferrite::cpu
