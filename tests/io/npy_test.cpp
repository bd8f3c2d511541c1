// npy: round trips, files as NumPy writes them, and broken headers.
#include "ferrite/io/npy.hpp"

#include "io_test.hpp"

namespace ferrite {
namespace {

using testing::bytes_of;
using testing::expect_error;
using testing::le;
using testing::sample;
using testing::ScratchFolder;
using testing::slurp;
using testing::spill;

std::string npy(std::string_view dict, std::string_view data, int major = 1) {
  const std::string magic = "\x93NUMPY" + std::string{static_cast<char>(major), '\0'};
  const std::string length =
      major == 1 ? le(static_cast<std::uint16_t>(dict.size())) : le(static_cast<std::uint32_t>(dict.size()));
  return magic + length + std::string(dict) + std::string(data);
}

std::string dict(std::string_view descr, std::string_view shape, std::string_view order = "False") {
  return "{'descr': " + std::string(descr) + ", 'fortran_order': " + std::string(order) +
         ", 'shape': " + std::string(shape) + ", }\n";
}

void expect_rejected(const std::string& file, std::initializer_list<std::string_view> parts) {
  expect_error<ParseError>([&] { read_npy(bytes_of(file), "bad.npy"); }, parts);
  expect_error<ParseError>([&] { read_npy(bytes_of(file), "bad.npy"); }, {"[read_npy] bad.npy, "});
}

TEST(Npy, RoundTripsEveryDTypeAndShape) {
  const ScratchFolder folder;
  for (const DType dtype : all_dtypes) {
    if (dtype == DType::bf16) continue;
    for (const Shape& shape : testing::sample_shapes) {
      SCOPED_TRACE(std::string(to_string(dtype)) + to_string(shape));
      const HostTensor tensor = sample(dtype, shape);
      write_npy(folder / "file", tensor);
      testing::expect_equal(read_npy(folder / "file"), tensor);
    }
  }
}

TEST(Npy, WritesVersionOneWithDataAtAMultipleOf64) {
  const ScratchFolder folder;
  const double values[] = {1, 2, 3};
  write_npy(folder / "file", HostTensor::from<double>(values, {3}));
  const std::string file = slurp(folder / "file");
  const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }";
  EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\1\0\x76\0", 10));
  EXPECT_EQ(file.substr(10, header.size()), header);
  EXPECT_EQ(file.size(), 128u + 24u);
  EXPECT_EQ(file[127], '\n');
}

TEST(Npy, ReadsAllThreeVersions) {
  for (const int version : {1, 2, 3}) {
    const std::string file = npy(dict("'<i4'", "(2,)"), le(5) + le(6), version);
    EXPECT_EQ(read_npy(bytes_of(file), "x").as<std::int32_t>()[1], 6);
  }
}

TEST(Npy, TurnsFortranOrderIntoCOrder) {
  std::string data;
  for (int i = 0; i < 24; ++i) data += le(static_cast<std::int64_t>(i));
  const auto tensor = read_npy(bytes_of(npy(dict("'<i8'", "(2, 3, 4)", "True"), data)), "x");
  EXPECT_EQ(tensor.shape(), (Shape{2, 3, 4}));
  const auto values = tensor.as<std::int64_t>();
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      for (std::int64_t k = 0; k < 4; ++k)
        EXPECT_EQ(values[static_cast<std::size_t>((i * 3 + j) * 4 + k)], i + 2 * (j + 3 * k));
  for (const char* descr : {"'|u1'", "'<f2'", "'<f4'"}) {
    const std::size_t width = descr[1] == '|' ? 1 : static_cast<std::size_t>(descr[3] - '0');
    std::string elements(6 * width, '\0');
    for (std::size_t i = 0; i < 6; ++i) elements[i * width] = static_cast<char>(i);
    const auto small = read_npy(bytes_of(npy(dict(descr, "(2, 3)", "True"), elements)), "x");
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_EQ(static_cast<std::size_t>(small.bytes()[i * width]), i / 3 + i % 3 * 2) << descr;
  }
  EXPECT_EQ(read_npy(bytes_of(npy(dict("'<f4'", "(0, 3)", "True"), "")), "x").shape(), (Shape{0, 3}));
}

TEST(Npy, AcceptsAnySpellingOfTheDict) {
  const std::string file = npy("{\"shape\":( 2L ,),'fortran_order':True,\n 'descr':'|u1'}", "ab");
  EXPECT_EQ(read_npy(bytes_of(file), "x").as<std::uint8_t>()[1], 'b');
}

TEST(Npy, RejectsBadPreambles) {
  expect_rejected("", {"0 bytes", "at least 10"});
  expect_rejected("\x93NUMPY\1", {"7 bytes", "at least 10"});
  expect_rejected("PK\3\4 not an npy", {"byte 0", "magic"});
  expect_rejected(npy("{}", "", 4), {"version 4.0", "1.0, 2.0 or 3.0"});
  expect_rejected(npy("{}", "", 1).replace(8, 2, "\xff\xff"), {"12 bytes", "at least 65545"});
  expect_rejected(npy("{}", "", 2).replace(8, 4, "\xff\xff\xff\xff"), {"14 bytes", "at least 4294967307"});
}

TEST(Npy, RejectsBadDicts) {
  expect_rejected(npy("", ""), {"header byte 10", "'{' is needed"});
  expect_rejected(npy("{}", ""), {"needs the keys descr, fortran_order and shape"});
  expect_rejected(npy("{'descr': '<f4', 'descr': '<f4'}", ""), {"key \"descr\" is unknown or appears twice"});
  expect_rejected(npy("{'other': 1}", ""), {"key \"other\" is unknown"});
  expect_rejected(npy("{'descr", ""), {"header byte 11", "a string is needed"});
  expect_rejected(npy(dict("'<f4'", "()", "0"), ""), {"True or False"});
  expect_rejected(npy(dict("'<f4'", "()") + "x", "1234"), {"must end with the dict"});
  expect_rejected(npy("{'descr' '<f4'}", ""), {"':' is needed"});
}

TEST(Npy, ReadsUint16InBothOrders) {
  const std::string data = le(std::uint16_t{0}) + le(std::uint16_t{65535}) + le(std::uint16_t{300}) +
                           le(std::uint16_t{7}) + le(std::uint16_t{8}) + le(std::uint16_t{9});
  const std::uint16_t rows[] = {0, 65535, 300, 7, 8, 9}, columns[] = {0, 300, 8, 65535, 7, 9};
  const auto read = [&](std::string_view order) {
    return read_npy(bytes_of(npy(dict("'<u2'", "(2, 3)", order), data)), "u16.npy");
  };
  testing::expect_equal(read("False"), HostTensor::from<std::uint16_t>(rows, {2, 3}));
  testing::expect_equal(read("True"), HostTensor::from<std::uint16_t>(columns, {2, 3}));
  expect_rejected(npy(dict("'<u2'", "(2, 3)"), data + "x"), {"bytes"});
}

TEST(Npy, RejectsDTypesItHasNot) {
  expect_rejected(npy(dict("'>f4'", "()"), "1234"),
                  {"\">f4\" is big-endian", "little-endian data is needed"});
  expect_rejected(npy(dict("'<c8'", "()"), "12345678"), {"\"<c8\" is none of the supported"});
  expect_rejected(npy(dict("'|O'", "()"), ""), {"\"|O\" is none of the supported"});
  expect_rejected(npy(dict("''", "()"), ""), {"\"\" is none of the supported"});
  expect_rejected(npy(dict("[('a', '<f4')]", "()"), ""), {"structured dtypes"});
}

TEST(Npy, RejectsBadShapes) {
  const auto shape = [](std::string_view text) { return npy(dict("'|u1'", text), "x"); };
  expect_rejected(shape("(-1,)"), {"an extent from 0"});
  expect_rejected(shape("(1.5,)"), {"')' is needed"});
  expect_rejected(shape("(99999999999999999999,)"), {"an extent from 0 to 2^63 - 1"});
  expect_rejected(shape("1"), {"'(' is needed"});
  expect_rejected(shape("(1, 1, 1, 1, 1, 1, 1, 1, 1)"), {"rank 9", "at most 8 axes"});
  expect_rejected(shape("(4294967296, 4294967296)"), {"[4294967296, 4294967296]", "2^63"});
  expect_rejected(shape("(0, 4294967296, 4294967296)"), {"2^63"});
}

TEST(Npy, RejectsMissingAndSurplusData) {
  expect_rejected(npy(dict("'<f4'", "(2,)"), "1234567"), {"f32 of shape [2] needs"});
  expect_rejected(npy(dict("'<f4'", "(2,)"), "123456789"), {"f32 of shape [2] needs"});
  expect_rejected(npy(dict("'|b1'", "(2,)"), "\1\3"), {"data, element 1 is byte 3", "0 or 1"});
}

TEST(Npy, EveryTruncationIsRejected) {
  const std::string file = npy(dict("'<f4'", "(2,)"), "12345678");
  EXPECT_NO_THROW(read_npy(bytes_of(file), "x"));
  for (std::size_t n = 0; n < file.size(); ++n) {
    EXPECT_THROW(read_npy(bytes_of(file).first(n), "x"), ParseError) << n;
  }
}

TEST(Npy, RefusesToWriteBf16) {
  const ScratchFolder folder;
  expect_error<DTypeError>([&] { write_npy(folder / "file", sample(DType::bf16, {2})); },
                           {"[write_npy] tensor of bf16", "cast to f32"});
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(Npy, NamesTheFileInErrors) {
  const ScratchFolder folder;
  spill(folder / "broken.npy", "?");
  expect_error<ParseError>([&] { read_npy(folder / "broken.npy"); }, {(folder / "broken.npy").string()});
  expect_error<IoError>([&] { read_npy(folder / "none.npy"); }, {"[read_npy]", "none.npy", "No such file"});
}

}  // namespace
}  // namespace ferrite
