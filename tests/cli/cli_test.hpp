// Runs the `ferrite` program as a user does and reads what it says.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "messages.hpp"
#include "paths.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {

struct Reply {
  int code = -1;
  std::string output;  // stdout and stderr together
};

/// `arguments` go through the shell: quote what needs it. `environment` is like "NAME=value".
inline Reply run_ferrite(const std::string& arguments, const std::string& environment = "") {
  const std::string command = environment + " '" + test_paths::program() + "' " + arguments + " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) throw std::runtime_error("cannot run " + command);
  Reply reply;
  std::array<char, 4096> chunk;
  while (const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), pipe))
    reply.output.append(chunk.data(), n);
  const int status = ::pclose(pipe);
  reply.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return reply;
}

}  // namespace ferrite::testing
