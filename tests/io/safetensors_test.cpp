// safetensors: round trips, the exact bytes of the Python package, and every hostile header we know of.
#include "ferrite/io/safetensors.hpp"

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

std::string file_with(std::string_view header, std::string_view data = "") {
  return le(std::uint64_t{header.size()}) + std::string(header) + std::string(data);
}

void expect_rejected(const std::string& file, std::initializer_list<std::string_view> parts) {
  expect_error<ParseError>([&] { read_safetensors(bytes_of(file), "bad.safetensors"); }, parts);
  expect_error<ParseError>([&] { read_safetensors(bytes_of(file), "bad.safetensors"); },
                           {"[read_safetensors] bad.safetensors, "});
}

/// A header with the one tensor "w".
std::string tensor_w(std::string_view dtype, std::string_view shape, std::string_view offsets) {
  return R"({"w":{"dtype":)" + std::string(dtype) + R"(,"shape":)" + std::string(shape) +
         R"(,"data_offsets":)" + std::string(offsets) + "}}";
}

TEST(SafeTensors, RoundTripsEveryDTypeAndShapeWithMetadata) {
  const ScratchFolder folder;
  SafeTensors out;
  out.metadata = {{"format", "ferrite"}, {"note", "quote \" newline \n euro \u20ac"}, {"", ""}};
  for (const DType dtype : all_dtypes)
    for (const Shape& shape : testing::sample_shapes)
      out.tensors[std::string(to_string(dtype)) + to_string(shape)] = sample(dtype, shape);
  write_safetensors(folder / "file", out);
  const SafeTensors in = read_safetensors(folder / "file");
  EXPECT_EQ(in.metadata, out.metadata);
  ASSERT_EQ(in.tensors.size(), out.tensors.size());
  for (const auto& [name, tensor] : out.tensors) {
    SCOPED_TRACE(name);
    testing::expect_equal(in.tensors.at(name), tensor);
  }
}

TEST(SafeTensors, RoundTripsAFileOfNothing) {
  const ScratchFolder folder;
  write_safetensors(folder / "file", {});
  const SafeTensors in = read_safetensors(folder / "file");
  EXPECT_TRUE(in.metadata.empty());
  EXPECT_TRUE(in.tensors.empty());
}

TEST(SafeTensors, FilesGoTensorByTensor) {
  const ScratchFolder folder;
  SafeTensors file{{{"note", "text"}}, {}};
  for (const DType dtype : all_dtypes) file.tensors[std::string(to_string(dtype))] = sample(dtype, {3, 5});
  write_safetensors(folder / "file", file);

  LazySafeTensors lazy = open_safetensors(folder / "file");
  EXPECT_EQ(lazy.metadata, file.metadata);
  int alive = 0, most = 0;
  for (auto& [name, tensor] : lazy.tensors) {
    testing::expect_equal(tensor.load(), file.tensors.at(name));
    tensor.load = [&alive, &most, load = tensor.load] {
      const HostTensor made = load();
      most = std::max(most, ++alive);
      return HostTensor::view(made.dtype(), made.shape(), made.bytes(),
                              std::shared_ptr<const void>(&alive, [made, &alive](const void*) { --alive; }));
    };
  }
  std::vector<std::int64_t> done;
  stream_safetensors(folder / "copy", lazy, [&](std::int64_t bytes, std::int64_t) { done.push_back(bytes); });
  EXPECT_EQ(slurp(folder / "copy"), slurp(folder / "file"));
  EXPECT_EQ(most, 1);
  EXPECT_EQ(done.size(), file.tensors.size());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
}

TEST(SafeTensors, AWriteThatFailsInTheMiddleLeavesNoFile) {
  const ScratchFolder folder;
  LazySafeTensors lazy;
  lazy.tensors["a"] = {{{2}, DType::f32}, [] { return sample(DType::f32, {2}); }};
  lazy.tensors["b"] = {{{3}, DType::f32}, [] { return sample(DType::f32, {2}); }};
  expect_error<ValueError>([&] { stream_safetensors(folder / "file", lazy); },
                           {R"(tensor "b": is f32[2] and was announced as f32[3])"});
  lazy.tensors["b"].load = []() -> HostTensor { throw IoError("gone"); };
  expect_error<IoError>([&] { stream_safetensors(folder / "file", lazy); }, {"gone"});
  EXPECT_EQ(folder.file_count(), 0u);
}

TEST(SafeTensors, MisalignedTensorsAreCopiedWhenTheyAreLoaded) {
  const ScratchFolder folder;
  const float values[] = {1, 2};
  const std::string data(reinterpret_cast<const char*>(values), sizeof(values));
  // A header of odd length, as early versions of the Python package wrote.
  spill(folder / "file", file_with(tensor_w("\"F32\"", "[2]", "[0,8]") + " ", data));
  const LazySafeTensors lazy = open_safetensors(folder / "file");
  testing::expect_equal(lazy.tensors.at("w").load(), HostTensor::from(std::span<const float>(values), {2}));
  spill(folder / "bool", file_with(tensor_w("\"BOOL\"", "[1]", "[0,1]"), "\x02"));
  const LazySafeTensors damaged = open_safetensors(folder / "bool");
  expect_error<ParseError>([&] { damaged.tensors.at("w").load(); }, {"tensor \"w\"", "bool needs 0 or 1"});
}

TEST(SafeTensors, WritesTheBytesThatThePythonPackageWrites) {
  const ScratchFolder folder;
  const float a[] = {1, 2};
  const std::int64_t b[] = {3};
  SafeTensors out{{{"k", "v"}}, {}};
  out.tensors["a"] = HostTensor::from<float>(a, {2, 1});
  out.tensors["b"] = HostTensor::from<std::int64_t>(b, {});
  write_safetensors(folder / "file", out);
  std::string header = R"({"__metadata__":{"k":"v"},"b":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                       R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[8,16]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  EXPECT_EQ(slurp(folder / "file"), file_with(header, le(std::int64_t{3}) + le(1.0f) + le(2.0f)));
}

TEST(SafeTensors, TensorsAreViewsThatOutliveTheFile) {
  const ScratchFolder folder;
  SafeTensors out;
  out.tensors["w"] = sample(DType::f64, {1000});
  write_safetensors(folder / "file", out);
  HostTensor first, second;
  {
    const SafeTensors in = read_safetensors(folder / "file");
    first = in.tensors.at("w");
    second = in.tensors.at("w");
  }
  std::filesystem::remove(folder / "file");
  EXPECT_EQ(first.bytes().data(), second.bytes().data());
  testing::expect_equal(first, out.tensors["w"]);
}

TEST(SafeTensors, AMisalignedTensorIsReadAsACopy) {
  const ScratchFolder folder;
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("w":{"dtype":"F32","shape":[],"data_offsets":[1,5]}})";
  spill(folder / "file", file_with(header, "x" + le(2.5f)));
  EXPECT_EQ(read_safetensors(folder / "file").tensors.at("w").as<float>()[0], 2.5f);
}

TEST(SafeTensors, AcceptsPaddingAndAnyOrderOfKeys) {
  const std::string file =
      file_with("{ \"w\" : {\"data_offsets\":[0,1], \"shape\":[1], \"dtype\":\"U8\"} }  \n ", "\7");
  EXPECT_EQ(read_safetensors(bytes_of(file), "x").tensors.at("w").as<std::uint8_t>()[0], 7);
}

TEST(SafeTensors, RejectsBadLengths) {
  expect_rejected("", {"0 bytes", "at least 8"});
  expect_rejected("1234567", {"7 bytes", "at least 8"});
  expect_rejected(le(std::uint64_t{3}) + "{}", {"header length 3", "at most 2"});
  expect_rejected(le(~std::uint64_t{0}) + "{}", {"header length 18446744073709551615", "at most 2"});
  expect_rejected(le(std::uint64_t{1} << 40) + "{}", {"header length 1099511627776"});
  expect_rejected(file_with(""), {"byte 8", "must start with '{'"});
}

TEST(SafeTensors, RejectsHeadersThatAreNotTheJsonItNeeds) {
  expect_rejected(file_with("[]"), {"byte 8", "must start with '{'"});
  expect_rejected(file_with("\xEF\xBB\xBF{}"), {"byte 8", "must start with '{'"});
  expect_rejected(file_with("{"), {"byte", "must be JSON"});
  expect_rejected(file_with("{} x"), {"byte 11", "must be JSON"});
  expect_rejected(file_with("{nonsense}"), {"byte 10", "must be JSON"});
  expect_rejected(file_with(std::string("{}\0\0", 4)), {"byte 10", "zero byte"});
  expect_rejected(file_with("{\"\xff\xfe\":1}"), {"must be JSON in UTF-8", "ill-formed UTF-8"});
  expect_rejected(file_with(R"({"w":1})"), {"header, key \"w\"", "a number is not allowed here"});
  expect_rejected(file_with(R"({"w":null})"), {"key \"w\"", "null is not allowed"});
  expect_rejected(file_with(R"({"w":[]})"), {"key \"w\"", "an array is not allowed"});
  expect_rejected(file_with(R"({"w":{}})"), {"tensor \"w\"", "needs dtype, shape and data_offsets"});
  expect_rejected(file_with(R"({"w":{"extra":1}})"), {"tensor \"w\", key \"extra\"", "only dtype, shape"});
  expect_rejected(file_with(R"({"__metadata__":{"k":1}})"), {"__metadata__, key \"k\"", "a number"});
  expect_rejected(file_with(R"({"__metadata__":"k"})"), {"key \"__metadata__\"", "a string"});
}

TEST(SafeTensors, RejectsDeepNestingWithoutUsingTheStack) {
  const std::string brackets(10'000'000, '[');
  expect_rejected(file_with(R"({"w":)" + brackets), {"key \"w\"", "an array is not allowed"});
  expect_rejected(file_with(tensor_w("\"F32\"", brackets, "[0,0]")),
                  {"tensor \"w\", key \"shape\"", "an array"});
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += R"({"a":)";
  expect_rejected(file_with(objects), {"tensor \"a\", key \"a\"", "only dtype"});
}

TEST(SafeTensors, RejectsDuplicateKeys) {
  const std::string w = R"("w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  expect_rejected(file_with("{" + w + "," + w + "}"), {"key \"w\"", "appears twice"});
  expect_rejected(file_with(R"({"__metadata__":{"k":"1","k":"2"}})"),
                  {"__metadata__, key \"k\"", "appears twice"});
  expect_rejected(file_with(R"({"__metadata__":{},"__metadata__":{}})"), {"__metadata__", "appears twice"});
  expect_rejected(file_with(R"({"w":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
                  {"tensor \"w\", key \"dtype\"", "appears twice"});
}

TEST(SafeTensors, RejectsDTypesItHasNotAndNamesThem) {
  expect_rejected(file_with(tensor_w("\"F8_E4M3\"", "[1]", "[0,1]"), "x"),
                  {"tensor \"w\"", "\"F8_E4M3\"", "I64 F64 F32 U32 I32 BF16 F16 U16 I8 U8 BOOL"});
  expect_rejected(file_with(tensor_w("7", "[1]", "[0,1]"), "x"), {"tensor \"w\", key \"dtype\"", "a number"});
}

TEST(SafeTensors, RejectsBadShapes) {
  const auto shape = [](std::string_view text) { return file_with(tensor_w("\"U8\"", text, "[0,1]"), "x"); };
  expect_rejected(shape("[-1]"), {"tensor \"w\", key \"shape\"", "a negative number"});
  expect_rejected(shape("[1.0]"), {"key \"shape\"", "not a 64-bit integer"});
  expect_rejected(shape("[1e0]"), {"key \"shape\"", "not a 64-bit integer"});
  expect_rejected(shape("[99999999999999999999]"), {"key \"shape\"", "not a 64-bit integer"});
  expect_rejected(shape("[9223372036854775808]"), {"key \"shape\"", "beyond 63 bits"});
  expect_rejected(shape("[\"1\"]"), {"key \"shape\"", "a string"});
  expect_rejected(shape("1"), {"key \"shape\"", "a number"});
  expect_rejected(shape("[1,1,1,1,1,1,1,1,1]"), {"tensor \"w\"", "at most 8 axes"});
  expect_rejected(shape("[4294967296,4294967296]"), {"tensor \"w\", shape [4294967296, 4294967296]", "2^63"});
  expect_rejected(file_with(tensor_w("\"U8\"", "[0,4294967296,4294967296]", "[0,0]")), {"2^63"});
  expect_rejected(shape("[2]"), {"data_offsets [0, 1]", "u8 of shape [2] needs 2 bytes"});
}

TEST(SafeTensors, RejectsBadOffsets) {
  const auto offsets = [](std::string_view text, std::string_view data) {
    return file_with(tensor_w("\"U8\"", "[1]", text), data);
  };
  expect_rejected(offsets("[1,0]", "x"), {"tensor \"w\", data_offsets [1, 0]", "must not be after the end"});
  expect_rejected(offsets("[0,9]", "x"), {"data_offsets [0, 9]", "only 1 bytes of data"});
  expect_rejected(offsets("[0]", "x"), {"key \"data_offsets\"", "needs two numbers"});
  expect_rejected(offsets("[0,1,2]", "x"), {"key \"data_offsets\"", "needs two numbers"});
  expect_rejected(offsets("[1,2]", "xx"), {"data_offsets [1, 2]", "leaves a hole after byte 0"});
  expect_rejected(offsets("[0,1]", "xx"), {"1 bytes after the last tensor", "must end with the last tensor"});
  expect_rejected(file_with("{}", "x"), {"1 bytes after the last tensor"});
  expect_rejected(file_with(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                            R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                            "xyz"),
                  {"tensor \"b\", data_offsets [1, 3]", "overlaps the tensor before it, which ends at 2"});
}

TEST(SafeTensors, RejectsBoolBytesThatAreNotBool) {
  expect_rejected(file_with(tensor_w("\"BOOL\"", "[2]", "[0,2]"), "\1\2"),
                  {"tensor \"w\", element 1 is byte 2"});
}

TEST(SafeTensors, EscapesAndShortensHostileNamesInMessages) {
  const std::string name = "\\u001b[31m" + std::string(500, 'a');
  expect_rejected(file_with("{\"" + name + "\":1}"), {"\"\\x1b[31maaa", "aaa...\""});
}

TEST(SafeTensors, EveryTruncationOfAFileIsRejected) {
  const std::string file = file_with(tensor_w("\"F32\"", "[2]", "[0,8]"), "12345678");
  EXPECT_NO_THROW(read_safetensors(bytes_of(file), "x"));
  for (std::size_t n = 0; n < file.size(); ++n) {
    EXPECT_THROW(read_safetensors(bytes_of(file).first(n), "x"), ParseError) << n;
  }
}

TEST(SafeTensors, NamesTheFileInErrors) {
  const ScratchFolder folder;
  spill(folder / "broken.st", "?");
  expect_error<ParseError>([&] { read_safetensors(folder / "broken.st"); },
                           {(folder / "broken.st").string()});
  expect_error<IoError>([&] { read_safetensors(folder / "none.st"); }, {"none.st", "No such file"});
}

TEST(SafeTensors, RefusesToWriteWhatCouldNotBeRead) {
  const ScratchFolder folder;
  const auto refuse = [&](const SafeTensors& file, std::initializer_list<std::string_view> parts) {
    expect_error<ValueError>([&] { write_safetensors(folder / "file", file); }, parts);
    EXPECT_EQ(folder.file_count(), 0u);
  };
  refuse({{}, {{"__metadata__", HostTensor()}}}, {"[write_safetensors] tensor \"__metadata__\""});
  refuse({{}, {{"\xff", HostTensor()}}}, {"tensor name \"\\xff\"", "UTF-8"});
  refuse({{{"k", "\xc0\x80"}}, {}}, {"metadata value \"\\xc0\\x80\"", "UTF-8"});
}

}  // namespace
}  // namespace ferrite
