// What launches of kernels on memory as C has it share: arguments from the comments of the corpus, their
// bytes, and the comparison with the interpreter.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "ferrite/kernel/emit.hpp"
#include "kernel_test.hpp"

namespace ferrite::kernel {

inline void write_packed(ScalarType type, Number n, std::vector<std::byte>& out) {
  const auto put = [&](const auto& x) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&x);
    while (out.size() % sizeof(x) != 0) out.push_back({});
    out.insert(out.end(), bytes, bytes + sizeof(x));
  };
  switch (type) {
    case ScalarType::f64:
      return put(n.real);
    case ScalarType::f32:
      return put(static_cast<float>(n.real));
    case ScalarType::f16:
      return put(convert<Half>(n.real));
    case ScalarType::bf16:
      return put(convert<BFloat16>(n.real));
    default:
      break;
  }
  switch (bits_of(type)) {
    case 8:
      return put(static_cast<std::int8_t>(n.integer));
    case 16:
      return put(static_cast<std::int16_t>(n.integer));
    case 32:
      return put(static_cast<std::int32_t>(n.integer));
    default:
      return put(n.integer);
  }
}

inline Number read_packed(ScalarType type, const std::byte* at) {
  const auto get = [&]<class T>(T x) {
    std::memcpy(&x, at, sizeof(T));
    return x;
  };
  switch (type) {
    case ScalarType::f64:
      return from_real(get(double{}));
    case ScalarType::f32:
      return from_real(get(float{}));
    case ScalarType::f16:
      return from_real(to_float(get(Half{})));
    case ScalarType::bf16:
      return from_real(to_float(get(BFloat16{})));
    case ScalarType::bool_:
    case ScalarType::u8:
      return from_integer(get(std::uint8_t{}));
    case ScalarType::i8:
      return from_integer(get(std::int8_t{}));
    case ScalarType::u16:
      return from_integer(get(std::uint16_t{}));
    case ScalarType::i16:
      return from_integer(get(std::int16_t{}));
    case ScalarType::u32:
      return from_integer(get(std::uint32_t{}));
    case ScalarType::i32:
      return from_integer(get(std::int32_t{}));
    default:
      return from_integer(get(std::int64_t{}));
  }
}

/// The memory of a launch: what the interpreter has as numbers, as C has it.
struct Memory {
  std::vector<std::vector<std::byte>> data;  // of arrays
  std::vector<std::vector<std::byte>> arguments;

  explicit Memory(const std::vector<Value>& values) {
    for (const Value& v : values) {
      std::vector<std::byte> bytes;
      if (v.type.is_array()) {
        data.emplace_back();
        for (const Number n : v.numbers) write_packed(v.type.scalar, n, data.back());
        ArrayArgument array;
        array.data = data.back().data();
        std::int64_t stride = 1;
        for (std::size_t i = v.shape.size(); i-- > 0; stride *= v.shape[i]) {
          array.shape[i] = static_cast<std::int32_t>(v.shape[i]);
          array.strides[i] = stride;
        }
        bytes.resize(sizeof(array));
        std::memcpy(bytes.data(), &array, sizeof(array));
      } else {
        data.emplace_back();
        const auto append = [&](const Value& part, const auto& self) -> void {
          for (const Number n : part.numbers) write_packed(part.type.scalar, n, bytes);
          for (const Value& f : part.fields) self(f, self);
        };
        append(v, append);
      }
      arguments.push_back(std::move(bytes));
    }
  }
  std::vector<void*> pointers() {
    std::vector<void*> list;
    for (auto& a : arguments) list.push_back(a.data());
    return list;
  }
};

/// Runs a kernel on a grid, with a pointer to each argument, in blocks of some threads.
using PackedLaunch = std::function<void(const std::vector<std::int64_t>&, void* const*, int)>;

/// Runs the kernel both ways and compares all arrays: integers exactly, floats to `roundings` of the largest.
inline void compare(const Module& module, const Function& kernel, const PackedLaunch& run,
                    const std::vector<std::int64_t>& dim, std::vector<Value> values, int block_dim,
                    double roundings) {
  Memory memory(values);
  run(dim, memory.pointers().data(), block_dim);
  InterpretOptions options;
  options.block_dim = block_dim;
  interpret(module, kernel, dim, values, options);
  for (std::size_t a = 0; a < values.size(); ++a) {
    const Value& v = values[a];
    if (!v.type.is_array()) continue;
    double largest = 1;
    if (is_float(v.type.scalar))
      for (const Number n : v.numbers)
        largest = std::isfinite(n.real) ? std::max(largest, std::fabs(n.real)) : largest;
    const double unit = v.type.scalar == ScalarType::f64   ? 0x1p-52
                        : v.type.scalar == ScalarType::f32 ? 0x1p-23
                                                           : 0x1p-10;
    const std::size_t size =
        static_cast<std::size_t>(v.type.scalar == ScalarType::bool_ ? 1 : bits_of(v.type.scalar) / 8);
    for (std::size_t i = 0; i < v.numbers.size(); ++i) {
      const Number got = read_packed(v.type.scalar, memory.data[a].data() + i * size);
      const std::string where = fmt::format("{} {}[{}]", kernel.name, kernel.variables[a].name, i);
      if (!is_float(v.type.scalar)) {
        ASSERT_EQ(got.integer, v.numbers[i].integer) << where;
      } else if (std::isfinite(v.numbers[i].real)) {
        ASSERT_NEAR(got.real, v.numbers[i].real, roundings * unit * largest) << where;
      } else {
        ASSERT_TRUE(got.real == v.numbers[i].real || (std::isnan(got.real) && std::isnan(v.numbers[i].real)))
            << where;
      }
    }
  }
}

inline std::vector<std::int64_t> extents(const std::string& text) {
  std::vector<std::int64_t> list;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, 'x');) list.push_back(std::stoll(part));
  return list;
}

/// The arguments that the comment over a corpus kernel asks for.
inline std::vector<Value> arguments_of(const Module& module, const Function& kernel,
                                       std::map<std::string, std::string> run) {
  std::uint64_t stream = 0;
  const auto make = [&](const std::string& name, Type type, const auto& self) -> Value {
    Value value{type, {}, {}, {}};
    if (type.is_struct()) {
      for (const Variable& f : module.structs[type.structure].fields)
        value.fields.push_back(self(name + "." + f.name, f.type, self));
      return value;
    }
    const std::string text = run.at(name);
    if (!type.is_array()) {
      std::istringstream in(text);
      for (std::string part; std::getline(in, part, ',');)
        value.numbers.push_back(scalar_value(type.scalar, std::stod(part)).numbers[0]);
      return value;
    }
    const std::size_t colon = text.find(':');
    std::vector<std::int64_t> shape = extents(text.substr(colon + 1));
    shape.resize(type.dims);
    value = array_value(module, type, shape);
    const RandomKey key{7, stream++};
    for (std::size_t i = 0; i < value.numbers.size() && text[0] != 'z'; ++i)
      value.numbers[i] =
          scalar_value(type.scalar, text[0] == 'n' ? normal_at<float>(key, i)
                                                   : static_cast<double>(integer_at(key, i, 0, 100)))
              .numbers[0];
    return value;
  };
  std::vector<Value> values;
  for (int i = 0; i < kernel.parameters; ++i) {
    const Variable& p = kernel.variables[static_cast<std::size_t>(i)];
    values.push_back(make(p.name, p.type, make));
  }
  return values;
}

/// One kernel per line of builtins.txt, as the peer makes them.
inline std::string builtin_kernels() {
  std::string text = "import warp as wp\n";
  std::istringstream in(read_file(corpus_folder() / "builtins.txt"));
  int k = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(": "), arrow = line.rfind(" => ");
    const std::string form = line.substr(0, colon);
    text += fmt::format(
        "\n\n@wp.kernel\ndef case_{}(x: float, i: int, a: wp.array[float], n: wp.array[int], out: "
        "wp.array[wp.float64]):\n    state = wp.rand_init(42)\n    v = {}\n",
        k++, line.substr(colon + 2, arrow - colon - 2));
    const int size = form == "s" ? 0 : form == "q" ? 4 : form[1] - '0';
    if (size == 0) text += "    out[0] = wp.float64(v)\n";
    for (int r = 0; r < size; ++r)
      for (int c = 0; c < (form[0] == 'm' ? size : 1); ++c)
        text += form[0] == 'm' ? fmt::format("    out[{}] = wp.float64(v[{}, {}])\n", r * size + c, r, c)
                               : fmt::format("    out[{}] = wp.float64(v[{}])\n", r, r);
  }
  // What gives no value that a line could name.
  text += R"(

@wp.kernel
def rest(x: float, i: int, a: wp.array[float], n: wp.array[int], out: wp.array[wp.float64]):
    wp.expect_eq(wp.vec2i(i, i), wp.vec2i(-7, -7))
    wp.expect_near(x, 0.75)
    wp.expect_near(wp.vec2(x, x), wp.vec2(0.75, 0.5), 0.3)
    assert x > 0.5, "x is 0.75"
    out[0] = wp.float64(wp.where(x > 1.0, 2.0, 3.0))
    state = wp.rand_init(i)
    p = wp.sample_triangle(state) + wp.sample_unit_ring(state) + wp.sample_unit_disk(state) + wp.sample_unit_square(state)
    q = wp.sample_unit_sphere_surface(state) + wp.sample_unit_sphere(state) + wp.sample_unit_cube(state)
    r = wp.sample_unit_hemisphere_surface(state) + wp.sample_unit_hemisphere(state)
    out[1] = wp.float64(p[0] + p[1] * 2.0)
    out[2] = wp.float64(q[0] + q[1] * 2.0 + q[2] * 3.0)
    out[3] = wp.float64(r[0] + r[1] * 2.0 + r[2] * 3.0)
    out[4] = wp.float64(wp.randf(state) - wp.randf(state, 2.0, 3.0) * wp.randn(state))
    out[5] = wp.float64(wp.atomic_exch(a, 0, 5.0) + wp.atomic_min(a, 1, 1.5) + wp.atomic_max(a, 2, 9.0) + a[0])
    out[6] = wp.float64(wp.atomic_and(n, 1, 3) + wp.atomic_or(n, 2, 8) + wp.atomic_xor(n, 3, 1) + n[3])
    out[7] = wp.float64(wp.atomic_cas(a, 3, 4.0, 0.5) + a[3])
)";
  return text;
}

/// Calls f(module, kernel, dim, values, block_dim) for every kernel of a corpus file, as its comment asks.
template <class F>
void for_each_run(const std::filesystem::path& file, F f) {
  static const std::regex comment("# run: (.*)\n@wp\\.kernel.*\ndef (\\w+)");
  const std::string source = read_file(file);
  const Module module = parse(source, file.filename().string());
  std::size_t runs = 0;
  for (std::sregex_iterator found(source.begin(), source.end(), comment), end; found != end;
       ++found, ++runs) {
    std::map<std::string, std::string> run;
    std::istringstream parts((*found)[1]);
    for (std::string part; parts >> part;)
      run[part.substr(0, part.find('='))] = part.substr(part.find('=') + 1);
    const Function& kernel = module.kernel((*found)[2].str());
    f(module, kernel, extents(run.at("dim")), arguments_of(module, kernel, run),
      run.contains("block") ? std::stoi(run["block"]) : 256);
  }
  EXPECT_EQ(runs, module.kernels.size()) << file;
}

/// The arguments of builtin_kernels().
inline std::vector<Value> builtin_arguments(const Module& module) {
  std::vector<Value> values = {scalar_value(ScalarType::f32, 0.75), scalar_value(ScalarType::i32, -7)};
  values.push_back(array_value(module, float_type.array(1), {4}));
  values.push_back(array_value(module, int_type.array(1), {4}));
  values.push_back(array_value(module, Type::of(ScalarType::f64).array(1), {16}));
  for (int i = 0; i < 4; ++i) {
    values[2].numbers[static_cast<std::size_t>(i)] = from_real(i + 1);
    values[3].numbers[static_cast<std::size_t>(i)] = from_integer(i + 1);
  }
  return values;
}

}  // namespace ferrite::kernel
