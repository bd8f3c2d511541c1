// How fast two threads read 256 MB: gcc -O2 read_bandwidth.c -o read_bandwidth -lpthread
#include <arm_neon.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const size_t count = 64u << 20;
static float* data;
static volatile float sums[2];

static void* read_half(void* which) {
  const long half = (long)which;
  const float* x = data + half * (count / 2);
  float32x4_t sum[8];
  for (int j = 0; j < 8; ++j) sum[j] = vdupq_n_f32(0);
  for (size_t i = 0; i < count / 2; i += 32)
    for (int j = 0; j < 8; ++j) sum[j] = vaddq_f32(sum[j], vld1q_f32(x + i + 4 * j));
  float total = 0;
  for (int j = 0; j < 8; ++j) total += vaddvq_f32(sum[j]);
  sums[half] = total;
  return 0;
}

int main(void) {
  data = malloc(count * sizeof(float));
  for (size_t i = 0; i < count; ++i) data[i] = 1;
  double best = 1e9;
  for (int run = 0; run < 20; ++run) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    pthread_t threads[2];
    for (long t = 0; t < 2; ++t) pthread_create(&threads[t], 0, read_half, (void*)t);
    for (int t = 0; t < 2; ++t) pthread_join(threads[t], 0);
    clock_gettime(CLOCK_MONOTONIC, &b);
    const double seconds = (double)(b.tv_sec - a.tv_sec) + 1e-9 * (double)(b.tv_nsec - a.tv_nsec);
    if (seconds < best) best = seconds;
  }
  printf("2 threads read %.1f GB/s\n", count * sizeof(float) / best / 1e9);
  return 0;
}
