// c++ -std=c++17 -O2 -fwrapv
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

// The grid of threads.
struct Launch {
  int shape[4];
  int size;
  int block_dim;
};

template <class T>
struct array {
  T* data;
  int shape[4];
  long long strides[4];  // in elements
  T& operator[](long long i) const { return data[i * strides[0]]; }
  T& operator()(long long i, long long j) const { return data[i * strides[0] + j * strides[1]]; }
  T& at(long long i, long long j) const {
    return data[(i < 0 ? i + shape[0] : i) * strides[0] + (j < 0 ? j + shape[1] : j) * strides[1]];
  }
};

struct vec3 {
  float data[3];
  float& operator[](int i) { return data[i]; }
  const float& operator[](int i) const { return data[i]; }
};

inline vec3 to_vec3(float x) {
  vec3 r;
  for (int i = 0; i < 3; ++i) r[i] = x;
  return r;
}

inline vec3 operator+(const vec3& a, const vec3& b) {
  vec3 r;
  for (int i = 0; i < 3; ++i) r[i] = a[i] + b[i];
  return r;
}

inline float length(const vec3& a) {
  float sum = 0;
  for (int i = 0; i < 3; ++i) sum += a[i] * a[i];
  return std::sqrt(sum);
}

inline vec3 operator/(const vec3& a, float b) {
  vec3 r;
  for (int i = 0; i < 3; ++i) r[i] = a[i] / b;
  return r;
}

inline vec3 normalize(const vec3& a) {
  const float l = length(a);
  return l > 0 ? a / l : vec3{};
}

inline vec3 operator-(const vec3& a, const vec3& b) {
  vec3 r;
  for (int i = 0; i < 3; ++i) r[i] = a[i] - b[i];
  return r;
}

inline vec3 atomic_add(vec3& at, const vec3& value) {
  const vec3 old = at;
  at = old + value;
  return old;
}

extern "C" void saxpy_kernel(const Launch* launch, float a, array<float> x, array<float> y) {
  for (int thread = 0; thread < launch->size; ++thread) {
    int i = thread;
    y[i] = a * x[i] + y[i];
  }
}
extern "C" void saxpy_kernel_packed(const Launch* launch, void* const* arguments) {
  saxpy_kernel(launch, *static_cast<const float*>(arguments[0]), *static_cast<const array<float>*>(arguments[1]), *static_cast<const array<float>*>(arguments[2]));
}

extern "C" void laplacian_kernel(const Launch* launch, array<float> u, array<float> r) {
  for (int thread = 0; thread < launch->size; ++thread) {
    int i = thread / launch->shape[1];
    int j = thread % launch->shape[1];
    if (i == 0 || j == 0 || i == u.shape[0] - 1 || j == u.shape[1] - 1) {
      continue;
    }
    r(i, j) = u.at(i - 1, j) + u(i + 1, j) + u.at(i, j - 1) + u(i, j + 1) - 4.0f * u(i, j);
  }
}
extern "C" void laplacian_kernel_packed(const Launch* launch, void* const* arguments) {
  laplacian_kernel(launch, *static_cast<const array<float>*>(arguments[0]), *static_cast<const array<float>*>(arguments[1]));
}

extern "C" void centre_kernel(const Launch* launch, array<vec3> x, int n, array<vec3> total) {
  for (int thread = 0; thread < launch->size; ++thread) {
    int i = thread;
    vec3 s = to_vec3(0.0f);
    for (int j = 0; j < n; ++j) {
      s = s + normalize(x[j] - x[i]);
    }
    atomic_add(total[0], s / float(n));
  }
}
extern "C" void centre_kernel_packed(const Launch* launch, void* const* arguments) {
  centre_kernel(launch, *static_cast<const array<vec3>*>(arguments[0]), *static_cast<const int*>(arguments[1]), *static_cast<const array<vec3>*>(arguments[2]));
}
