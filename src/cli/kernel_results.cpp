#include "cli/kernel_results.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "ferrite/core/error.hpp"
#include "ferrite/io/npy.hpp"

namespace ferrite::cli {

using namespace kernel;

namespace {

void add_arrays(const Module& module, const std::string& name, const Value& value,
                std::vector<NamedArray>& out) {
  for (std::size_t i = 0; i < value.fields.size(); ++i)
    add_arrays(module, name + "." + module.structs[value.type.structure].fields[i].name, value.fields[i],
               out);
  if (value.type.is_array() && value.type.kind != Type::Kind::structure) out.push_back({name, &value});
}

std::filesystem::path file_of(const std::string& folder, const NamedArray& array) {
  return std::filesystem::path(folder) / (array.name + ".npy");
}

}  // namespace

std::vector<NamedArray> arrays_of(const Module& module, const Function& kernel,
                                  const std::vector<Value>& values) {
  std::vector<NamedArray> found;
  for (std::size_t i = 0; i < values.size(); ++i)
    add_arrays(module, kernel.variables[i].name, values[i], found);
  return found;
}

std::string text_of(const Module& module, const NamedArray& array) {
  constexpr std::size_t shown = 8;
  const Value& value = *array.value;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, value.numbers.size()); ++i)
    text += is_float(value.type.scalar) ? fmt::format(" {:g}", value.numbers[i].real)
                                        : fmt::format(" {}", value.numbers[i].integer);
  return fmt::format("{} {} [{}]:{}{}", array.name, to_string(value.type, module.struct_names()),
                     fmt::join(value.shape, ", "), text, value.numbers.size() > shown ? " ..." : "");
}

void prepare_folder(const std::string& folder, const std::vector<NamedArray>& arrays,
                    const std::vector<std::string>& files) {
  std::error_code error;
  for (const NamedArray& array : arrays)
    for (const std::string& file : files)
      if (std::filesystem::equivalent(file, file_of(folder, array), error))
        throw ValueError(
            fmt::format("[kernel run] --out {}: {} would be written over by '{}': choose another "
                        "folder",
                        folder, file, array.name));
  std::filesystem::create_directories(folder, error);
  if (error)
    throw IoError(
        fmt::format("[kernel run] --out {}: no folder can be made there: {}", folder, error.message()));
}

void write_array(const std::string& folder, const NamedArray& array) {
  write_npy(file_of(folder, array), tensor_from(*array.value));
}

}  // namespace ferrite::cli
