#include "cli/kernel_arguments.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <new>

#include "ferrite/core/rng.hpp"
#include "ferrite/io/npy.hpp"

namespace ferrite::cli {

using namespace kernel;

/// "64x3" is {64, 3}.
std::vector<std::int64_t> extents(std::string_view text) {
  const char *at = text.data(), *const end = at + text.size();
  for (std::vector<std::int64_t> list;; ++at) {
    const auto [next, status] = std::from_chars(at, end, list.emplace_back());
    if (status != std::errc{} || list.back() < 0 || (next != end && *next != 'x'))
      throw ValueError(fmt::format("[kernel run] '{}': write extents as 64 or 64x3", text));
    at = next;
    if (at == end) return list;
  }
}

KernelArguments::KernelArguments(const Module& module, const std::vector<std::string>& given,
                                 std::vector<std::int64_t> dim, std::uint64_t seed)
    : module_(module), dim_(std::move(dim)), seed_(seed) {
  for (const std::string& a : given) {
    const std::size_t equals = a.find('=');
    if (equals == std::string::npos)
      throw ValueError(fmt::format("[kernel run] --arg {}: write NAME=VALUE", a));
    const std::string name = a.substr(0, equals);
    if (!given_.emplace(name, a.substr(equals + 1)).second)
      throw ValueError(fmt::format("[kernel run] --arg {}: '{}' has a value already; give it one", a, name));
  }
}

Value KernelArguments::make(const std::string& name, Type type) {
  if (type.is_struct()) {
    Value value{type, {}, {}, {}};
    for (const Variable& f : module_.structs[type.structure].fields)
      value.fields.push_back(make(name + "." + f.name, f.type));
    return value;
  }
  const auto found = given_.find(name);
  std::string text;
  if (found != given_.end()) {
    text = found->second;
    given_.erase(found);
  } else if (!type.is_array() || type.dims != dim_.size()) {
    throw ValueError(fmt::format("[kernel run] no value for '{}', {}: give --arg {}=...", name,
                                 to_string(type, module_.struct_names()), name));
  } else {
    text = fmt::format("uniform:{}", fmt::join(dim_, "x"));
  }
  if (text.ends_with(".npy")) return value_from(type, read_npy(text));
  return type.is_array() ? generated(name, type, text) : numbers(name, type, text);
}

void KernelArguments::check_all_used() const {
  if (!given_.empty())
    throw ValueError(fmt::format("[kernel run] the kernel has no parameter '{}'", given_.begin()->first));
}

Value KernelArguments::zeros(const std::string& name, Type type, const std::string& text,
                             std::vector<std::int64_t> shape) const {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  std::int64_t count = 1;
  for (const std::int64_t n : shape) {
    if (n > 0 && count > most / n)
      throw ValueError(
          fmt::format("[kernel run] {}={}: more than {} elements; make it smaller", name, text, most));
    count *= n;
  }
  try {
    return array_value(module_, type, std::move(shape));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(fmt::format("[kernel run] {}={}: there is no memory for {} elements; make it smaller",
                                  name, text, count));
  }
}

Value KernelArguments::generated(const std::string& name, Type type, const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string how = text.substr(0, colon);
  if (colon == std::string::npos || (how != "zeros" && how != "uniform" && how != "normal" && how != "iota"))
    throw ValueError(
        fmt::format("[kernel run] {}={}: an array is FILE.npy, zeros:64x3, iota:64, uniform:64 or normal:64",
                    name, text));
  Value value = zeros(name, type, text, extents(std::string_view(text).substr(colon + 1)));
  const RandomKey key{seed_, stream_++};
  for (std::size_t i = 0; i < value.numbers.size() && how != "zeros"; ++i) {
    const double whole =
        how == "iota" ? static_cast<double>(i) : static_cast<double>(integer_at(key, i, 0, 100));
    const double real = how == "iota"      ? whole
                        : how == "uniform" ? uniform_at<float>(key, i)
                                           : normal_at<float>(key, i);
    value.numbers[i] = scalar_value(type.scalar, is_float(type.scalar) ? real : whole).numbers[0];
  }
  return value;
}

Value KernelArguments::numbers(const std::string& name, Type type, const std::string& text) const {
  Value value{type, {}, {}, {}};
  for (std::size_t at = 0; at <= text.size();) {
    const std::string part = text.substr(at, text.find(',', at) - at);
    char* end = nullptr;
    const double x = part == "True" ? 1 : part == "False" ? 0 : std::strtod(part.c_str(), &end);
    if (part.empty() || (end != nullptr && *end != '\0'))
      throw ValueError(fmt::format("[kernel run] {}={}: {} takes numbers separated by commas", name, text,
                                   to_string(type)));
    value.numbers.push_back(scalar_value(type.scalar, x).numbers[0]);
    at += part.size() + 1;
  }
  if (static_cast<int>(value.numbers.size()) != type.components())
    throw ValueError(
        fmt::format("[kernel run] {}={}: {} has {} numbers", name, text, to_string(type), type.components()));
  return value;
}

}  // namespace ferrite::cli
