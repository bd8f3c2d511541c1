// ferrite replay --serve: a line of JSON in, a line of JSON out, and no call that ends the process.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cli_test.hpp"
#include "ferrite/io/safetensors.hpp"

namespace ferrite::testing {
namespace {

using Json = nlohmann::json;

HostTensor tensor(const std::vector<float>& values, const Shape& shape) {
  return HostTensor::from(std::span<const float>(values), shape);
}

class Serve : public ::testing::Test {
 protected:
  /// The answers to these lines, given to one process.
  std::vector<Json> answers(const std::vector<std::string>& lines, const std::string& arguments) {
    std::ofstream requests(folder_ / "requests");
    for (const std::string& line : lines) requests << line << "\n";
    requests.close();
    const Reply reply =
        run_ferrite("replay --serve " + arguments + " < '" + (folder_ / "requests").string() + "'");
    EXPECT_EQ(reply.code, 0) << reply.output;
    std::vector<Json> all;
    std::istringstream text(reply.output);
    for (std::string line; std::getline(text, line);) all.push_back(Json::parse(line));
    EXPECT_EQ(all.size(), lines.size()) << reply.output;
    all.resize(lines.size());
    return all;
  }
  std::string write(const std::string& name, const SafeTensors& file) {
    write_safetensors(folder_ / name, file);
    return (folder_ / name).string();
  }
  std::string request(const std::string& file, bool grad = false) const {
    return Json{{"file", file}, {"out", out_}, {"grad", grad}}.dump();
  }

  ScratchFolder folder_;
  const std::string out_ = (folder_ / "out.safetensors").string();
  const SafeTensors softmax_{{{"op", "softmax"}, {"attributes", R"({"axis":-1})"}},
                             {{"in0", tensor({1, 2, 3, 4}, {2, 2})}}};
};

TEST_F(Serve, AnswersEachLineWithWhatTheExitCodeWouldBe) {
  SafeTensors right = softmax_, wrong = softmax_;
  right.tensors["out0"] = tensor({0.2689414f, 0.7310586f, 0.2689414f, 0.7310586f}, {2, 2});
  wrong.tensors["out0"] = tensor({0.2689414f, 0.7310586f, 0.25f, 0.75f}, {2, 2});
  const std::string one = request(write("right", right)), other = request(write("wrong", wrong), true);
  for (const char* backend : {"cpu", "reference", "lazy-cpu", "parity"}) {
    const auto said = answers({one, other, one}, std::string("--backend ") + backend);
    EXPECT_EQ(said[0]["status"], 0) << said[0];
    EXPECT_EQ(said[1]["status"], 1) << said[1];
    EXPECT_EQ(said[2]["status"], 0) << said[2];
    expect_contains(said[1]["message"], "differs from the file in 2 of 4 elements");
  }
}

TEST_F(Serve, WritesResultsAndGradientsOnlyWhereAsked) {
  const std::string call = write("call", softmax_);
  EXPECT_EQ(answers({request(call, true)}, "--backend cpu")[0]["status"], 0);
  EXPECT_TRUE(read_safetensors(out_).tensors.contains("grad_in0"));
  EXPECT_EQ(answers({request(call, false)}, "--backend cpu")[0]["status"], 0);
  EXPECT_FALSE(read_safetensors(out_).tensors.contains("grad_in0"));
  std::filesystem::remove(out_);
  const auto said = answers({Json{{"file", call}}.dump()}, "--backend cpu");
  expect_contains(said[0]["message"], "0.7311");
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(Serve, GoesOnAfterCallsThatAreWrong) {
  SafeTensors misfit = softmax_;
  misfit.metadata["op"] = "matmul";
  const std::string good = request(write("call", softmax_));
  std::ofstream(folder_ / "garbage", std::ios::binary) << "\xff\xfe no tensors";
  const std::string broken = request(write("misfit", misfit)),
                    unreadable = request((folder_ / "garbage").string());
  const std::vector<std::string> bad{
      broken,
      unreadable,
      request("no such file"),
      "",
      "no json",
      "{\"file\": \"cut",
      "[1, 2]",
      "\xff\xfe",
      "{}",
      R"({"file": 3})",
      R"({"file": "x", "grad": "yes"})",
      R"({"flie": "x"})",
      R"({"file": "x", "backend": "abacus"})",
  };
  std::vector<std::string> lines;
  for (const std::string& line : bad) lines.insert(lines.end(), {line, good});
  const auto said = answers(lines, "--backend cpu");
  for (std::size_t i = 0; i < bad.size(); ++i) {
    EXPECT_EQ(said[2 * i]["status"], 2) << bad[i] << ": " << said[2 * i];
    EXPECT_FALSE(said[2 * i]["message"].get<std::string>().empty()) << bad[i];
    EXPECT_EQ(said[2 * i + 1]["status"], 0) << said[2 * i + 1];
  }
  expect_contains(said[0]["message"], "[matmul]");
  expect_contains(said[22]["message"], "the keys are file, backend, op, attributes, out and grad");
}

TEST_F(Serve, WritesNoResultsOverTheCall) {
  const std::string call = write("call", softmax_);
  std::filesystem::create_symlink("call", folder_ / "link");
  for (const std::string& out : {call, (folder_ / "link").string()}) {
    const auto said = answers({Json{{"file", call}, {"out", out}}.dump()}, "--backend cpu");
    EXPECT_EQ(said[0]["status"], 2) << said[0];
    expect_contains(said[0]["message"],
                    "the results would be written over the call: give 'out' a file of its own");
  }
  EXPECT_TRUE(read_safetensors(call).tensors.contains("in0"));
}

TEST_F(Serve, TakesNoFileAndACallWithoutItNeedsOne) {
  EXPECT_EQ(run_ferrite("replay --serve call.safetensors < /dev/null").code, 2);
  EXPECT_EQ(run_ferrite("replay --serve --backend cpu < /dev/null").code, 0);
  const Reply nothing = run_ferrite("replay");
  EXPECT_EQ(nothing.code, 2);
  expect_contains(nothing.output, "file");
}

}  // namespace
}  // namespace ferrite::testing
