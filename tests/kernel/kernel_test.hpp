// What the tests of the kernel language share: sources, launches and the corpus.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "ferrite/core/rng.hpp"
#include "ferrite/kernel/interpreter.hpp"
#include "ferrite/kernel/parse.hpp"
#include "paths.hpp"

namespace ferrite::kernel {

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::filesystem::path corpus_folder() { return test_paths::source_folder() + "/tests/kernel/corpus"; }

inline std::vector<std::filesystem::path> corpus_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(corpus_folder()))
    if (entry.path().extension() == ".py") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// A kernel of one thread around some lines; `out` takes what they find.
inline std::string kernel_of(const std::string& lines,
                             const std::string& parameters = "out: wp.array[float]") {
  std::string text = "import warp as wp\n\n\n@wp.kernel\ndef k(" + parameters + "):\n";
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) text += "    " + line + "\n";
  return text;
}

inline Value real_array(const std::vector<double>& values, ScalarType type = ScalarType::f32) {
  Value v{Type::of(type).array(1), {}, {static_cast<std::int64_t>(values.size())}, {}};
  for (const double x : values) v.numbers.push_back(scalar_value(type, x).numbers[0]);
  return v;
}
inline std::vector<double> reals(const Value& v) {
  std::vector<double> list;
  for (const Number n : v.numbers)
    list.push_back(is_float(v.type.scalar) ? n.real : static_cast<double>(n.integer));
  return list;
}

/// Runs the only kernel of the text on the arguments, which it changes.
inline void launch(const std::string& text, std::vector<std::int64_t> dim, std::vector<Value>& arguments,
                   const InterpretOptions& options = {}) {
  const Module module = parse(text);
  interpret(module, module.kernel(), dim, arguments, options);
}

/// out[0], out[1], ... after `lines` ran in one thread with `out`, four elements of `type`.
inline std::vector<double> run_lines(const std::string& lines, ScalarType type = ScalarType::f32,
                                     const InterpretOptions& options = {}) {
  std::vector<Value> arguments{real_array({0, 0, 0, 0}, type)};
  const std::string parameter = "out: wp.array[" + to_string(Type::of(type)) + "]";
  launch(kernel_of(lines, parameter), {1}, arguments, options);
  return reals(arguments[0]);
}

/// What is wrong with the text, as the user sees it; empty if nothing is.
inline std::string error_of(const std::string& text) {
  try {
    parse(text, "k.py");
  } catch (const KernelError& e) {
    return e.what();
  }
  return "";
}

/// Expects the kernel to be refused with this problem, and the caret under the first occurrence of `at` in
/// the line that the message shows.
inline void expect_error(const std::string& lines, const std::string& at, const std::string& problem,
                         const std::string& parameters =
                             "out: wp.array[float], x: float, n: int, v: wp.vec3, "
                             "a: wp.array2d[float], u: wp.uint32, b: bool") {
  const std::string message = error_of(kernel_of(lines, parameters));
  EXPECT_NE(message.find(problem), std::string::npos) << lines << "\ngives: " << message;
  const std::size_t first = message.find('\n'), second = message.rfind('\n');
  ASSERT_NE(first, std::string::npos) << message;
  const std::string line = message.substr(first + 1, second - first - 1), caret = message.substr(second + 1);
  EXPECT_EQ(caret.size() - 1, at.empty() ? line.size() : line.find(at)) << message;
}

}  // namespace ferrite::kernel
