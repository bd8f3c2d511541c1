#include "cli/kernel_arguments.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <optional>

#include "core/to_number.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/io/npy.hpp"
#include "io/file_ending.hpp"

namespace ferrite::cli {

using namespace kernel;

namespace {

/// The whole numbers that a type holds, bool as 0 and 1.
struct Range {
  std::int64_t low;
  std::uint64_t high;

  bool contains(std::uint64_t x) const { return x <= high; }
  bool contains(std::int64_t x) const { return x < 0 ? x >= low : contains(static_cast<std::uint64_t>(x)); }
  /// Exact where the double of `high` is rounded up to a power of two.
  bool contains(double x) const {
    return x == std::trunc(x) && x >= static_cast<double>(low) && x < static_cast<double>(high) + 1;
  }
};

Range range_of(ScalarType type) {
  if (type == ScalarType::bool_) return {0, 1};
  const std::uint64_t high = ~std::uint64_t{0} >> (64 - bits_of(type) + (is_unsigned(type) ? 0 : 1));
  return {is_unsigned(type) ? 0 : -static_cast<std::int64_t>(high) - 1, high};
}

/// What a parameter of this type takes, for errors.
std::string numbers_of(ScalarType type) {
  if (is_float(type)) return "numbers";
  if (type == ScalarType::bool_) return "True, False, 1 or 0,";
  const Range range = range_of(type);
  return fmt::format("whole numbers from {} to {}", range.low, range.high);
}

/// The number that is written; nothing if it is none, or none that the type holds.
std::optional<Number> parsed(ScalarType type, const std::string& text) {
  if (text == "True" || text == "False") return scalar_value(type, text == "True").numbers[0];
  if (is_float(type)) {
    char* stop = nullptr;
    const double x = std::strtod(text.c_str(), &stop);
    if (text.empty() || stop != text.data() + text.size()) return {};
    return scalar_value(type, x).numbers[0];
  }
  const Range range = range_of(type);
  const auto read = [&](auto x) -> std::optional<Number> {
    if (!x || !range.contains(*x)) return {};
    return from_integer(static_cast<std::int64_t>(*x));
  };
  return text.starts_with('-') ? read(to_number<std::int64_t>(text)) : read(to_number<std::uint64_t>(text));
}

/// Whether an element of a file is still the same number after the cast; a float may be rounded.
template <class T>
bool is_kept(T element, ScalarType type, Number cast) {
  if constexpr (std::is_integral_v<T>) {
    const auto whole = static_cast<std::int64_t>(element);
    if (!is_float(type)) return range_of(type).contains(whole);
    return range_of(ScalarType::i64).contains(cast.real) && static_cast<std::int64_t>(cast.real) == whole;
  } else {
    const auto real = convert<double>(element);
    return is_float(type) ? std::isfinite(cast.real) || !std::isfinite(real) : range_of(type).contains(real);
  }
}

template <class T>
std::string shown(T element) {
  if constexpr (std::is_integral_v<T>)
    return fmt::format("{}", element);
  else
    return fmt::format("{}", convert<double>(element));
}

Value read_value(const std::string& name, Type type, const std::string& file) {
  const HostTensor tensor = read_npy(file);
  Value value = value_from(type, tensor);
  visit_any_dtype(tensor.dtype(), [&]<class T>() {
    const std::span<const T> elements = tensor.as<T>();
    for (std::size_t i = 0; i < elements.size(); ++i)
      if (!is_kept(elements[i], type.scalar, value.numbers[i]))
        throw ValueError(fmt::format(
            "[kernel run] {}={}: element {} is {}, which {} does not hold: change it to {} that the type "
            "holds",
            name, file, i, shown(elements[i]), to_string(Type::of(type.scalar)), numbers_of(type.scalar)));
  });
  return value;
}

}  // namespace

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
  if (io_detail::ending_of(text) == ".npy") {
    files_.push_back(text);
    return read_value(name, type, text);
  }
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
    const std::optional<Number> number = parsed(type.scalar, part);
    if (!number)
      throw ValueError(fmt::format("[kernel run] {}={}: {} takes {} separated by commas", name, text,
                                   to_string(type), numbers_of(type.scalar)));
    value.numbers.push_back(*number);
    at += part.size() + 1;
  }
  if (static_cast<int>(value.numbers.size()) != type.components())
    throw ValueError(
        fmt::format("[kernel run] {}={}: {} has {} numbers", name, text, to_string(type), type.components()));
  return value;
}

}  // namespace ferrite::cli
