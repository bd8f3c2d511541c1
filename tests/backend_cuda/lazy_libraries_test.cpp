// cuBLASLt and cuDNN are found at run time; their versions can be asked for without a GPU.
#include <cublasLt.h>
#include <cublas_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

namespace {

TEST(LazyLibraries, AreNotLoadedWithFerrite) {
  EXPECT_EQ(dlopen(("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)).c_str(), RTLD_LAZY | RTLD_NOLOAD),
            nullptr);
  EXPECT_EQ(dlopen(("libcudnn.so." + std::to_string(CUDNN_MAJOR)).c_str(), RTLD_LAZY | RTLD_NOLOAD), nullptr);
}

}  // namespace
