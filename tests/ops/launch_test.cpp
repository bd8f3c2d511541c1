// Kernels launched on tensors: every backend and decorator, layouts, arguments that do not fit.
#include <gtest/gtest.h>

#include "ferrite/ops/cat.hpp"
#include "ferrite/stacks.hpp"
#include "ferrite/tensor/launch.hpp"

namespace ferrite {

namespace {

using kernel::Kernel;

const char* saxpy_text = R"(import warp as wp


@wp.kernel
def saxpy(a: float, x: wp.array[float], y: wp.array[float]):
    i = wp.tid()
    y[i] = a * x[i] + y[i]
)";

template <class B>
std::vector<float> saxpy_on(B& b) {
  Tensor<B> x = from_vector<B, float>(b, {1, 2, 3}, {3}), y = from_vector<B, float>(b, {10, 20, 30}, {3});
  Kernel::from_source(saxpy_text).launch(b, 3, 2, x, y);
  return y.to_vector();
}

/// What is wrong with a launch of saxpy on these.
template <class... Arguments>
std::string problem(Cpu& b, kernel::Grid grid, Arguments&&... arguments) {
  try {
    Kernel::from_source(saxpy_text).launch(b, grid, arguments...);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(Launch, GivesTheSameOnEveryBackend) {
  const std::vector<float> expected{12, 24, 36};
  Reference reference;
  Cpu cpu;
  CpuParity parity;
  Profiled<Cpu> profiled;
  Autodiff<Cpu> autodiff;
  EXPECT_EQ(saxpy_on(reference), expected);
  EXPECT_EQ(saxpy_on(cpu), expected);
  EXPECT_EQ(saxpy_on(parity), expected);
  EXPECT_EQ(saxpy_on(profiled), expected);
  EXPECT_EQ(saxpy_on(autodiff), expected);
  EXPECT_EQ(profiled.profile().ops.size(), 3u);  // two uploads and the launch
  EXPECT_NE(table(profiled.profile()).find("saxpy"), std::string::npos);
  EXPECT_NE(parity.table().find("saxpy"), std::string::npos);
}

TEST(Launch, TakesTensorsOfDtypesForStorage) {
  const Kernel k = Kernel::from_source(R"(import warp as wp


@wp.kernel
def down(a: wp.array[wp.int8], b: wp.array[wp.uint16], c: wp.array[wp.int16], d: wp.array[wp.uint32],
         e: wp.array[wp.uint32], v: wp.array[wp.vec2us]):
    i = wp.tid()
    a[i] = a[i] - wp.int8(3)
    b[i] = b[i] - wp.uint16(3)
    c[i] = c[i] / wp.int16(2)
    d[i] = d[i] - wp.uint32(3)
    e[i] = e[i] / wp.uint32(2)
    v[i] = wp.vec2us(v[i][1], v[i][0])
)");
  const auto launch_with = [&](auto&& b) {
    using B = std::remove_cvref_t<decltype(b)>;
    auto a = from_vector<B, std::int8_t>(b, {1, -126}, {2});
    auto u = from_vector<B, std::uint16_t>(b, {1, 65535}, {2});
    auto s = from_vector<B, std::uint16_t>(b, {5, 65531}, {2});  // 5, -5
    auto d = from_vector<B, std::uint32_t>(b, {1, 4}, {2});
    auto e = from_vector<B, int>(b, {-2, 9}, {2});
    auto v = from_vector<B, std::uint16_t>(b, {1, 2, 3, 4}, {2, 2});
    k.launch(b, 2, a, u, s, d, e, v);
    EXPECT_EQ(a.template to_vector<std::int8_t>(), (std::vector<std::int8_t>{-2, 127}));
    EXPECT_EQ(u.template to_vector<std::uint16_t>(), (std::vector<std::uint16_t>{65534, 65532}));
    EXPECT_EQ(s.template to_vector<std::uint16_t>(), (std::vector<std::uint16_t>{2, 65534}));
    EXPECT_EQ(d.template to_vector<std::uint32_t>(), (std::vector<std::uint32_t>{4294967294u, 1}));
    EXPECT_EQ(e.template to_vector<int>(), (std::vector<int>{2147483647, 4}));
    EXPECT_EQ(v.template to_vector<std::uint16_t>(), (std::vector<std::uint16_t>{2, 1, 4, 3}));
    auto wrong = from_vector<B, int>(b, {1, 2}, {2});
    EXPECT_THROW(k.launch(b, 2, wrong, u, s, d, e, v), DTypeError);
  };
  launch_with(Reference{});
  launch_with(Cpu{});
  launch_with(CpuParity{});
  launch_with(Profiled<Cpu>{});
  launch_with(Lazy<Cpu>{});
  launch_with(Autodiff<Cpu>{});
}

TEST(Launch, TakesTensorsOfAnyLayout) {
  Cpu b;
  const Kernel k = Kernel::from_source(R"(import warp as wp


@wp.kernel
def turn(x: wp.array2d[wp.vec3], y: wp.array2d[wp.vec3]):
    i, j = wp.tid()
    v = x[i, j]
    y[i, j] = wp.vec3(v[2], v[0], v[1])
)");
  const Tensor<Cpu> values = reshape(arange(b, 24, DType::f32), {2, 4, 3});
  for (const Tensor<Cpu>& x : {values, flip(values, {1}), permute(reshape(values, {3, 4, 2}), {2, 1, 0}),
                               slice(cat<Cpu>({values, values}, 2), 2, 1, 4)}) {
    Tensor<Cpu> dense = zeros(b, {2, 4, 3}), holder = zeros(b, {3, 2, 4});
    Tensor<Cpu> strided = permute(holder, {1, 2, 0});  // components far apart: through a dense copy and back
    k.launch(b, {2, 4}, x, dense);
    k.launch(b, {2, 4}, x, strided);
    const std::vector<float> given = x.to_vector(), got = dense.to_vector();
    EXPECT_EQ(strided.to_vector(), got);
    for (std::size_t e = 0; e < 8; ++e)
      for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(got[e * 3 + c], given[e * 3 + (c + 2) % 3]);
  }
}

TEST(Launch, TakesNumbersComponentsAndStructs) {
  Cpu b;
  const Kernel k = Kernel::from_source(R"(import warp as wp


@wp.struct
class Body:
    mass: float
    at: wp.vec2
    alive: bool


@wp.kernel
def energy(body: Body, v: wp.vec3, scale: wp.float64, n: wp.uint32, out: wp.array[wp.float64]):
    e = body.mass * wp.dot(v, v) + body.at[1]
    if body.alive:
        out[wp.tid()] = wp.float64(e) * scale + wp.float64(n)
)");
  Tensor<Cpu> out = zeros(b, {2}, DType::f64);
  const kernel::Value body{
      kernel::Type::structure_of(0),
      {kernel::from_real(2), kernel::from_real(0), kernel::from_real(5), kernel::from_integer(1)},
      {},
      {}};
  k.launch(b, 2, body, std::array{1.0f, 2.0f, 3.0f}, 0.5, 3000000000u, out);
  EXPECT_EQ(out.to_vector<double>()[1], 33 * 0.5 + 3000000000.0);
}

TEST(Launch, SaysWhatDoesNotFit) {
  Cpu b;
  Tensor<Cpu> x = ones(b, {4}), y = ones(b, {4}), wide = ones(b, {4}, DType::f64), square = ones(b, {2, 2});
  EXPECT_EQ(problem(b, 4, 2.0f, x, y), "");
  EXPECT_EQ(problem(b, 4, 2.0f, x), "[saxpy] 2 arguments: the kernel takes 3");
  EXPECT_EQ(problem(b, 4, x, x, y), "[saxpy] argument 'a' is a tensor: the kernel takes float");
  EXPECT_EQ(problem(b, 4, 2.0f, 1, y), "[saxpy] argument 'x' is a number: the kernel takes wp.array[float]");
  EXPECT_EQ(problem(b, 4, true, x, y), "[saxpy] argument 'a' is a bool: the kernel takes float");
  EXPECT_EQ(problem(b, 4, 2.0f, wide, y),
            "[saxpy] argument 'x' is a tensor of f64: wp.array[float] takes f32");
  EXPECT_EQ(problem(b, 4, 2.0f, square, y),
            "[saxpy] argument 'x' has shape [2, 2]: wp.array[float] takes 1 axes");
  EXPECT_EQ(problem(b, 4, 2.0f, x, expand(ones(b, {1}), {4})),
            "[saxpy] argument 'y' is broadcast, so that elements share memory: a kernel cannot write to it");
  EXPECT_EQ(
      problem(b, 4, 2.0f, y, y),
      "[saxpy] arguments 'y' and 'x' share memory, and the kernel changes 'y': give it a clone() of one");
  EXPECT_NE(problem(b, 4, 2.0f, flip(y), y), "");
  EXPECT_NE(problem(b, 3, 2.0f, slice(y, 0, 0, 3), slice(y, 0, 1, 4)), "");
  EXPECT_EQ(problem(b, 2, 2.0f, slice(y, 0, 0, 2), slice(y, 0, 2, 4)), "");
  EXPECT_EQ(problem(b, 2, 2.0f, slice(y, 0, 0, 4, 2), slice(y, 0, 1, 4, 2)), "");
  Tensor<Cpu> t = ones(b, {8});
  EXPECT_NE(problem(b, 3, 2.0f, slice(t, 0, 2, 8, 2), slice(t, 0, 0, 6, 2)), "");
  EXPECT_NE(problem(b, 3, 2.0f, slice(t, 0, 2, 8, 2), slice(t, 0, 0, 3)), "");
  EXPECT_NE(problem(b, 5, 2.0f, x, y).find("index [4] is outside array 'x' of shape [4]"), std::string::npos);
  EXPECT_NE(problem(b, {2, 2, 1, 1, 1}, 2.0f, x, y).find("a grid of 5 dimensions"), std::string::npos);
}

TEST(Launch, RefusesNumbersThatAParameterCannotHold) {
  Cpu b;
  Tensor<Cpu> out = zeros(b, {1}, DType::f64);
  const auto problem_of = [&](const std::string& type, auto number) -> std::string {
    const Kernel k = Kernel::from_source("import warp as wp\n\n\n@wp.kernel\ndef k(n: " + type +
                                         ", out: wp.array[wp.float64]):\n    out[0] = wp.float64(n)\n");
    try {
      k.launch(b, 1, number, out);
    } catch (const ValueError& e) {
      return e.what();
    }
    EXPECT_EQ(out.to_vector<double>()[0], static_cast<double>(number));
    return "";
  };
  EXPECT_EQ(problem_of("int", 5000000000),
            "[k] argument 'n' is 5000000000: int holds -2147483648 to 2147483647");
  EXPECT_EQ(problem_of("wp.uint8", 300), "[k] argument 'n' is 300: wp.uint8 holds 0 to 255");
  EXPECT_NE(problem_of("wp.uint32", -1), "");
  EXPECT_NE(problem_of("wp.int8", -129), "");
  EXPECT_NE(problem_of("wp.uint64", -1), "");
  EXPECT_NE(problem_of("wp.int64", ~std::uint64_t{0}), "");
  EXPECT_EQ(problem_of("int", -2147483648LL), "");
  EXPECT_EQ(problem_of("wp.uint8", 255), "");
  EXPECT_EQ(problem_of("wp.int8", -128), "");
  EXPECT_EQ(problem_of("wp.int64", std::numeric_limits<std::int64_t>::min()), "");
  EXPECT_EQ(problem_of("wp.uint64", ~std::uint64_t{0}), "");
}

TEST(Launch, CountsAsAnInPlaceWriteOfWhatItChanges) {
  Cpu b;
  Tensor<Cpu> x = ones(b, {4}), y = ones(b, {4});
  const auto vx = x.primitive().buffer()->version(), vy = y.primitive().buffer()->version();
  Kernel::from_source(saxpy_text).launch(b, 4, 2.0f, x, y);
  EXPECT_EQ(x.primitive().buffer()->version(), vx);
  EXPECT_EQ(y.primitive().buffer()->version(), vy + 1);
}

TEST(Launch, AnOpThatParityFindsWrongIsReportedWithItsText) {
  const op::Launch op{{Kernel::from_source(saxpy_text), kernel::Grid(3), {}}};
  op::Launch filled = op;
  filled.call.values = {kernel::scalar_value(kernel::ScalarType::f32, 0.1), {}, {}};
  const op::Launch back = parse_attributes<op::Launch>(format_attributes(filled));
  EXPECT_EQ(back.name(), "saxpy");
  EXPECT_EQ(back.call.grid.dim, (Shape{3}));
  EXPECT_EQ(back.call.values[0].numbers[0].real, static_cast<double>(0.1f));
  EXPECT_EQ(kernel::Type(back.call.kernel.parameter(1).type), kernel::float_type.array(1));
}

TEST(Launch, KnowsWhatAKernelDoesToItsArrays) {
  const Kernel k = Kernel::from_source(R"(import warp as wp


@wp.func
def put(y: wp.array[float], i: int, v: float):
    y[i] = v


@wp.kernel
def k(a: wp.array[float], b: wp.array[float], c: wp.array[float], d: wp.array[int], e: wp.array[float]):
    i = wp.tid()
    put(b, d[i], a[i])
    c[i] += 1.0
    f = e
    wp.atomic_max(f, 0, a[i])
)");
  const auto& use = k.uses();
  EXPECT_TRUE(use[0].reads && !use[0].changes());
  EXPECT_TRUE(!use[1].reads && use[1].writes && !use[1].adds);
  EXPECT_TRUE(!use[2].reads && use[2].adds && !use[2].writes);
  EXPECT_TRUE(use[3].reads && !use[3].changes());
  EXPECT_TRUE(!use[4].reads && use[4].extremes);
}

}  // namespace ferrite
