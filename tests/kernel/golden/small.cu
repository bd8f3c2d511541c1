// The grid of threads.
struct Launch {
  int shape[4];
  unsigned int size;
  int block_dim;
};

template <class T>
struct array {
  T* data;
  int shape[4];
  long long strides[4];  // in elements
  __device__ T& operator[](long long i) const { return data[i * strides[0]]; }
  __device__ T& operator()(long long i, long long j) const { return data[i * strides[0] + j * strides[1]]; }
  __device__ T& at(long long i, long long j) const {
    return data[(i < 0 ? i + shape[0] : i) * strides[0] + (j < 0 ? j + shape[1] : j) * strides[1]];
  }
};

struct vec3 {
  float data[3];
  __device__ float& operator[](int i) { return data[i]; }
  __device__ const float& operator[](int i) const { return data[i]; }
};

__device__ inline vec3 to_vec3(float x) {
  vec3 r;
  for (int i = 0; i < 3; ++i) r[i] = x;
  return r;
}

__device__ inline vec3 operator+(const vec3& a, const vec3& b) {
  vec3 r;
  for (int i = 0; i < 3; ++i) r[i] = a[i] + b[i];
  return r;
}

__device__ inline float length(const vec3& a) {
  float sum = 0;
  for (int i = 0; i < 3; ++i) sum += a[i] * a[i];
  return sqrtf(sum);
}

__device__ inline vec3 operator/(const vec3& a, float b) {
  vec3 r;
  for (int i = 0; i < 3; ++i) r[i] = a[i] / b;
  return r;
}

__device__ inline vec3 normalize(const vec3& a) {
  const float l = length(a);
  return l > 0 ? a / l : vec3{};
}

__device__ inline vec3 operator-(const vec3& a, const vec3& b) {
  vec3 r;
  for (int i = 0; i < 3; ++i) r[i] = a[i] - b[i];
  return r;
}

__device__ inline vec3 atomic_add(vec3& at, const vec3& value) {
  vec3 r;
  for (int i = 0; i < 3; ++i) r[i] = atomicAdd(&at[i], value[i]);
  return r;
}

extern "C" __global__ void __launch_bounds__(256) saxpy_kernel(Launch launch, float a, array<float> x, array<float> y) {
  for (unsigned int thread = blockIdx.x * blockDim.x + threadIdx.x; thread < launch.size;
       thread += gridDim.x * blockDim.x) {
    int i = int(thread);
    y[i] = a * x[i] + y[i];
  }
}

extern "C" __global__ void __launch_bounds__(256) laplacian_kernel(Launch launch, array<float> u, array<float> r) {
  for (unsigned int thread = blockIdx.x * blockDim.x + threadIdx.x; thread < launch.size;
       thread += gridDim.x * blockDim.x) {
    int i = int(thread) / launch.shape[1];
    int j = int(thread) % launch.shape[1];
    if (i == 0 || j == 0 || i == u.shape[0] - 1 || j == u.shape[1] - 1) {
      continue;
    }
    r(i, j) = u.at(i - 1, j) + u(i + 1, j) + u.at(i, j - 1) + u(i, j + 1) - 4.0f * u(i, j);
  }
}

extern "C" __global__ void __launch_bounds__(256) centre_kernel(Launch launch, array<vec3> x, int n, array<vec3> total) {
  for (unsigned int thread = blockIdx.x * blockDim.x + threadIdx.x; thread < launch.size;
       thread += gridDim.x * blockDim.x) {
    int i = int(thread);
    vec3 s = to_vec3(0.0f);
    for (int j = 0; j < n; ++j) {
      s = s + normalize(x[j] - x[i]);
    }
    atomic_add(total[0], s / float(n));
  }
}
