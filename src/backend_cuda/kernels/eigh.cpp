// eigh by cuSOLVER: a batch all at once, the smallest by rotations; a large matrix by itself.
#include "ferrite/ops/eigh.hpp"

#include "backend_cuda/linalg/matrices.hpp"

namespace ferrite {

using namespace cuda;

namespace {

/// Vectors [n, n] column-major in place of a, values [n].
template <class T>
void diagonalize(const Call& call, const Solver& solver, const MatrixBatch<T>& a,
                 const MatrixBatch<T>& values, int n, const Verdicts& verdicts) {
  using Calls = SolverCalls<T>;
  constexpr auto vectors = CUSOLVER_EIG_MODE_VECTOR;
  constexpr auto triangle = CUBLAS_FILL_MODE_UPPER;  // our lower one, column-major
  constexpr int most_by_rotations = 32;
  int size = 0;
  if (a.count > 1 && n <= most_by_rotations) {
    syevjInfo_t options = nullptr;
    check(cusolverDnCreateSyevjInfo(&options), call.op());
    const std::unique_ptr<syevjInfo, decltype(&cusolverDnDestroySyevjInfo)> owner(options,
                                                                                  cusolverDnDestroySyevjInfo);
    const int count = static_cast<int>(a.count);
    check(Calls::syevj_batched_size(solver.dense(), vectors, triangle, n, a.first, n, values.first, &size,
                                    options, count),
          call.op());
    const Scratch<T> work(call, std::max(size, 1));
    return check(Calls::syevj_batched(solver.dense(), vectors, triangle, n, a.first, n, values.first,
                                      work.data(), size, verdicts.data(), options, count),
                 call.op());
  }
#if CUSOLVER_VERSION >= 11701  // before CUDA 12.6.2 they go one after the other
  if (a.count > 1) {
    constexpr cudaDataType type = std::is_same_v<T, double> ? CUDA_R_64F : CUDA_R_32F;
    cusolverDnParams_t options = nullptr;
    check(cusolverDnCreateParams(&options), call.op());
    const std::unique_ptr<cusolverDnParams, decltype(&cusolverDnDestroyParams)> owner(
        options, cusolverDnDestroyParams);
    std::size_t device_bytes = 0, host_bytes = 0;
    check(cusolverDnXsyevBatched_bufferSize(solver.dense(), options, vectors, triangle, n, type, a.first, n,
                                            type, values.first, type, &device_bytes, &host_bytes, a.count),
          call.op());
    const Scratch<std::byte> work(call, static_cast<std::int64_t>(device_bytes) + 1);
    std::vector<std::byte> host_work(host_bytes + 1);
    return check(cusolverDnXsyevBatched(solver.dense(), options, vectors, triangle, n, type, a.first, n, type,
                                        values.first, type, work.data(), device_bytes, host_work.data(),
                                        host_bytes, verdicts.data(), a.count),
                 call.op());
  }
#endif
  check(Calls::syevd_size(solver.dense(), vectors, triangle, n, a.first, n, values.first, &size), call.op());
  const Scratch<T> work(call, std::max(size, 1));
  for (std::int64_t i = 0; i < a.count; ++i)
    check(Calls::syevd(solver.dense(), vectors, triangle, n, a[i], n, values[i], work.data(), size,
                       verdicts.at(i)),
          call.op());
}

}  // namespace

void run(Cuda& cuda, const op::Eigh& op, Ins in, Outs out) {
  const Call call(cuda, op.type_name);
  refuse_capture(call);
  const Shape& shape = in[0].shape();
  const Shape batch = detail::batch_of(shape);
  const std::int64_t count = batch.numel(), n = shape.back();
  if (count * n == 0) return call.finish();
  Destination packed(cuda, out[0], false);
  const Array vectors = dense_copy(cuda, in[0]),
              values = cuda.allocate({detail::with_matrix(shape, 1, n), in[0].dtype()});
  visit_real(in[0].dtype(), [&]<class T>() {
    const MatrixBatch<T> a{vectors.data<T>(), count, n * n};
    const Verdicts finite(call, count), found(call, count);
    judge_finite(call, a, n, op::Part::lower_triangle, finite.data());
    finite.check(batch, "not finite");
    diagonalize<T>(call, Solver(call.context()), a, {values.data<T>(), count, n}, static_cast<int>(n), found);
    found.check(batch, "one whose eigenvalues were not found");
    const std::int64_t stride = (n + 1) * n;
    copy_into(cuda, values, packed_part(packed.array(), batch, stride, 0, 1, n));
    copy_into(cuda, turned(vectors), packed_part(packed.array(), batch, stride, n, n, n));
    T* const first = packed.array().data<T>() + n;
    make_largest_positive<T>(call, {first, count, stride}, n, n, {nullptr, 0, 0}, 0);
  });
  packed.commit();
  call.finish();
}

}  // namespace ferrite
