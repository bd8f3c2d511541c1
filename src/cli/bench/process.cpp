#include "cli/bench/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "ferrite/core/error.hpp"

namespace ferrite::cli::bench {

namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const std::vector<std::string>& variables) {
  // One socket for both directions: a write to a process that is gone is then an error, and no signal.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw IoError(fmt::format("[bench] no socket: {}", std::strerror(errno)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<std::string> argv = arguments, env = variables;
  for (char** variable = environ; *variable; ++variable) {
    const std::string text = *variable;
    const std::string name = text.substr(0, text.find('=') + 1);
    bool is_replaced = false;
    for (const std::string& other : variables) is_replaced = is_replaced || other.rfind(name, 0) == 0;
    if (!is_replaced) env.push_back(text);
  }
  const int error = ::posix_spawnp(&pid_, arguments[0].c_str(), &actions, nullptr, pointers(argv).data(),
                                   pointers(env).data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  socket_ = ends[0];
  if (error == 0) return;
  ::close(socket_);
  throw IoError(fmt::format("[bench] cannot start {}: {}", arguments[0], std::strerror(error)));
}

Process::~Process() {
  ::close(socket_);
  ::waitpid(pid_, nullptr, 0);
}

void Process::write_line(const std::string& line) {
  const std::string text = line + '\n';
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t sent = ::send(socket_, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    done += static_cast<std::size_t>(sent);
  }
}

std::optional<std::string> Process::read_line() {
  std::size_t end;
  while ((end = buffer_.find('\n')) == std::string::npos) {
    std::array<char, 4096> chunk;
    const ssize_t received = ::recv(socket_, chunk.data(), chunk.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received <= 0) return {};
    buffer_.append(chunk.data(), static_cast<std::size_t>(received));
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

}  // namespace ferrite::cli::bench
