// OpenBLAS, loaded when it is first asked for. ferrite works without it.
#pragma once

namespace ferrite::cpu {

/// A function of OpenBLAS; null if it, or LAPACK inside of it, is not installed.
void* find_in_openblas(const char* function);

/// OpenBLAS gets as many threads as ferrite has (set_num_threads), for calls from outside of parallel jobs.
void give_openblas_our_threads();

/// Several threads may call OpenBLAS at once. True for builds on POSIX threads: a serial one may lack locks,
/// and one on OpenMP lets callers wait for each other, with threads of its own for each.
bool openblas_runs_side_by_side();

/// While one of these lives, OpenBLAS runs on the threads that call it: a batch has threads of its own.
class OpenBlasOnOneThread {
 public:
  OpenBlasOnOneThread();
  ~OpenBlasOnOneThread();
  OpenBlasOnOneThread(const OpenBlasOnOneThread&) = delete;
  OpenBlasOnOneThread& operator=(const OpenBlasOnOneThread&) = delete;
};

}  // namespace ferrite::cpu
