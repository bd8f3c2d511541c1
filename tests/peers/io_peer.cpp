// The C++ side of io_peer.py: reads a file, writes it in another format. The formats are told by the
// extension.
//
//     io_peer INPUT OUTPUT      INPUT and OUTPUT: .safetensors, .npy (one tensor, called "x"), .npz
#include <cstdio>
#include <exception>
#include <filesystem>

#include "ferrite/io/npy.hpp"
#include "ferrite/io/npz.hpp"
#include "ferrite/io/safetensors.hpp"

namespace {

using ferrite::SafeTensors;
using std::filesystem::path;

SafeTensors read(const path& file) {
  if (file.extension() == ".npy") return {{}, {{"x", ferrite::read_npy(file)}}};
  if (file.extension() == ".npz") return {{}, ferrite::read_npz(file)};
  return ferrite::read_safetensors(file);
}

void write(const path& file, const SafeTensors& content) {
  if (file.extension() == ".npy")
    ferrite::write_npy(file, content.tensors.at("x"));
  else if (file.extension() == ".npz")
    ferrite::write_npz(file, content.tensors);
  else
    ferrite::write_safetensors(file, content);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fputs("usage: io_peer INPUT OUTPUT\n", stderr);
    return 2;
  }
  write(argv[2], read(argv[1]));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
