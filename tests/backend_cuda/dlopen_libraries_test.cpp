// cuBLASLt and cuDNN are found at run time; their versions can be asked for without a GPU.
#include <cublasLt.h>
#include <cublas_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace {

bool is_loaded(const std::string& file) { return dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr; }

/// In a process of its own: other tests of this one may have used them.
TEST(DlopenLibraries, AreNotLoadedWithFerrite) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(is_loaded("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)) ||
                        is_loaded("libcudnn.so." + std::to_string(CUDNN_MAJOR))),
              ::testing::ExitedWithCode(0), "");
}

}  // namespace
