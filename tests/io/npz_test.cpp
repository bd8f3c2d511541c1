// npz: round trips, archives as NumPy writes them, and hostile zips.
#include "ferrite/io/npz.hpp"

#include "io_test.hpp"

namespace ferrite {
namespace {

using testing::bytes_of;
using testing::expect_error;
using testing::le;
using testing::sample;
using testing::ScratchFolder;
using testing::slurp;

std::string from_hex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

/// numpy.savez_compressed(file, x=numpy.arange(6, dtype="<f4").reshape(2, 3)), NumPy 2.
const std::string compressed_by_numpy = from_hex(
    "504b03042d0000000800000021004fe9002affffffffffffffff05001400782e6e70790100100098000000000000005500000000"
    "000000"
    "9bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a12774bcc294e058a176724"
    "16a402"
    "f91a463a0ac69a3a0ab50a64032e063068b007120e4004c40d40bcc00100504b01022d032d0000000800000021004fe9002a5500"
    "000098"
    "000000050000000000000000000000800100000000782e6e7079504b05060000000001000100330000008c0000000000");

// Where the fields of that archive are.
constexpr std::size_t data_at = 55, packed_size = 85, central_at = 140, end_at = 191;
constexpr std::size_t central_flags = central_at + 8, central_method = central_at + 10,
                      central_crc = central_at + 16, central_packed = central_at + 20,
                      central_unpacked = central_at + 24, central_name = central_at + 46,
                      central_offset = central_at + 42;

template <class T>
std::string patched(std::size_t at, T value) {
  return std::string(compressed_by_numpy).replace(at, sizeof(T), le(value));
}

void expect_rejected(const std::string& file, std::initializer_list<std::string_view> parts) {
  expect_error<ParseError>([&] { read_npz(bytes_of(file), "bad.npz"); }, parts);
  expect_error<ParseError>([&] { read_npz(bytes_of(file), "bad.npz"); }, {"[read_npz] bad.npz, "});
}

TEST(Npz, RoundTripsEveryDTypeAndShape) {
  const ScratchFolder folder;
  NamedTensors out;
  for (const DType dtype : all_dtypes) {
    if (dtype == DType::bf16) continue;
    for (const Shape& shape : testing::sample_shapes)
      out[std::string(to_string(dtype)) + to_string(shape) + "\u20ac"] = sample(dtype, shape);
  }
  write_npz(folder / "file", out);
  const NamedTensors in = read_npz(folder / "file");
  ASSERT_EQ(in.size(), out.size());
  for (const auto& [name, tensor] : out) {
    SCOPED_TRACE(name);
    testing::expect_equal(in.at(name), tensor);
  }
}

TEST(Npz, RoundTripsAnArchiveOfNothing) {
  const ScratchFolder folder;
  write_npz(folder / "file", {});
  EXPECT_TRUE(read_npz(folder / "file").empty());
}

TEST(Npz, EqualTensorsGiveEqualFiles) {
  const ScratchFolder folder;
  write_npz(folder / "a", {{"x", sample(DType::f32, {3})}});
  write_npz(folder / "b", {{"x", sample(DType::f32, {3})}});
  EXPECT_EQ(slurp(folder / "a"), slurp(folder / "b"));
}

TEST(Npz, NamesAreKeysAndNeverPaths) {
  const ScratchFolder folder;
  write_npz(folder / "file", {{"../../outside", sample(DType::u8, {1})}});
  EXPECT_TRUE(read_npz(folder / "file").contains("../../outside"));
  EXPECT_EQ(folder.file_count(), 1u);
}

TEST(Npz, AnyFlippedByteIsNoticedOrHarmless) {
  const ScratchFolder folder;
  const HostTensor tensor = sample(DType::f32, {4});
  write_npz(folder / "file", {{"x", tensor}});
  const std::string file = slurp(folder / "file");
  int noticed = 0;
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string bad = file;
    bad[i] ^= 0x10;
    try {
      // What is read all the same has the right bytes: the damage was in a field that does not matter.
      for (const auto& [name, read] : read_npz(bytes_of(bad), "bad.npz")) testing::expect_equal(read, tensor);
    } catch (const Error&) {
      ++noticed;
    }
  }
  EXPECT_GT(noticed, 200);
}

TEST(Npz, EveryTruncationIsRejected) {
  const ScratchFolder folder;
  write_npz(folder / "file", {{"x", sample(DType::f32, {4})}});
  const std::string file = slurp(folder / "file");
  for (std::size_t n = 0; n < file.size(); ++n) {
    EXPECT_THROW(read_npz(bytes_of(file).first(n), "x"), ParseError) << n;
  }
}

TEST(Npz, ReadsADeflatedArchiveOfNumPy) {
  const auto tensor = read_npz(bytes_of(compressed_by_numpy), "x").at("x");
  EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(tensor.as<float>()[i], static_cast<float>(i));
}

TEST(Npz, RejectsWhatIsNoZip) {
  expect_rejected("", {"0 bytes", "must end with its directory"});
  expect_rejected(std::string(100'000, 'x'), {"100000 bytes", "must end with its directory"});
  expect_rejected(compressed_by_numpy + "x", {"must end with its directory"});
}

TEST(Npz, RejectsBadDirectories) {
  expect_rejected(patched(end_at + 16, std::uint32_t{1} << 30),
                  {"byte 1073741824", "the zip directory of 51 bytes"});
  expect_rejected(patched(end_at + 12, std::uint32_t{1} << 30),
                  {"byte 140", "the zip directory of 1073741824"});
  expect_rejected(patched(end_at + 10, std::uint16_t{2}), {"zip directory of 1 members", "says 2"});
  expect_rejected(patched(end_at + 16, std::uint32_t{139}), {"entry 0", "a directory entry is needed here"});
  expect_rejected(patched(end_at + 4, std::uint16_t{1}), {"in one part"});
  expect_rejected(patched(central_at + 28, std::uint16_t{5000}), {"entry 0", "runs past the directory"});
}

TEST(Npz, RejectsBadMembers) {
  expect_rejected(patched(central_offset, std::uint32_t{1} << 30), {"byte 1073741824", "a member header"});
  expect_rejected(patched(central_offset, std::uint32_t{1}), {"member \"x.npy\", byte 1", "a member header"});
  expect_rejected(patched(central_packed, std::uint32_t{1000}),
                  {"byte 55", "member \"x.npy\" of 1000 bytes"});
  expect_rejected(patched(central_packed, std::uint32_t{100}), {"byte 140", "must not overlap"});
  expect_rejected(patched(central_method, std::uint16_t{12}),
                  {"compression method 12", "stored (0) or deflated"});
  expect_rejected(patched(central_method, std::uint16_t{0}), {"152 bytes packed into 85", "same size twice"});
  expect_rejected(patched(central_flags, std::uint16_t{1}), {"encryption"});
  expect_rejected(patched(central_name, '\xff'), {"member \"\\xff.npy\"", "must be UTF-8"});
  expect_rejected(patched(central_name + 4, 'x'), {"member \"x.npx\"", "must end in .npy"});
}

TEST(Npz, RejectsDamagedOrLyingDeflatedData) {
  expect_rejected(patched(central_crc, std::uint32_t{7}),
                  {"member \"x.npy\", CRC 2a00e94f", "must be 00000007"});
  expect_rejected(patched(data_at, '\xff'), {"member \"x.npy\", packed byte", "invalid"});
  expect_rejected(patched(central_packed, std::uint32_t{packed_size - 2}), {"ends too early"});
  expect_rejected(patched(central_unpacked, std::uint32_t{151}), {"inflates to more than its 151"});
  expect_rejected(patched(central_unpacked, std::uint32_t{160}), {"inflates to 8 bytes less"});
}

TEST(Npz, RejectsZipBombsBeforeAllocating) {
  expect_rejected(patched(central_unpacked, std::uint32_t{4'000'000'000}),
                  {"4000000000 bytes packed into 85", "deflate cannot pack more than 1032 to 1"});
  // Within what deflate can do, but not what the array needs.
  expect_rejected(patched(central_unpacked, std::uint32_t{80'000}), {"member \"x.npy\""});
}

TEST(Npz, StopsInflatingWhereTheHeaderAsksForLess) {
  // A deflated member of 200128 bytes, mostly zeros, whose header says f4 of shape (1,).
  const std::string start = from_hex(
      "504b03041400000008000000210049eeba7721010000c00d030005000000782e6e7079edc8310e01410040d1d53ac574"
      "43b28d44256a1dd946a1928d9d8d42accc88469cc285ad2388f6bdeefff76ebf6d0e93ea513d6397ca29c75588eb7e19"
      "eb10fb21df737b3d0eb94bdfbf692f258dbf9cdb5b1a7bb6a8e77578853f4c2b");
  const std::string end = from_hex(
      "e0671f504b010214031400000008000000210049eeba7721010000c00d03000500000000000000000000008001000000"
      "00782e6e7079504b0506000000000100010033000000440100000000");
  expect_rejected(start + std::string(193, '\0') + end,
                  {"member \"x.npy\", 200128 bytes", "its array needs 132"});
}

TEST(Npz, RejectsTwoMembersThatShareTheirBytes) {
  std::string file = compressed_by_numpy;
  std::string entry = file.substr(central_at, end_at - central_at);
  entry[46] = 'y';
  file.insert(end_at, entry);
  const std::size_t end = end_at + entry.size();
  file.replace(end + 10, 2, le(std::uint16_t{2})).replace(end + 12, 4, le(std::uint32_t{102}));
  expect_rejected(file, {"byte 0", "must not overlap"});
  file[end_at + 46] = 'x';
  expect_rejected(file, {"must not overlap"});
}

TEST(Npz, RejectsDuplicateNames) {
  const ScratchFolder folder;
  write_npz(folder / "file", {{"x", sample(DType::u8, {1})}, {"y", sample(DType::u8, {1})}});
  std::string file = slurp(folder / "file");
  for (std::size_t at; (at = file.find("y.npy")) != file.npos;) file[at] = 'x';
  expect_rejected(file, {"member \"x.npy\"", "the name appears twice"});
}

TEST(Npz, RefusesToWriteWhatNumPyCannotRead) {
  const ScratchFolder folder;
  expect_error<DTypeError>(
      [&] {
        write_npz(folder / "file", {{"a", sample(DType::u8, {1})}, {"x", sample(DType::bf16, {1})}});
      },
      {"[write_npz]", "bf16", "cast to f32"});
  expect_error<ValueError>(
      [&] {
        write_npz(folder / "file", {{"", HostTensor()}});
      },
      {"UTF-8 of 1 to 65000"});
  expect_error<ValueError>([&] { write_npz(folder / "file", {{"\xff", HostTensor()}}); }, {"\"\\xff\""});
  EXPECT_EQ(folder.file_count(), 0u);
}

}  // namespace
}  // namespace ferrite
