// A child process that one talks to by lines.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace ferrite::cli::bench {

class Process {
 public:
  /// Starts the program of that name in the PATH; its error output goes nowhere. `variables` ("NAME=value")
  /// are added to the environment. Throws IoError if it does not start.
  Process(const std::vector<std::string>& arguments, const std::vector<std::string>& variables);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  /// Closes its input, and waits for its end.
  ~Process();

  /// A process that is gone does not hear it.
  void write_line(const std::string& line);
  /// Without the end of the line; nothing once the process is gone.
  std::optional<std::string> read_line();

 private:
  pid_t pid_ = -1;
  int socket_ = -1;
  std::string buffer_;  // read, but not yet returned
};

}  // namespace ferrite::cli::bench
