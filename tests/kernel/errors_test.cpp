// Every rule of the language: broken once, refused with the right words and the caret in the right place.
#include "kernel_test.hpp"

namespace ferrite::kernel {
namespace {

TEST(KernelErrors, MessageHasPlaceLineAndCaret) {
  EXPECT_EQ(error_of(kernel_of("i = wp.tid()\nout[i] = x * n", "out: wp.array[float], x: float, n: int")),
            "[kernel] k.py:7:16: '*' of float and int: types never mix silently, write float(n)\n"
            "    out[i] = x * n\n"
            "               ^");
}

TEST(KernelErrors, Tokens) {
  expect_error("y = x ? 2", "?", "this character has no meaning here");
  expect_error("\xce\xb1 = 1.0", "\xce", "names are of ASCII letters, digits and '_'");
  expect_error("y = 'abc", "'abc", "this string does not end");
  expect_error("y = 12ab", "12ab", "'12ab' is not a number");
  expect_error("y = 1.5.2", "1.5.2", "'1.5.2' is not a number");
  expect_error("y = 012", "012", "octal numbers begin with 0o");
  expect_error("y = 99999999999999999999", "9999", "does not fit 64 bits");
  expect_error("y = 4000000000", "4000000000", "does not fit int: write wp.int64(4000000000)");
  expect_error("if b:\n    y = x\n  y = x", "y = x", "indented like none above");
}

TEST(KernelErrors, Grammar) {
  expect_error("y = (x + 1.0", "", "expected ')'");
  expect_error("y = x +", "", "expected an expression, found the end of the line");
  expect_error("y = wp.sin(x", "", "expected ')' after the arguments");
  expect_error("if x > 0.0\n    y = x", "", "expected ':' before the block");
  expect_error("if b:\npass", "pass", "expected an indented block");
  expect_error("y = x\n    y = x", "y = x", "indented further than the one before");
  expect_error("break", "break", "'break' outside a loop");
  expect_error("continue", "continue", "'continue' outside a loop");
  expect_error("y = [x]", "[x]", "lists, sets and dicts have no place in a kernel");
  expect_error("y = lambda: x", "lambda", "define a @wp.func");
  expect_error("y = (z := x)", ":=", "assign in a statement of its own");
  expect_error("y: float = x", ":", "annotated assignments are not supported");
  expect_error("y = z = x", "= x", "assign to one target at a time");
  expect_error("y = v[0:2]", ":2", "slices are not supported");
  expect_error("y = v[]", "]", "an index is missing");
  expect_error("y = x is x", "is", "compare with == or !=");
  expect_error("y = wp.max(*v)", "*v", "write the arguments out");
  expect_error("y = wp.clamp(x=x, 1.0, 2.0)", "1.0", "an argument without a name follows one with a name");
  expect_error("y = ()", "()", "an empty tuple");
  expect_error("y = f\"{x}\"", "f\"", "f-strings have no place");
  expect_error("for k in range(3):\n    pass\nelse:\n    pass", "else", "'else' of a loop is not supported");
  for (const char* word : {"def f(): pass", "class A: pass", "try: pass", "raise x", "with x: pass",
                           "import y", "global y", "del x", "yield x"})
    EXPECT_NE(error_of(kernel_of(word)), "") << word;
}

TEST(KernelErrors, Names) {
  expect_error("out[0] = y", "y", "unknown name 'y'");
  expect_error("out[0] = foo(x)", "foo", "unknown function 'foo': it has no @wp.func in this file");
  expect_error("out[0] = sin(x)", "sin", "unknown function 'sin': write wp.sin");
  expect_error("out[0] = wp.foo(x)", "foo", "'wp.foo' is not part of the kernel language");
  expect_error("out[0] = wp.select(b, x, x)", "select", "write wp.where");
  expect_error("out[0] = wp.sin", "sin", "is not a value: call it");
  expect_error("out[0] = x(1.0)", "x(1", "'x' is a variable, not a function");
  expect_error("out[0] = v.q", "q", "wp.vec3 has no attribute 'q'");
  expect_error("out[0] = v.length()", "length", "values have no methods");
  expect_error("out[0] = float(a.shape)", "shape", "take one extent of the shape");
  expect_error("k()", "k()", "'k' is a kernel; only functions can be called");
}

TEST(KernelErrors, Types) {
  expect_error("y = x + n", "+", "'+' of float and int: types never mix silently, write float(n)");
  expect_error("y = n * wp.float64(2.0)", "*", "write wp.float64(n)");
  expect_error("y = v * 2", "*", "'*' of wp.vec3 and int: types never mix silently, write 2.0");
  expect_error("y = v + x", "+", "'+' of wp.vec3 and float");
  expect_error("y = b + b", "+", "a bool is not a number, write int(b)");
  expect_error("y = n ** n", "**", "** takes floats of one type");
  expect_error("y = x & x", "&", "'&' of float and float");
  expect_error("y = ~x", "~", "'~' has no meaning for float");
  expect_error("y = -a", "-a", "'-' has no meaning for wp.array2d[float]");
  expect_error("y = v < v", "<", "'<' of wp.vec3 and wp.vec3");
  expect_error("y = u < n", "<", "signed and unsigned do not compare");
  expect_error("if v:\n    pass", "v:", "wp.vec3 is neither true nor false");
  expect_error("y = x if b else n", "x if", "one branch is float, the other int");
  expect_error("y = wp.max(x, 0)", "wp.max",
               "wp.max(float, int): needs max(a: Any, b: Any) -> Any; types never mix");
  expect_error("y = wp.sqrt(2)", "wp.sqrt", "wp.sqrt(int): needs sqrt(x: Float) -> Float");
  expect_error("y = float(v)", "v)", "float of wp.vec3: only scalars are cast this way");
  expect_error("y = wp.uint8(300)", "300", "300 does not fit wp.uint8");
  expect_error("y = wp.uint32(-1)", "1)", "-1 does not fit wp.uint32");
  expect_error("y = wp.vec3(n, n, n)", "n, n", "component 1 of wp.vec3 is float, not int: write float(...)");
  expect_error("y = wp.vec3(x, x)", "wp.vec3", "wp.vec3 has 3 components, but 2 are given");
  expect_error("y = wp.randf(wp.rand_init(1))", "wp.rand_init", "changes its state: pass a variable");
  expect_error("y = wp.clamp(x, low=0.0, top=1.0)", "1.0",
               "there is no parameter 'top': they are x, low, high");
  expect_error("y = wp.identity(n=5, dtype=float)", "wp.identity", "a constant from 2 to 4");
}

TEST(KernelErrors, Indexing) {
  expect_error("y = a[0]", "[0]", "wp.array2d[float] has 2 axes, but there is 1 index");
  expect_error("y = a[0, 1, 2]", "[0", "there are 3 indices");
  expect_error("y = a[x, 0]", "x, 0", "an index is an integer, not float");
  expect_error("y = v[3]", "3", "index 3 is outside wp.vec3");
  expect_error("y = v[0, 1]", "[0", "wp.vec3 takes 1 index, not 2");
  expect_error("y = x[0]", "[0]", "float has no elements to index");
  expect_error("y = a.shape[2]", "2", "the array has 2 axes");
  expect_error("y = a.shape[-3]", "-3", "the array has 2 axes");
}

TEST(KernelErrors, Statements) {
  expect_error("out[0] = n", "[0]", "a value of type int cannot be stored in float: write float(...)");
  expect_error("float = x", "float", "'float' has a meaning of its own");
  expect_error("y = 1.0\ny = 2", "y = 2", "variable 'y' is float and cannot become int");
  expect_error("x + 1.0", "x + 1.0", "this expression does nothing");
  expect_error("wp.sin(x)", "wp.sin", "the value of wp.sin is not used");
  expect_error("wp.sin(x) = 2.0", "wp.sin", "only variables, elements of arrays");
  expect_error("y, z = x", "=", "1 value for 2 targets");
  expect_error("y = x, x", "=", "2 values for 1 target");
  expect_error("i, j, k, l, m = wp.tid()", "m =", "threads have at most 4 indices");
  expect_error("v *= v", "*=", "'*' of wp.vec3 and wp.vec3");
  expect_error("x *= v", "*=", "the result is wp.vec3, which does not fit float");
  expect_error("for k in a:\n    pass", "a:", "loops run over range(...)");
  expect_error("for k in range(x):\n    pass", "x)", "range takes integers, not float");
  expect_error("for k in range(0, 5, 0):\n    pass", "0)", "the step of a range is not zero");
  expect_error("for v[0] in range(3):\n    pass", "[0]", "a loop has one variable, a name");
  expect_error("y = range(3)", "range", "range stands only in `for i in range(...)`");
  expect_error("return x", "x", "kernels return nothing");
  expect_error("assert x > 0.0, n", "n", "the message of an assertion is a string");
  expect_error("y = wp.sync_threads()", "wp.sync", "this call gives no value");
  expect_error("if 0 < wp.atomic_add(out, 0, 1.0) < 2:\n    pass", "wp.atomic", "evaluated twice");
  expect_error("y = wp.zeros(shape=n, dtype=float)", "n,", "the extents are constants, from 1 on");
  expect_error("y = wp.zeros(shape=(300, 300), dtype=float)", "300)", "at most 65536 elements");
  expect_error("if b:\n    y = wp.shared_array(shape=4, dtype=float)", "=",
               "outside of loops and conditions");
  expect_error("y = wp.noise(u, n)", "n)", "wp.noise of int: it takes float, vec2 and vec3");
  expect_error("q = wp.tile(x)\nout[0] = q", "q", "'q' is a tile");
  expect_error("t = wp.tile(b)", "b)", "wp.tile of bool");
  expect_error("t = wp.tile_sum(x)", "x)", "wp.tile_sum takes a wp.tile(x)");
  expect_error("t = wp.tile(x)\nwp.tile_store(out, t)", "t)", "only a wp.tile_sum can be stored");
  expect_error("s = wp.tile_sum(wp.tile(n))\nwp.tile_atomic_add(out, s)", "out, s", "takes no int");
  expect_error("s = wp.tile_sum(wp.tile(x))\nout[0] = s[1]", "[1]", "has one element, [0]");
  expect_error("s = wp.tile_sum(wp.tile(x))\nwp.tile_store(out, s, offset=(0, n))", "0, n", "for each axis");
}

TEST(KernelErrors, Tiles) {
  expect_error("t = wp.tile_load(a, shape=(n, 4))", "n,", "the extents are constants");
  expect_error("t = wp.tile_load(a)", "wp.tile_load", "needs an array and a shape");
  expect_error("t = wp.tile_load(x, shape=4)", "x,", "float is not an array");
  expect_error("t = wp.tile_load(a, shape=4)", "a,", "wp.array2d[float] has 2 axes, the tile 1");
  expect_error("t = wp.tile_load(a, shape=(4, 4), offset=n)", "n)", "an integer for each axis");
  expect_error("t = wp.tile_load(out, shape=4, offset=x)", "x)", "an integer for each axis");
  expect_error("t = wp.tile_load(out, 4, 0, 'shared', True, True, 3)", "wp.tile_load", "too many arguments");
  expect_error("t = wp.tile_load(out, shape=4, place=3)", "3)", "there is no parameter 'place'");
  expect_error("t = wp.tile_load(out, shape=300000)", "300000", "at most 65536 elements");
  expect_error("t = wp.tile_zeros(dtype=float)", "wp.tile_zeros", "needs a shape");
  expect_error("t = wp.tile_zeros(shape=4, dtype=wp.array[float])", "[float]", "dtype is not an array");
  expect_error("t = wp.tile_zeros(shape=4)\nt = wp.tile_zeros(shape=5)",
               "t =", "cannot become a tile of 5 float");
  expect_error("x = wp.tile_zeros(shape=4)", "x =", "'x' cannot become a tile of 4 float");
  expect_error("t = wp.tile_zeros(shape=4)\nt[0] = x", "[0]", "the elements of a tile are only read");
  expect_error("t = wp.tile_zeros(shape=4)\nt[0] += x", "[0]", "the elements of a tile are only read");
  expect_error("t = wp.tile_zeros(shape=4)\nt = out", "t =", "the elements of a tile are only read");
  expect_error("t = wp.tile_zeros(shape=4)\nt = t", "t =", "a tile made of itself");
  expect_error("t = wp.tile_zeros(shape=4)\nu = wp.tile_transpose(t)", "wp.tile_transpose", "of two axes");
  expect_error("t = wp.tile_transpose(out)", "wp.tile_transpose", "takes a tile of two axes");
  expect_error("t = wp.tile_zeros(shape=(2, 3))\nu = wp.tile_matmul(t, t)", "wp.tile_matmul",
               "a tile of 2x3 times one of 2x3");
  expect_error("t = wp.tile_zeros(shape=(2, 2))\nwp.tile_matmul(t, t, t)", "t)", "a tile made of itself");
  expect_error("t = wp.tile_zeros(shape=(2, 2))\nwp.tile_matmul(t, t, a)", "a)", "a tile of 2x2 floats");
  expect_error("t = wp.tile_zeros(shape=(2, 2))\nwp.tile_matmul(t, t)", "wp.tile_matmul",
               "write wp.tile_matmul(a");
  expect_error("t = wp.tile_zeros(shape=(2, 2), dtype=int)\nu = wp.tile_matmul(t, t)", "t, t",
               "takes tiles of floats");
  expect_error("t = wp.tile_zeros(shape=4, dtype=int)\nwp.tile_store(out, t)", "out", "takes no int");
  expect_error("t = wp.tile_zeros(shape=4)\nwp.tile_store(a, t)", "a,", "has 2 axes, the tile 1");
  expect_error("out[0] = wp.tile_load(out, shape=4)[0]", "tile_load", "not part of the kernel language");
}

TEST(KernelErrors, Definitions) {
  const auto expect = [](const std::string& text, const std::string& problem) {
    EXPECT_NE(error_of("import warp as wp\n" + text).find(problem), std::string::npos)
        << error_of("import warp as wp\n" + text);
  };
  expect("@wp.kernel\ndef k(x):\n    pass\n", "parameter 'x' has no type: write `x: float`");
  expect("@wp.kernel\ndef k(x: float = 2.0):\n    pass\n", "parameters have no default values");
  expect("@wp.kernel\ndef k(x: float, x: int):\n    pass\n", "two parameters are called 'x'");
  expect("@wp.kernel\ndef k(x: str):\n    pass\n", "unknown type 'str'");
  expect("@wp.kernel\ndef k(x: wp.array):\n    pass\n",
         "the array has no element type: write wp.array[float]");
  expect("@wp.kernel\ndef k(x: wp.array(dtype=float, ndim=5)):\n    pass\n", "ndim, which is 1 to 4");
  expect("@wp.kernel\ndef k(x: wp.array[wp.array[float]]):\n    pass\n", "arrays of arrays");
  expect("@wp.kernel\ndef k() -> float:\n    pass\n", "kernels return nothing");
  expect("@wp.kernel\ndef k():\n    pass\n\n\n@wp.kernel\ndef k():\n    pass\n",
         "'k' is defined twice, first in line 3");
  expect("@wp.func\ndef f(x: float):\n    return f(x)\n", "'f' calls itself");
  expect("@wp.func\ndef f(x: float):\n    return g(x)\n\n\n@wp.func\ndef g(x: float):\n    return f(x)\n",
         "calls itself");
  expect("@wp.func\ndef f(x: float):\n    if x > 0.0:\n        return x\n", "'f' can end without a value");
  expect("@wp.func\ndef f(x: float):\n    if x > 0.0:\n        return x\n    return 1\n",
         "'f' returns float, here int");
  expect("@wp.func\ndef f() -> int:\n    return 1.0\n", "'f' returns int, here float");
  expect("@wp.func\ndef f():\n    return wp.tid()\n", "wp.tid is for kernels");
  expect("@wp.func\ndef f():\n    t = wp.tile_zeros(shape=4)\n", "wp.tile_zeros is for kernels");
  expect("@wp.func\ndef f(x: float):\n    return x\n\n\n@wp.kernel\ndef k():\n    y = f(2)\n",
         "parameter 'x' of 'f' is float, not int: write float(...)");
  expect("@wp.func\ndef f(x: float):\n    return x\n\n\n@wp.kernel\ndef k():\n    y = f()\n",
         "'f' takes 1 arguments (x), but 0");
  expect("@wp.func\ndef f(x: float):\n    return x, x\n\n\n@wp.kernel\ndef k():\n    y = f(1.0) + 2.0\n",
         "gives 2 values");
  expect("@wp.struct\nclass S:\n    pass\n\n@wp.kernel\ndef k(x: wp.array[S]):\n    pass\n",
         "an array of 'S', which has no fields");
  expect("@wp.struct\nclass S:\n    x: float\n    x: int\n", "has two fields 'x'");
  expect("@wp.struct\nclass S:\n    x: float\n\n\n@wp.kernel\ndef k(s: S):\n    s.y = 1.0\n",
         "struct 'S' has no field 'y': it has x");
  expect("@wp.kernel\nx = 2\n", "expected 'def' after the decorator");
  expect("N = foo()\n\n\n@wp.kernel\ndef k():\n    y = N\n", "unknown function 'foo'");
  expect("N = 'text'\n\n\n@wp.kernel\ndef k():\n    y = N\n", "'N' is not a constant that a kernel can use");
}

TEST(KernelErrors, ParseAllKeepsWhatIsGood) {
  const Parsed parsed = parse_all(
      "import warp as wp\n\n\n@wp.func\ndef bad(x: float):\n    return x + 1\n\n\n@wp.func\ndef good(x: "
      "float):\n"
      "    return x\n\n\n@wp.kernel\ndef a():\n    y = bad(1.0)\n\n\n@wp.kernel\ndef b():\n    y = "
      "good(1.0)\n\n\n"
      "@wp.kernel\ndef c():\n    y = = 2\n\n\n@wp.kernel\ndef d():\n    pass\n");
  ASSERT_EQ(parsed.errors.size(), 2u);
  EXPECT_EQ(parsed.errors[0].place().line, 6);
  EXPECT_EQ(parsed.errors[1].place().line, 26);
  ASSERT_EQ(parsed.module.kernels.size(), 2u);
  EXPECT_EQ(parsed.module.kernels[0].name, "b");
  EXPECT_EQ(parsed.module.kernels[1].name, "d");
  ASSERT_EQ(parsed.module.functions.size(), 1u);
  EXPECT_EQ(parsed.module.kernels[0].body[0].values[0].index, 0);
}

}  // namespace
}  // namespace ferrite::kernel
