// What `ferrite doctor` says, where that can be told without looking at the machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ferrite::cli {

enum class Verdict { ok, missing, failed };

/// One line of the answer. Advice says what to do, if there is something.
struct Check {
  std::string name;
  Verdict verdict;
  std::string what, advice;
};

/// What there is where ferrite finds no GPU.
struct GpuSigns {
  bool has_driver;   // loaded here, or by the host of this container
  bool has_devices;  // its files in /dev
  bool is_built_with_cuda;
};
/// `reason` is that of CUDA. Failed only if somebody may expect a GPU to work.
Check check_absent_gpu(const GpuSigns& signs, const std::string& reason);

/// What to do about results that are wrong.
std::string advice_about_backend(const std::string& name);

/// Whether all works, and what --backend auto is.
std::string last_line(const std::vector<Check>& checks, std::string_view automatic);

}  // namespace ferrite::cli
