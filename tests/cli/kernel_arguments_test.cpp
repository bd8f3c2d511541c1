// The arguments and results of ferrite kernel run: numbers that are kept, and files that are not lost.
#include <fstream>
#include <limits>

#include "cli_test.hpp"
#include "ferrite/io/npy.hpp"

namespace ferrite::testing {
namespace {

class KernelArgumentsCli : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return "'" + (folder_ / name).string() + "'";
  }
  template <class T>
  std::string write_array(const std::string& name, const std::vector<T>& values) {
    write_npy(folder_ / name,
              HostTensor::from(std::span<const T>(values), Shape{static_cast<std::int64_t>(values.size())}));
    return (folder_ / name).string();
  }
  /// A kernel that stores its number `n`, of this type, in the array `out`.
  std::string store(const std::string& type) {
    return write("store.py", "import warp as wp\n\n@wp.kernel\ndef store(n: " + type + ", out: wp.array[" +
                                 type + "]):\n    out[wp.tid()] = n\n");
  }
  Reply run_store(const std::string& type, const std::string& arguments) {
    return run_ferrite("kernel run " + store(type) + " --dim 1 " + arguments);
  }
  ScratchFolder folder_;
};

TEST_F(KernelArgumentsCli, NumbersThatTheTypeDoesNotHoldAreRefused) {
  const auto refused = [&](const std::string& type, const std::string& text, const std::string& message) {
    const Reply reply = run_store(type, "--arg out=zeros:1 --arg n=" + text);
    EXPECT_EQ(reply.code, 2) << type << " " << text << ": " << reply.output;
    expect_contains(reply.output, message);
  };
  const std::string of_int = "int takes whole numbers from -2147483648 to 2147483647 separated by commas";
  for (const char* text : {"3.7", "nan", "2147483648", "-2147483649", "1e3", "0x10"})
    refused("int", text, of_int);
  for (const char* text : {"300", "-1", "1.5"})
    refused("wp.uint8", text, "wp.uint8 takes whole numbers from 0 to 255 ");
  refused("wp.int64", "9223372036854775808", "from -9223372036854775808 to 9223372036854775807 ");
  refused("wp.uint64", "18446744073709551616", "from 0 to 18446744073709551615 ");
  refused("bool", "2", "bool takes True, False, 1 or 0, separated by commas");
}

TEST_F(KernelArgumentsCli, NumbersKeepAllTheirDigits) {
  const auto expect_kept = [&](const std::string& type, const std::string& text, const std::string& shown) {
    const Reply reply = run_store(type, "--arg out=zeros:1 --arg n=" + text);
    EXPECT_EQ(reply.code, 0) << reply.output;
    expect_contains(reply.output, "out wp.array[" + type + "] [1]: " + shown + "\n");
  };
  expect_kept("wp.int64", "9007199254740993", "9007199254740993");
  expect_kept("wp.int64", "-9223372036854775808", "-9223372036854775808");
  expect_kept("wp.uint8", "255", "255");
  expect_kept("bool", "True", "1");
  expect_kept("float", "0.1", "0.1");
}

TEST_F(KernelArgumentsCli, ElementsOfFilesThatTheTypeDoesNotHoldAreRefused) {
  const auto refused = [&](const std::string& type, const std::string& file, const std::string& message) {
    const Reply reply = run_store(type, "--arg n=1 --arg out=" + file);
    EXPECT_EQ(reply.code, 2) << type << ": " << reply.output;
    expect_contains(reply.output, message);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refused(
      "int", write_array<double>("a.npy", {2, 1.7}),
      "a.npy: element 1 is 1.7, which int does not hold: change it to whole numbers from -2147483648 to ");
  refused("int", write_array<double>("b.npy", {1e10}), "element 0 is 10000000000");
  refused("int", write_array<double>("c.npy", {nan}), "element 0 is nan");
  refused("wp.int64", write_array<double>("d.npy", {9223372036854775808.0}), "which wp.int64 does not hold");
  refused("wp.uint8", write_array<std::int32_t>("e.npy", {255, 256}), "element 1 is 256");
  refused("wp.uint32", write_array<std::int32_t>("f.npy", {-1}), "element 0 is -1");
  refused("float", write_array<std::int32_t>("g.npy", {16777217}), "element 0 is 16777217");
  refused("float", write_array<double>("h.npy", {1e60}), "element 0 is 1e+60");
  for (const char* type : {"float", "int", "wp.uint8", "wp.int64"})
    EXPECT_EQ(run_store(type, "--arg n=1 --arg out=" + write_array<double>("i.npy", {7})).code, 0) << type;
  EXPECT_EQ(run_store("float", "--arg n=1 --arg out=" + write_array<double>("j.npy", {0.1, nan})).code, 0);
  EXPECT_EQ(run_store("float", "--arg n=1 --arg out=" + write_array<double>("K.NPY", {0.1, nan})).code, 0);
}

TEST_F(KernelArgumentsCli, UnsignedNumbersAreShownAndWrittenAsTheyAre) {
  const std::string out = (folder_ / "out").string();
  const auto written = [&](const std::string& type, const std::string& n) {
    const Reply reply = run_store(type, "--arg out=zeros:1 --arg n=" + n + " --out " + out);
    EXPECT_EQ(reply.code, 0) << reply.output;
    expect_contains(reply.output, "]: " + n + "\n");
    return read_npy(std::filesystem::path(out) / "out.npy");
  };
  EXPECT_EQ(written("wp.uint32", "4294967295").as<std::uint32_t>()[0], 4294967295u);
  EXPECT_EQ(written("wp.uint16", "65535").as<std::uint16_t>()[0], 65535);
  EXPECT_EQ(written("wp.int8", "-128").as<std::int8_t>()[0], -128);
  EXPECT_EQ(written("wp.int16", "-32768").as<std::int32_t>()[0], -32768);
  EXPECT_EQ(written("wp.uint64", "9223372036854775807").as<std::int64_t>()[0], 9223372036854775807);
  const std::string large = "--arg out=zeros:1 --arg n=18446744073709551615";
  expect_contains(run_store("wp.uint64", large).output,
                  "out wp.array[wp.uint64] [1]: 18446744073709551615\n");
  const Reply refused = run_store("wp.uint64", large + " --out " + out);
  EXPECT_EQ(refused.code, 2) << refused.output;
  expect_contains(refused.output,
                  "'out' holds 18446744073709551615, and a .npy file of ferrite no number above");
}

TEST_F(KernelArgumentsCli, NoArrayIsWrittenOverTheFileOfAnother) {
  const std::string file =
      write("copy.py",
            "import warp as wp\n\n@wp.struct\nclass S:\n    z: wp.array[float]\n\n@wp.kernel\n"
            "def copy(x: wp.array[float], y: wp.array[float], s: S):\n    y[wp.tid()] = x[wp.tid()]\n");
  const std::string x = write_array<float>("x.npy", {1}), y = write_array<float>("y.npy", {2}),
                    z = write_array<float>("s.z.npy", {3});
  const auto run = [&](const std::string& arguments, const std::string& out) {
    return run_ferrite("kernel run " + file + " --dim 1 " + arguments + " --out " + (folder_ / out).string());
  };
  const Reply swapped = run("--arg x=" + y + " --arg y=" + x, "");
  EXPECT_EQ(swapped.code, 2) << swapped.output;
  expect_contains(swapped.output, "x.npy would be written over by 'x': choose another folder");
  EXPECT_EQ(run("--arg x=" + z, "").code, 2);
  EXPECT_EQ(read_npy(x).as<float>()[0], 1);
  EXPECT_EQ(read_npy(y).as<float>()[0], 2);
  EXPECT_EQ(read_npy(z).as<float>()[0], 3);
  EXPECT_EQ(run("--arg x=" + y + " --arg y=" + x, "results").code, 0);
}

}  // namespace
}  // namespace ferrite::testing
