// What `ferrite doctor` says on machines other than this one.
#include "cli/doctor.hpp"

#include "cli/cli_test.hpp"

namespace ferrite::testing {
namespace {

using cli::Check;
using cli::Verdict;

TEST(Doctor, TellsWhyThereIsNoGpu) {
  const Check none = cli::check_absent_gpu({false, false, true}, "why");
  EXPECT_EQ(none.verdict, Verdict::missing);
  EXPECT_EQ(none.what, "why");
  expect_contains(none.advice, "Without a GPU");
  const Check without_cuda = cli::check_absent_gpu({true, true, false}, "why");
  EXPECT_EQ(without_cuda.verdict, Verdict::missing);
  expect_contains(without_cuda.advice, "-DFERRITE_CUDA=ON");
  const Check container = cli::check_absent_gpu({true, false, true}, "why");
  EXPECT_EQ(container.verdict, Verdict::missing);
  expect_contains(container.advice, "docker run --gpus all");
  EXPECT_EQ(cli::check_absent_gpu({true, true, true}, "why").verdict, Verdict::failed);
}

TEST(Doctor, AdvisesTheCpuWhereTheGpuFails) {
  expect_contains(cli::advice_about_backend("lazy-cuda:1"), "Use --backend cpu, for auto takes the GPU, and");
  expect_contains(cli::advice_about_backend("cpu"), "Use another --backend, and");
  const Check good{"test cpu", Verdict::ok, "", ""}, bad{"test cuda:0", Verdict::failed, "", ""},
      second{"test cuda:1", Verdict::failed, "", ""};
  EXPECT_EQ(cli::last_line({good}, "cpu"), "All that is here works. --backend auto is cpu.");
  EXPECT_EQ(cli::last_line({good, bad}, "cuda"),
            "Something does not work, see above. --backend auto is cuda, which does not work: give --backend "
            "cpu.");
  EXPECT_EQ(cli::last_line({good, second}, "cuda"),
            "Something does not work, see above. --backend auto is cuda.");
}

}  // namespace
}  // namespace ferrite::testing
