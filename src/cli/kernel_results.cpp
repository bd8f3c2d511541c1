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

std::string shown(ScalarType type, Number n) {
  if (is_float(type)) return fmt::format("{:g}", n.real);
  return type == ScalarType::u64 ? fmt::format("{}", static_cast<std::uint64_t>(n.integer))
                                 : fmt::format("{}", n.integer);
}

template <class T>
HostTensor tensor_of(const Value& value, const Shape& shape) {
  std::vector<T> elements;
  for (const Number n : value.numbers) elements.push_back(static_cast<T>(n.integer));
  return HostTensor::from(std::span<const T>(elements), shape);
}

/// As tensor_from(), but the dtypes that no op computes with, which files may have, stay what they are.
HostTensor tensor_for_file(const Value& value) {
  const HostTensor tensor = tensor_from(value);
  switch (value.type.scalar) {
    case ScalarType::i8:
      return tensor_of<std::int8_t>(value, tensor.shape());
    case ScalarType::u16:
      return tensor_of<std::uint16_t>(value, tensor.shape());
    case ScalarType::u32:
      return tensor_of<std::uint32_t>(value, tensor.shape());
    default:
      return tensor;
  }
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
  constexpr std::size_t most = 8;
  const Value& value = *array.value;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, value.numbers.size()); ++i)
    text += " " + shown(value.type.scalar, value.numbers[i]);
  return fmt::format("{} {} [{}]:{}{}", array.name, to_string(value.type, module.struct_names()),
                     fmt::join(value.shape, ", "), text, value.numbers.size() > most ? " ..." : "");
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
  const Value& value = *array.value;
  if (value.type.scalar == ScalarType::u64)  // in i64
    for (const Number n : value.numbers)
      if (n.integer < 0)
        throw ValueError(
            fmt::format("[kernel run] --out {}: '{}' holds {}, and a .npy file of ferrite no number "
                        "above 9223372036854775807: leave out --out",
                        folder, array.name, shown(ScalarType::u64, n)));
  write_npy(file_of(folder, array), tensor_for_file(value));
}

}  // namespace ferrite::cli
