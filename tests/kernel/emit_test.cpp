// Emitted code: C++ is compiled by the system's compiler and run against the interpreter, CUDA is compiled by
// NVRTC; golden texts show what a reader sees.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>

#include "ferrite/core/rng.hpp"
#include "ferrite/kernel/emit.hpp"
#include "ferrite/kernel/interpreter.hpp"
#include "ferrite/kernel/parse.hpp"
#include "kernel/emit_rules.hpp"

namespace ferrite::kernel {

namespace {

namespace fs = std::filesystem;

const fs::path corpus = FERRITE_SOURCE_DIR "/tests/kernel/corpus";

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

std::vector<fs::path> corpus_kernels() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(corpus))
    if (entry.path().extension() == ".py") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// A shared library of emitted C++, or no library and a reason.
class Compiled {
 public:
  explicit Compiled(const std::string& text) {
    const char* cxx = std::getenv("CXX");
    const std::string compiler = cxx != nullptr ? cxx : "c++";
    if (std::system((compiler + " --version > /dev/null 2>&1").c_str()) != 0) {
      skip_ = compiler + " cannot be run";
      return;
    }
    folder_ = fs::temp_directory_path() / fmt::format("ferrite_emit_{}_{}", ::getpid(), counter_++);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "kernels.cpp") << text;
    const std::string command = fmt::format(
        "{0} -std=c++17 -O1 -fwrapv -ffp-contract=off -Wall -Wno-unused -Werror -shared -fPIC "
        "{1}/kernels.cpp -o {1}/kernels.so 2> {1}/log",
        compiler, folder_.string());
    if (std::system(command.c_str()) != 0) {
      ADD_FAILURE() << read_text(folder_ / "log").substr(0, 4000);
      return;
    }
    handle_ = dlopen((folder_ / "kernels.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) ADD_FAILURE() << dlerror();
  }
  ~Compiled() {
    if (handle_ != nullptr) dlclose(handle_);
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  const std::string& skip() const { return skip_; }
  using Packed = void (*)(const LaunchArgument*, void* const*);
  Packed find(const Function& kernel) const {
    return handle_ == nullptr
               ? nullptr
               : reinterpret_cast<Packed>(dlsym(handle_, (entry_name(kernel) + "_packed").c_str()));
  }

 private:
  inline static int counter_ = 0;
  std::string skip_;
  fs::path folder_;
  void* handle_ = nullptr;
};

void write_scalar(ScalarType type, Number n, std::vector<std::byte>& out) {
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

Number read_scalar(ScalarType type, const std::byte* at) {
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
        for (const Number n : v.numbers) write_scalar(v.type.scalar, n, data.back());
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
          for (const Number n : part.numbers) write_scalar(part.type.scalar, n, bytes);
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

/// Runs the kernel both ways and compares all arrays: integers exactly, floats to `roundings` of the largest.
void compare(const Module& module, const Function& kernel, Compiled::Packed packed,
             const std::vector<std::int64_t>& dim, std::vector<Value> values, int block_dim,
             double roundings) {
  ASSERT_NE(packed, nullptr) << kernel.name;
  Memory memory(values);
  LaunchArgument launch;
  launch.block_dim = block_dim;
  for (std::size_t i = 0; i < dim.size(); ++i)
    launch.size *= launch.shape[i] = static_cast<std::int32_t>(dim[i]);
  packed(&launch, memory.pointers().data());
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
      const Number got = read_scalar(v.type.scalar, memory.data[a].data() + i * size);
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

std::vector<std::int64_t> extents(const std::string& text) {
  std::vector<std::int64_t> list;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, 'x');) list.push_back(std::stoll(part));
  return list;
}

/// The arguments that the comment over a corpus kernel asks for.
std::vector<Value> arguments_of(const Module& module, const Function& kernel,
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

std::string compile_or_reason(const std::string& cuda, bool& absent) {
  try {
    return compile_ptx(cuda);
  } catch (const BackendError& e) {
    absent = true;
    return e.what();
  }
}

/// One kernel per line of builtins.txt, as the peer makes them.
std::string builtin_kernels() {
  std::string text = "import warp as wp\n";
  std::istringstream in(read_text(corpus / "builtins.txt"));
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

}  // namespace

TEST(Emit, CppOfTheCorpusDoesWhatTheInterpreterDoes) {
  const std::regex comment("# run: (.*)\n@wp\\.kernel.*\ndef (\\w+)");
  for (const fs::path& file : corpus_kernels()) {
    const std::string source = read_text(file);
    const Module module = parse(source, file.filename().string());
    const Compiled library(emit_cpp(module));
    if (!library.skip().empty()) GTEST_SKIP() << library.skip();
    std::size_t runs = 0;
    for (std::sregex_iterator found(source.begin(), source.end(), comment), end; found != end;
         ++found, ++runs) {
      std::map<std::string, std::string> run;
      std::istringstream parts((*found)[1]);
      for (std::string part; parts >> part;)
        run[part.substr(0, part.find('='))] = part.substr(part.find('=') + 1);
      const Function& kernel = module.kernel((*found)[2].str());
      compare(module, kernel, library.find(kernel), extents(run.at("dim")), arguments_of(module, kernel, run),
              run.contains("block") ? std::stoi(run["block"]) : 256, 64);
    }
    EXPECT_EQ(runs, module.kernels.size()) << file;
  }
}

TEST(Emit, CppOfEveryBuiltinDoesWhatTheInterpreterDoes) {
  const Module module = parse(builtin_kernels());
  const Compiled library(emit_cpp(module));
  if (!library.skip().empty()) GTEST_SKIP() << library.skip();
  for (const Function& kernel : module.kernels) {
    std::vector<Value> values = {scalar_value(ScalarType::f32, 0.75), scalar_value(ScalarType::i32, -7)};
    values.push_back(array_value(module, float_type.array(1), {4}));
    values.push_back(array_value(module, int_type.array(1), {4}));
    values.push_back(array_value(module, Type::of(ScalarType::f64).array(1), {16}));
    for (int i = 0; i < 4; ++i) {
      values[2].numbers[static_cast<std::size_t>(i)] = from_real(i + 1);
      values[3].numbers[static_cast<std::size_t>(i)] = from_integer(i + 1);
    }
    // Values are f32 or less, stored as f64.
    compare(module, kernel, library.find(kernel), {1}, values, 256, 64 * 0x1p29);
  }
}

TEST(Emit, CudaOfTheCorpusAndOfEveryBuiltinCompiles) {
  std::vector<Module> modules;
  for (const fs::path& file : corpus_kernels())
    modules.push_back(parse(read_text(file), file.filename().string()));
  modules.push_back(parse(builtin_kernels()));
  for (const Module& module : modules) {
    bool absent = false;
    const std::string ptx = compile_or_reason(emit_cuda(module), absent);
    if (absent) GTEST_SKIP() << ptx;
    for (const Function& k : module.kernels)
      EXPECT_NE(ptx.find(".entry " + entry_name(k) + "("), std::string::npos) << k.name;
  }
}

TEST(Emit, EveryBuiltinHasARuleForBothTargets) {
  const Module module = parse(builtin_kernels());
  std::set<Builtin> used;
  for (const Function& k : module.kernels)
    for_each_expr(k.body, [&](const Expr& e) {
      if (e.kind != ExprKind::apply) return;
      used.insert(e.builtin);
      std::vector<Type> types;
      for (const Expr& arg : e.args) types.push_back(arg.type);
      EXPECT_NE(find_rule(e.builtin, types, Target::cuda), nullptr) << info(e.builtin).name;
      EXPECT_NE(find_rule(e.builtin, types, Target::cpp), nullptr) << info(e.builtin).name;
    });
  for (const fs::path& file : corpus_kernels())
    for (const Function& k : parse(read_text(file)).kernels)
      for_each_expr(k.body, [&](const Expr& e) {
        if (e.kind == ExprKind::apply) used.insert(e.builtin);
      });
  for (const BuiltinInfo& row : builtins())
    EXPECT_TRUE(used.contains(row.id)) << row.name << " is in no test";
}

TEST(Emit, ReadsAsGoldenTextsDo) {
  const fs::path folder = FERRITE_SOURCE_DIR "/tests/kernel/golden";
  const Module module = parse(read_text(folder / "small.py"));
  EXPECT_EQ(emit_cuda(module), read_text(folder / "small.cu"));
  EXPECT_EQ(emit_cpp(module), read_text(folder / "small.cpp"));
}

TEST(Emit, RepeatsTheLinesOfTheSourceIfAsked) {
  const std::string line = "x[wp.tid()] = 2.0 * x[wp.tid()]";
  const Module module =
      parse("import warp as wp\n\n@wp.kernel\ndef double(x: wp.array[float]):\n    " + line);
  for (const auto emit : {static_cast<std::string (*)(const Module&, const EmitOptions&)>(emit_cuda),
                          static_cast<std::string (*)(const Module&, const EmitOptions&)>(emit_cpp)}) {
    EXPECT_NE(emit(module, {.source_lines = true}).find("// " + line + "\n"), std::string::npos);
    EXPECT_EQ(emit(module, {}).find(line), std::string::npos);
  }
}

TEST(Emit, RefusesWhatTheTargetCannotDo) {
  const std::string head =
      "import warp as wp\n\n\n@wp.kernel\ndef k(x: wp.array[wp.uint8]):\n    i = wp.tid()\n";
  const Module narrow = parse(head + "    wp.atomic_add(x, 0, wp.uint8(1))\n");
  EXPECT_THROW(emit_cuda(narrow), KernelError);
  EXPECT_NO_THROW(emit_cpp(narrow));
  const Module parted = parse(head + "    if i == 3:\n        return\n    wp.sync_threads()\n");
  try {
    emit_cpp(parted);
    ADD_FAILURE() << "a return before a barrier was emitted";
  } catch (const KernelError& e) {
    EXPECT_EQ(e.place().line, 8);
  }
}

TEST(Emit, RefusedCudaGivesTheLogOfNvrtc) {
  try {
    compile_ptx("extern \"C\" __global__ void k() { no_such_function(); }");
    ADD_FAILURE() << "compiled";
  } catch (const BackendError& e) {
    GTEST_SKIP() << e.what();
  } catch (const KernelError& e) {
    EXPECT_NE(std::string(e.what()).find("no_such_function"), std::string::npos) << e.what();
  }
}

}  // namespace ferrite::kernel
