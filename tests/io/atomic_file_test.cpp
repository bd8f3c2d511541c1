// AtomicFile under failures and kills: the target is always whole. Also MappedFile.
#include "ferrite/io/atomic_file.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "ferrite/io/mapped_file.hpp"
#include "io_test.hpp"

namespace ferrite {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::ScratchFolder;
using testing::slurp;
using testing::spill;

/// Writes beyond `bytes` fail with EFBIG as long as it lives, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_;
};

TEST(AtomicFile, ReplacesTheTargetOnCommitOnly) {
  const ScratchFolder folder;
  spill(folder / "file", "old");
  AtomicFile file(folder / "file");
  file.write("new ");
  file.write("content");
  EXPECT_EQ(slurp(folder / "file"), "old");
  file.commit();
  EXPECT_EQ(slurp(folder / "file"), "new content");
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(AtomicFile, OverwritesOnlyWhatWasWritten) {
  const ScratchFolder folder;
  AtomicFile file(folder / "file");
  file.write("count 0: abc");
  file.overwrite(6, testing::bytes_of("3"));
  file.write("d");  // goes to the end all the same
  file.overwrite(6, testing::bytes_of("4: a"));
  file.commit();
  EXPECT_EQ(slurp(folder / "file"), "count 4: abcd");

  AtomicFile other(folder / "other");
  other.write("1234");
  expect_error<IoError>([&] { other.overwrite(3, testing::bytes_of("45")); }, {"other", "past the end"});
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutACommit) {
  const ScratchFolder folder;
  spill(folder / "file", "old");
  try {
    AtomicFile file(folder / "file");
    file.write("half");
    throw std::runtime_error("the program failed in between");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(slurp(folder / "file"), "old");
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(AtomicFile, RemovesTemporariesOnRequestAndNoOthers) {
  const ScratchFolder folder;
  { AtomicFile dropped(folder / "dropped"); }
  AtomicFile first(folder / "first"), second(folder / "second");
  AtomicFile whole(folder / "whole");
  whole.write("all");
  whole.commit();
  EXPECT_EQ(folder.file_count(), 3u);
  AtomicFile::remove_temporaries();
  EXPECT_EQ(folder.file_count(), 1u);
  EXPECT_EQ(slurp(folder / "whole"), "all");
}

TEST(AtomicFile, AFailedWriteRemovesTheTemporaryAtOnceAndSaysWhy) {
  const ScratchFolder folder;
  spill(folder / "file", "old");
  AtomicFile file(folder / "file");
  {
    const FileSizeLimit limit(100'000);
    const std::string block(60'000, 'x');
    file.write(block);
    expect_error<IoError>([&] { file.write(block); },
                          {"[write]", (folder / "file").string(), "cannot write it: File too large"});
  }
  EXPECT_EQ(folder.file_count(), 1u);
  expect_error<IoError>([&] { file.commit(); }, {"nothing can follow a commit or a failure"});
  EXPECT_EQ(slurp(folder / "file"), "old");
}

TEST(AtomicFile, NothingCanFollowACommit) {
  const ScratchFolder folder;
  AtomicFile file(folder / "file");
  file.commit();
  expect_error<IoError>([&] { file.write("more"); }, {"nothing can follow a commit"});
  EXPECT_EQ(slurp(folder / "file"), "");
}

TEST(AtomicFile, SaysWhyItCannotStart) {
  const ScratchFolder folder;
  expect_error<IoError>([&] { AtomicFile(folder / "missing/file"); },
                        {"missing/file", "No such file or directory"});
  fs::create_directory(folder / "folder");
  expect_error<IoError>([&] { AtomicFile(folder / "folder"); }, {"folder", "a regular file is needed"});
  fs::create_symlink("nowhere", folder / "dangling");
  expect_error<IoError>([&] { AtomicFile(folder / "dangling"); }, {"dangling", "No such file or directory"});
}

TEST(AtomicFile, NeverReplacesADevice) {
  expect_error<IoError>([] { AtomicFile("/dev/full"); }, {"/dev/full", "a regular file is needed"});
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(AtomicFile, WritesToARelativeNameInTheCurrentFolder) {
  const ScratchFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder / "");
  AtomicFile file("plain");
  file.write("here");
  file.commit();
  fs::current_path(before);
  EXPECT_EQ(slurp(folder / "plain"), "here");
}

TEST(AtomicFile, FollowsLinksAndKeepsPermissions) {
  const ScratchFolder folder;
  fs::create_directory(folder / "real");
  spill(folder / "real/file", "old");
  ::chmod((folder / "real/file").c_str(), 0600);
  fs::create_symlink("real/file", folder / "link");
  AtomicFile file(folder / "link");
  file.write("new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(slurp(folder / "real/file"), "new");
  EXPECT_EQ(fs::status(folder / "real/file").permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(AtomicFile, WritersOfOneTargetDoNotDisturbEachOther) {
  const ScratchFolder folder;
  AtomicFile first(folder / "file");
  first.write("first");
  AtomicFile second(folder / "file");
  second.write("second");
  first.commit();
  EXPECT_EQ(slurp(folder / "file"), "first");
  second.commit();
  EXPECT_EQ(slurp(folder / "file"), "second");
  EXPECT_EQ(folder.file_count(), 1u);
}

/// Runs `body` in a child process, which must not return before it is killed.
template <class Body>
void kill_in_the_middle(Body&& body, useconds_t delay_us) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    body([&] {
      const char signal = 'r';
      if (::write(ready[1], &signal, 1) != 1) ::_exit(2);
    });
    ::_exit(1);
  }
  ::close(ready[1]);
  char signal = 0;
  EXPECT_EQ(::read(ready[0], &signal, 1), 1);
  ::close(ready[0]);
  ::usleep(delay_us);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
}

TEST(AtomicFile, AKilledSaveLeavesThePreviousFileAndTheNextSaveCleansUp) {
  const ScratchFolder folder;
  spill(folder / "file", "old");
  kill_in_the_middle(
      [&](auto signal_ready) {
        AtomicFile file(folder / "file");
        file.write(std::string(100'000, 'x'));
        signal_ready();
        ::pause();
      },
      0);
  EXPECT_EQ(slurp(folder / "file"), "old");
  EXPECT_EQ(folder.file_count(), 2u);  // the temporary of the killed process
  AtomicFile file(folder / "file");
  file.write("new");
  file.commit();
  EXPECT_EQ(slurp(folder / "file"), "new");
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(AtomicFile, AKillAtAnyMomentLeavesAWholeFile) {
  const ScratchFolder folder;
  constexpr std::size_t size = 300'000;
  for (useconds_t round = 0; round < 20; ++round) {
    kill_in_the_middle(
        [&](auto signal_ready) {
          for (int i = 0;; ++i) {
            AtomicFile file(folder / "file");
            const std::string part(size / 100, static_cast<char>('a' + i % 26));
            for (int k = 0; k < 100; ++k) file.write(part);
            file.commit();
            if (i == 0) signal_ready();
          }
        },
        round * 500);
    const std::string content = slurp(folder / "file");
    ASSERT_EQ(content.size(), size);
    ASSERT_EQ(content.find_first_not_of(content[0]), content.npos);
  }
}

TEST(MappedFile, ShowsTheBytesAndKeepsThemWhenTheFileIsReplaced) {
  const ScratchFolder folder;
  spill(folder / "file", "old content");
  const auto mapped = MappedFile::open(folder / "file");
  AtomicFile file(folder / "file");
  file.write("new");
  file.commit();
  EXPECT_EQ(mapped->text(), "old content");
  EXPECT_EQ(MappedFile::open(folder / "file")->bytes().size(), 3u);
}

TEST(MappedFile, AnEmptyFileIsAnEmptySpan) {
  const ScratchFolder folder;
  spill(folder / "file", "");
  EXPECT_TRUE(MappedFile::open(folder / "file")->bytes().empty());
}

TEST(MappedFile, SaysWhyAPathCannotBeRead) {
  const ScratchFolder folder;
  expect_error<IoError>([&] { MappedFile::open(folder / "missing"); },
                        {"[read]", "missing", "No such file or directory"});
  expect_error<IoError>([&] { MappedFile::open(folder / ""); }, {"Is a directory"});
  ::mkfifo((folder / "pipe").c_str(), 0600);
  expect_error<IoError>([&] { MappedFile::open(folder / "pipe"); }, {"pipe", "a regular file is needed"});
}

}  // namespace
}  // namespace ferrite
