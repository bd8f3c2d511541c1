// An NVIDIA driver that is too old: a process that finds this library instead of the real libcuda.so.1 is
// told that the driver knows CUDA 11.4.
extern "C" {

[[gnu::visibility("default")]] int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
[[gnu::visibility("default")]] int cuInit(unsigned) { return 0; }

}  // extern "C"
