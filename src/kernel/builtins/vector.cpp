// Vectors and matrices. Sums of products are formed in f64 and rounded once.
#include <algorithm>
#include <cstdlib>

#include "kernel/builtins/rules.hpp"

namespace ferrite::kernel {

namespace {

constexpr std::string_view group = "Vectors and matrices";
constexpr Effect none = Effect::none;

constexpr bool float_vector(Type t) { return t.is_vector() && is_float(t.scalar); }
Result scalar_of(Type t, bool fits) { return fits ? Result(Type::of(t.scalar)) : std::nullopt; }
Result matrix_of(Type t, bool fits) { return fits ? Result(Type::matrix(t.rows, t.scalar)) : std::nullopt; }

Result dots(Types t) {
  return t.size() == 2 && t[0] == t[1] ? scalar_of(t[0], t[0].is_vector() || t[0].is_quaternion())
                                       : std::nullopt;
}
Result double_dots(Types t) {
  return t.size() == 2 && t[0] == t[1] ? scalar_of(t[0], t[0].is_matrix()) : std::nullopt;
}
Result crosses(Types t) {
  return t.size() == 2 && t[0] == t[1] && t[0].is_vector() && t[0].rows == 3 ? Result(t[0]) : std::nullopt;
}
Result lengths(Types t) {
  return t.size() == 1 ? scalar_of(t[0], float_vector(t[0]) || t[0].is_quaternion()) : std::nullopt;
}
Result squared_lengths(Types t) {
  return t.size() == 1 ? scalar_of(t[0], t[0].is_vector() || t[0].is_quaternion()) : std::nullopt;
}
Result directions(Types t) {
  return t.size() == 1 && (float_vector(t[0]) || t[0].is_quaternion()) ? Result(t[0]) : std::nullopt;
}
Result outers(Types t) {
  return t.size() == 2 && t[0] == t[1] ? matrix_of(t[0], float_vector(t[0])) : std::nullopt;
}
Result skews(Types t) {
  return t.size() == 1 ? matrix_of(t[0], float_vector(t[0]) && t[0].rows == 3) : std::nullopt;
}
Result componentwise(Types t) {
  return t.size() == 2 && t[0] == t[1] && (t[0].is_vector() || t[0].is_matrix()) ? Result(t[0])
                                                                                 : std::nullopt;
}
Result positions(Types t) {
  return t.size() == 1 && t[0].is_vector() ? Result(Type::of(ScalarType::u32)) : std::nullopt;
}
Result norms(Types t) { return t.size() == 1 ? scalar_of(t[0], float_vector(t[0])) : std::nullopt; }
Result matrices(Types t) { return t.size() == 1 && t[0].is_matrix() ? Result(t[0]) : std::nullopt; }
Result traces(Types t) { return t.size() == 1 ? scalar_of(t[0], t[0].is_matrix()) : std::nullopt; }
Result diagonals(Types t) { return t.size() == 1 ? matrix_of(t[0], float_vector(t[0])) : std::nullopt; }
Result of_diagonal(Types t) {
  return t.size() == 1 && t[0].is_matrix() ? Result(Type::vector(t[0].rows, t[0].scalar)) : std::nullopt;
}
Result by_name(Types) { return std::nullopt; }  // the call names its type; see the checker
Result of_vectors(Types t) {
  return all_same(t) && t.size() == t[0].rows ? matrix_of(t[0], float_vector(t[0])) : std::nullopt;
}

/// Sum of products over all components, of integers too.
void sum_products(BuiltinCall& c, int other) {
  double sum = 0;
  std::uint64_t whole = 0;
  for (int i = 0; i < c.type_of(0).components(); ++i) {
    sum += c.floating() ? c.real(0, i) * c.real(other, i) : 0;
    whole += static_cast<std::uint64_t>(c.integer(0, i)) * static_cast<std::uint64_t>(c.integer(other, i));
  }
  c.floating() ? c.store(0, sum) : c.store_integer(0, whole);
}
void dot(BuiltinCall& c) { sum_products(c, 1); }
void length_sq(BuiltinCall& c) { sum_products(c, 0); }
double norm(const BuiltinCall& c) {
  double sum = 0;
  for (int i = 0; i < c.type_of(0).rows; ++i) sum += c.real(0, i) * c.real(0, i);
  return std::sqrt(sum);
}
void length(BuiltinCall& c) { c.store(0, norm(c)); }
/// For all zeros: the zero vector, the identity quaternion.
void normalize(BuiltinCall& c) {
  const double l = norm(c);
  for (int i = 0; i < c.type.rows; ++i)
    c.store(i, l > 0 ? c.real(0, i) / l : static_cast<double>(c.type.is_quaternion() && i == 3));
}
void cross(BuiltinCall& c) {
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    if (c.floating())
      c.store(i, c.real(0, j) * c.real(1, k) - c.real(0, k) * c.real(1, j));
    else
      c.store_integer(
          i, static_cast<std::uint64_t>(c.integer(0, j)) * static_cast<std::uint64_t>(c.integer(1, k)) -
                 static_cast<std::uint64_t>(c.integer(0, k)) * static_cast<std::uint64_t>(c.integer(1, j)));
  }
}
void outer(BuiltinCall& c) {
  const int n = c.type.rows;
  for (int i = 0; i < n * n; ++i) c.store(i, c.real(0, i / n) * c.real(1, i % n));
}
void skew(BuiltinCall& c) {
  const double x = c.real(0, 0), y = c.real(0, 1), z = c.real(0, 2);
  const double m[9] = {0, -z, y, z, 0, -x, -y, x, 0};
  for (int i = 0; i < 9; ++i) c.store(i, m[i]);
}
void cw_mul(BuiltinCall& c) {
  for (int i = 0; i < c.type.components(); ++i) {
    if (c.floating())
      c.store(i, c.real(0, i) * c.real(1, i));
    else
      c.store_integer(
          i, static_cast<std::uint64_t>(c.integer(0, i)) * static_cast<std::uint64_t>(c.integer(1, i)));
  }
}
void cw_div(BuiltinCall& c) {
  const Type part = Type::of(c.type.scalar);
  for (int i = 0; i < c.type.components(); ++i) {  // as the operator does it, with its errors
    const Type operands[2] = {part, part};
    Number* const values[2] = {c.values[0] + i, c.values[1] + i};
    BuiltinCall one{c.machine, c.precision, part, operands, values, c.out + i};
    info(Builtin::div).evaluate(one);
  }
}
template <bool smallest>
void argument(BuiltinCall& c) {
  const ScalarType s = c.type_of(0).scalar;
  int best = -1;
  for (int i = 0; i < c.type_of(0).rows; ++i) {
    if (is_float(s) && std::isnan(c.real(0, i))) continue;
    const auto below = [&](int a, int b) {
      if (is_float(s)) return c.real(0, a) < c.real(0, b);
      return s == ScalarType::u64
                 ? static_cast<std::uint64_t>(c.integer(0, a)) < static_cast<std::uint64_t>(c.integer(0, b))
                 : c.integer(0, a) < c.integer(0, b);
    };
    if (best < 0 || (smallest ? below(i, best) : below(best, i))) best = i;
  }
  c.out[0].integer = std::max(best, 0);
}
void norm_l1(BuiltinCall& c) {
  double sum = 0;
  for (int i = 0; i < c.type_of(0).rows; ++i) sum += std::fabs(c.real(0, i));
  c.store(0, sum);
}
void transpose(BuiltinCall& c) {
  const int n = c.type.rows;
  for (int i = 0; i < n * n; ++i) c.out[i] = c.values[0][i % n * n + i / n];
}

/// The matrix without a row and a column, n - 1 squared.
void minor_of(const double* m, int n, int row, int column, double* out) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      if (i != row && j != column) *out++ = m[i * n + j];
}
double determinant_of(const double* m, int n) {
  if (n == 1) return m[0];
  double sum = 0, smaller[9];
  for (int j = 0; j < n; ++j) {
    minor_of(m, n, 0, j, smaller);
    sum += (j % 2 == 0 ? 1 : -1) * m[j] * determinant_of(smaller, n - 1);
  }
  return sum;
}
void load(const BuiltinCall& c, double* m) {
  for (int i = 0; i < c.type_of(0).components(); ++i) m[i] = c.real(0, i);
}
void determinant(BuiltinCall& c) {
  double m[16];
  load(c, m);
  c.store(0, determinant_of(m, c.type_of(0).rows));
}
/// Zeros for a singular matrix.
void inverse(BuiltinCall& c) {
  const int n = c.type.rows;
  double m[16], smaller[9];
  load(c, m);
  const double det = determinant_of(m, n);
  for (int i = 0; i < n * n; ++i) {
    minor_of(m, n, i % n, i / n, smaller);
    const double cofactor = ((i % n + i / n) % 2 == 0 ? 1 : -1) * determinant_of(smaller, n - 1);
    c.store(i, det == 0 ? 0 : cofactor / det);
  }
}
void trace(BuiltinCall& c) {
  double sum = 0;
  const int n = c.type_of(0).rows;
  for (int i = 0; i < n; ++i) sum += c.real(0, i * (n + 1));
  c.store(0, sum);
}
void diag(BuiltinCall& c) {
  const int n = c.type.rows;
  for (int i = 0; i < n * n; ++i) c.out[i] = i % (n + 1) == 0 ? c.values[0][i / (n + 1)] : from_real(0);
}
void get_diag(BuiltinCall& c) {
  for (int i = 0; i < c.type.rows; ++i) c.out[i] = c.values[0][i * (c.type.rows + 1)];
}
void identity(BuiltinCall& c) {
  for (int i = 0; i < c.type.components(); ++i) c.out[i].real = i % (c.type.rows + 1) == 0;
}
template <bool as_rows>
void from_vectors(BuiltinCall& c) {
  const int n = c.type.rows;
  for (int i = 0; i < n * n; ++i) c.out[i] = as_rows ? c.values[i / n][i % n] : c.values[i % n][i / n];
}

constexpr BuiltinInfo rows[] = {
    {Builtin::dot, "dot", "", group, "dot(a: Vector, b: Vector) -> Scalar",
     "Sum of products; of quaternions too.", none, dots, dot},
    {Builtin::ddot, "ddot", "", group, "ddot(a: Matrix, b: Matrix) -> Scalar",
     "Sum of products of all elements.", none, double_dots, dot},
    {Builtin::cross, "cross", "", group, "cross(a: Vector3, b: Vector3) -> Vector3", "Vector product.", none,
     crosses, cross},
    {Builtin::length, "length", "", group, "length(a: Vector) -> Float",
     "Euclidean length; of quaternions too.", none, lengths, length},
    {Builtin::length_sq, "length_sq", "", group, "length_sq(a: Vector) -> Scalar", "dot(a, a).", none,
     squared_lengths, length_sq},
    {Builtin::normalize, "normalize", "", group, "normalize(a: Vector) -> Vector",
     "a / length(a); zeros stay zeros, and a zero quaternion becomes the identity.", none, directions,
     normalize},
    {Builtin::outer, "outer", "", group, "outer(a: Vector, b: Vector) -> Matrix",
     "Element (i, j) is a[i] * b[j].", none, outers, outer},
    {Builtin::skew, "skew", "", group, "skew(vec: Vector3) -> Matrix33",
     "The matrix m with m * x == cross(vec, x).", none, skews, skew},
    {Builtin::cw_mul, "cw_mul", "", group, "cw_mul(a: Any, b: Any) -> Any",
     "Product component by component, of vectors or matrices.", none, componentwise, cw_mul},
    {Builtin::cw_div, "cw_div", "", group, "cw_div(a: Any, b: Any) -> Any",
     "Quotient component by component, of vectors or matrices.", none, componentwise, cw_div},
    {Builtin::argmin, "argmin", "", group, "argmin(a: Vector) -> wp.uint32",
     "Index of the first smallest component.", none, positions, argument<true>},
    {Builtin::argmax, "argmax", "", group, "argmax(a: Vector) -> wp.uint32",
     "Index of the first largest component.", none, positions, argument<false>},
    {Builtin::norm_l1, "norm_l1", "", group, "norm_l1(v: Vector) -> Float", "Sum of absolute values.", none,
     norms, norm_l1},
    {Builtin::transpose, "transpose", "", group, "transpose(a: Matrix) -> Matrix", "Rows as columns.", none,
     matrices, transpose},
    {Builtin::determinant, "determinant", "", group, "determinant(a: Matrix) -> Float", "Determinant.", none,
     traces, determinant},
    {Builtin::inverse, "inverse", "", group, "inverse(a: Matrix) -> Matrix",
     "Inverse; zeros if there is none.", none, matrices, inverse},
    {Builtin::trace, "trace", "", group, "trace(a: Matrix) -> Float", "Sum of the diagonal.", none, traces,
     trace},
    {Builtin::diag, "diag", "", group, "diag(vec: Vector) -> Matrix", "The matrix with this diagonal.", none,
     diagonals, diag},
    {Builtin::get_diag, "get_diag", "", group, "get_diag(mat: Matrix) -> Vector", "The diagonal.", none,
     of_diagonal, get_diag},
    {Builtin::identity, "identity", "", group, "identity(n: Constant, dtype: Type) -> Matrix",
     "The unit matrix.", none, by_name, identity},
    {Builtin::matrix_from_rows, "matrix_from_rows", "", group,
     "matrix_from_rows(a: Vector, b: Vector, ...) -> Matrix", "A matrix of its rows.", none, of_vectors,
     from_vectors<true>},
    {Builtin::matrix_from_cols, "matrix_from_cols", "", group,
     "matrix_from_cols(a: Vector, b: Vector, ...) -> Matrix", "A matrix of its columns.", none, of_vectors,
     from_vectors<false>},
};

}  // namespace

std::span<const BuiltinInfo> vector_builtins() { return rows; }

}  // namespace ferrite::kernel
