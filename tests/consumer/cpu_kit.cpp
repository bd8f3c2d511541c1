// Everything that the headers of CPU kernels declare, called from outside: what the library does not export
// fails to link. Rows of a transposed tensor, which are no rows in memory, are summed, and blocks converted.
#include "cpu_kit.hpp"

#include <ferrite/cpu/kernel.hpp>
#include <ferrite/ferrite.hpp>

using namespace ferrite;

namespace {

bool rows_work() {
  Cpu backend;
  const auto x = transpose(from_vector(backend, std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 3}), 0, 1);
  const Array given = x.primitive();  // 3 rows: 1 4, 2 5, 3 6
  if (cpu::rows_in_place(given) || cpu::axis_last(given, 0).shape() != Shape{2, 3}) return false;

  const cpu::Rows rows = cpu::rows_of(backend, given);
  const Array half = cpu::dense(backend, given, DType::f16);
  const Array sums = backend.allocate({Shape{2}, DType::f16});
  cpu::Destination out(backend, sums, false);
  cpu::sum_rows(cpu::dense(backend, rows.array, DType::f32).data<float>(), rows.count, rows.length, out);
  out.commit();

  const Array wide = backend.allocate({Shape{2}, DType::f64});
  cpu::copy_into(backend, sums, wide);
  cpu::copy_into(backend, sums, wide, true);
  cpu::Reader<float> read(half, rows.length);
  cpu::Writer<double> write(cpu::Destination(backend, wide, true), rows.length);
  double* const more = write.row(0);
  for (std::int64_t i = 0; i < rows.length; ++i) more[i] = read(i, 1)[0];
  write.finish(rows.length);
  return wide.data<double>()[0] == 2 * (1 + 2 + 3) + 1 && wide.data<double>()[1] == 2 * (4 + 5 + 6) + 4;
}

bool blocks_work() {
  const float one = 1;
  float x[3], y[3];
  double z[3] = {0, 0, 0};
  cpu::fill_block(DType::f32, &one, x, 3);
  cpu::for_each_index(3, [&](std::int64_t i) { y[i] = x[i]; });
  cpu::add_block(DType::f32, x, y, 3);
  cpu::convert_block(DType::f32, y, DType::f64, z, 3);
  const cpu::Streamed stores(true);
  return z[0] == 2 && z[2] == 2 && !cpu::exceeds_caches(1);
}

}  // namespace

bool cpu_kit_works() { return rows_work() && blocks_work(); }
