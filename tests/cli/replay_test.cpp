// ferrite replay: every op, comparison, gradients, layouts, and files that are wrong.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/cli_test.hpp"
#include "ferrite/io/safetensors.hpp"
#include "ferrite/ops/all.hpp"
#include "ferrite/ops/attributes.hpp"
#include "ferrite/ops/launch.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::testing {
namespace {

template <class T>
HostTensor tensor(const std::vector<T>& values, const Shape& shape) {
  return HostTensor::from(std::span<const T>(values), shape);
}

template <class T = float>
std::vector<T> values(const SafeTensors& file, const std::string& name) {
  const auto span = file.tensors.at(name).as<T>();
  return {span.begin(), span.end()};
}

HostTensor to_host(const Tensor<Reference>& x) {
  const auto bytes = to_bytes(x);
  return HostTensor::copy_of(x.dtype(), x.shape(), bytes);
}

/// Uniform in [0.1, 1), ascending as the edges of bucketize must be, or zeros for integers, which stand for
/// indices here.
Tensor<Reference> draw(Reference& b, const Meta& meta, Rng& rng) {
  if (!is_floating(meta.dtype)) return zeros(b, meta.shape, meta.dtype);
  const auto x = rand(b, meta.shape, rng, 0.1, 1, meta.dtype);
  return x.rank() == 0 ? x : sort(x).first;
}

class Replay : public ::testing::Test {
 protected:
  /// Writes a file, replays it, and returns what the program said.
  Reply replay(const SafeTensors& file, const std::string& arguments) {
    write_safetensors(path_, file);
    return run_ferrite("replay " + path_ + " " + arguments);
  }
  ScratchFolder folder_;
  std::string path_ = folder_ / "call.safetensors", out_ = folder_ / "out.safetensors";
  const SafeTensors softmax_{{{"op", "softmax"}, {"attributes", R"({"axis":-1})"}},
                             {{"in0", tensor<float>({1, 2, 3, 4}, {2, 2})}}};
};

TEST_F(Replay, RunsEveryOpOnEveryBackend) {
  op::Core::for_each([&]<class Op>() {
    SCOPED_TRACE(Op::type_name);
    Op op;
    Reference b;
    Rng rng(7);
    SafeTensors file{{{"op", std::string(Op::type_name)}}, {}};
    std::vector<Array> inputs;
    std::vector<const Array*> refs;
    for (const Meta& meta : op_example(op, DType::f32)) inputs.push_back(draw(b, meta, rng).primitive());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      refs.push_back(&inputs[i]);
      file.tensors["in" + std::to_string(i)] = to_host({b, inputs[i]});
    }
    file.metadata["attributes"] = format_attributes(op);
    const auto out = evaluate(b, op, Ins(refs.data(), refs.size()));
    for (std::size_t k = 0; k < out.size(); ++k)
      file.tensors["out" + std::to_string(k)] = to_host({b, out[k]});
    for (const char* backend : {"reference", "cpu", "parity"}) {
      const Reply run = replay(file, std::string("--backend ") + backend);
      EXPECT_EQ(run.code, 0) << backend << ": " << run.output;
    }
  });
}

TEST_F(Replay, RunsLaunchesOfKernels) {
  const auto kernel = kernel::Kernel::from_source(
      "import warp as wp\n\n@wp.kernel\ndef saxpy(a: float, x: wp.array[float], y: wp.array[float]):\n"
      "    i = wp.tid()\n    y[i] = a * x[i] + y[i]\n");
  const op::Launch launch{{kernel, 3, {kernel::number_argument(kernel, 0, 2), {}, {}}}};
  const SafeTensors file{{{"op", "launch"}, {"attributes", format_attributes(launch)}},
                         {{"in0", tensor<float>({1, 2, 3}, {3})},
                          {"in1", tensor<float>({10, 20, 30}, {3})},
                          {"out0", tensor<float>({12, 24, 36}, {3})}}};
  for (const char* backend : {"reference", "cpu", "lazy-cpu", "parity"}) {
    const Reply run = replay(file, std::string("--backend ") + backend);
    EXPECT_EQ(run.code, 0) << backend << ": " << run.output;
    expect_contains(run.output, "agrees with the file");
  }
}

TEST_F(Replay, PrintsTheValuesWhereThereIsNothingToCompareWith) {
  const Reply run = replay(softmax_, "--backend reference");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.output,
            "softmax {\"axis\":-1} on reference\n  out0 f32[2, 2]\n[[0.2689, 0.7311],\n [0.2689, 0.7311]]\n");
}

TEST_F(Replay, ExitsWith1AndNamesTheWorstElementWhereOutputsDiffer) {
  SafeTensors file = softmax_;
  file.tensors["out0"] = tensor<float>({0.2689414f, 0.7310586f, 0.25f, 0.75f}, {2, 2});
  const Reply run = replay(file, "--backend cpu");
  EXPECT_EQ(run.code, 1);
  expect_contains(run.output, "out0 f32[2, 2]: differs from the file in 2 of 4 elements");
  expect_contains(run.output, "worst at element 2: cpu has 0.26894");
  const auto json = nlohmann::json::parse(replay(file, "--json").output);
  EXPECT_EQ(json["op"], "softmax");
  EXPECT_EQ(json["attributes"]["axis"], -1);
  EXPECT_EQ(json["outputs"][0]["agrees"], false);
  EXPECT_EQ(json["outputs"][0]["differing"], 2);
}

TEST_F(Replay, WritesResultsAndGradients) {
  SafeTensors file{{{"op", "binary"}, {"attributes", R"({"fn":"mul","side":"none","scalar":0})"}},
                   {{"in0", tensor<float>({1, 2, 3}, {3})},
                    {"in1", tensor<float>({4, 5, 6}, {3})},
                    {"grad0", tensor<float>({1, 10, 100}, {3})}}};
  for (const char* backend : {"reference", "cpu", "parity"}) {
    const Reply run = replay(file, std::string("--grad --out ") + out_ + " --backend " + backend);
    ASSERT_EQ(run.code, 0) << run.output;
    const SafeTensors result = read_safetensors(out_);
    EXPECT_EQ(values(result, "out0"), (std::vector<float>{4, 10, 18}));
    EXPECT_EQ(values(result, "grad_in0"), (std::vector<float>{4, 50, 600}));
    EXPECT_EQ(values(result, "grad_in1"), (std::vector<float>{1, 20, 300}));
    EXPECT_EQ(result.metadata.at("backend"), backend);
  }
  file.tensors.erase("grad0");  // ones
  replay(file, "--grad --out " + out_);
  EXPECT_EQ(values(read_safetensors(out_), "grad_in0"), (std::vector<float>{4, 5, 6}));
}

TEST_F(Replay, GivesIntegerInputsNoGradient) {
  const SafeTensors file{
      {{"op", "embedding"}},
      {{"in0", tensor<float>({1, 2, 3, 4}, {2, 2})}, {"in1", tensor<std::int64_t>({1, 1}, {2})}}};
  ASSERT_EQ(replay(file, "--grad --out " + out_).code, 0);
  const SafeTensors result = read_safetensors(out_);
  EXPECT_EQ(values(result, "grad_in0"), (std::vector<float>{0, 0, 2, 2}));
  EXPECT_FALSE(result.tensors.contains("grad_in1"));
}

TEST_F(Replay, LaysInputsOutByTheirStrides) {
  SafeTensors file = softmax_;
  file.tensors["out0"] = tensor<float>({0.26894142f, 0.73105858f, 0.26894142f, 0.73105858f}, {2, 2});
  for (const char* strides : {"[1,2]", "[-5,3]", "[0,0]"}) {
    if (std::string(strides) == "[0,0]") {  // every element is the last one written
      file.tensors["in0"] = tensor<float>({7, 7, 7, 7}, {2, 2});
      file.tensors["out0"] = tensor<float>({0.5f, 0.5f, 0.5f, 0.5f}, {2, 2});
    }
    file.metadata["in0.strides"] = strides;
    const Reply run = replay(file, "--backend cpu");
    EXPECT_EQ(run.code, 0) << strides << ": " << run.output;
  }
}

TEST_F(Replay, AddsToWhatAccumulatingOutputsHeld) {
  SafeTensors file{{{"op", "matmul"}, {"accumulate", "1"}},
                   {{"in0", tensor<float>({1, 2}, {1, 2})},
                    {"in1", tensor<float>({3, 4}, {2, 1})},
                    {"before0", tensor<float>({100}, {1, 1})},
                    {"out0", tensor<float>({111}, {1, 1})}}};
  for (const char* backend : {"reference", "cpu", "parity"}) {
    const Reply run = replay(file, std::string("--backend ") + backend);
    EXPECT_EQ(run.code, 0) << run.output;
  }
  file.tensors["out0"] = tensor<float>({11}, {1, 1});
  EXPECT_EQ(replay(file, "--backend cpu").code, 1);
}

TEST_F(Replay, RunsOnTheBackendThatTheFileNamesUnlessToldOtherwise) {
  SafeTensors file = softmax_;
  expect_contains(replay(file, "").output, "softmax {\"axis\":-1} on cpu\n");
  file.metadata["backend"] = "lazy-cpu";
  expect_contains(replay(file, "").output, " on lazy-cpu\n");
  expect_contains(replay(file, "--backend reference").output, " on reference (the file is of lazy-cpu)\n");
  file.metadata["backend"] = "MyCpu";
  const Reply run = replay(file, "");
  EXPECT_EQ(run.code, 2);
  expect_contains(run.output,
                  "[replay] backend 'MyCpu', which the file names, is not one of this program: it has cpu, "
                  "cpu-openblas, cpu-fastest, cuda, reference, lazy-cpu, lazy-cuda");
  EXPECT_EQ(replay(softmax_, "--backend abacus").code, 2);
}

TEST_F(Replay, TakesOpAndAttributesFromTheCommandLine) {
  SafeTensors file = softmax_;
  file.metadata.clear();
  EXPECT_EQ(replay(file, "").code, 2);
  const Reply run = replay(file, R"(--op reduce --attributes '{"fn":"sum","axes":[0],"keepdim":false}')");
  EXPECT_EQ(run.code, 0);
  expect_contains(run.output, "[4., 6.]");
}

TEST_F(Replay, RefusesCallsThatDoNotFitTheOp) {
  const auto expect_refused = [&](const SafeTensors& file, const std::string& arguments,
                                  const std::string& message) {
    const Reply run = replay(file, arguments);
    EXPECT_EQ(run.code, 2) << run.output;
    expect_contains(run.output, message);
  };
  expect_refused(softmax_, "--op soft", "[replay] there is no op 'soft'");
  expect_refused(softmax_, "--attributes '{\"dim\":1}'",
                 "[softmax] unknown attribute 'dim': the attributes are axis");
  expect_refused(softmax_, "--attributes '{'", "[softmax] attributes are not JSON");
  expect_refused(softmax_, "--op matmul --attributes '{}'", "[matmul] 1 inputs given: needs 2");
  SafeTensors file = softmax_;
  file.tensors["out0"] = file.tensors["out1"] = tensor<float>({1, 2, 3, 4}, {2, 2});
  expect_refused(file, "", "[replay] the file has 2 outputs: softmax has 1");
  file = softmax_;
  file.tensors["grad0"] = tensor<float>({1}, {1});
  expect_refused(file, "--grad", "[backward] root gradient [1]: needs [2, 2]");
  expect_refused(softmax_,
                 "--grad --op argreduce --attributes '{\"fn\":\"argmax\",\"axis\":0,\"keepdim\":false}'",
                 "[backward]");
}

TEST_F(Replay, OtherDtypesAndShapesAreDifferences) {
  const auto expect_differs = [&](const HostTensor& expected, const std::string& file_has) {
    SafeTensors file = softmax_;
    file.tensors["out0"] = expected;
    const Reply run = replay(file, "");
    EXPECT_EQ(run.code, 1) << run.output;
    expect_contains(run.output, "out0 f32[2, 2]: differs from the file, which has " + file_has);
    const auto json = nlohmann::json::parse(replay(file, "--json").output);
    EXPECT_EQ(json["outputs"][0]["agrees"], false);
    EXPECT_EQ(json["outputs"][0]["file_has"], file_has);
  };
  expect_differs(tensor<float>({1}, {1}), "f32[1]");
  expect_differs(tensor<double>({0.26894142, 0.73105858, 0.26894142, 0.73105858}, {2, 2}), "f64[2, 2]");
}

TEST_F(Replay, ComparesTheGradientsOfTheFile) {
  SafeTensors file{{{"op", "binary"}, {"attributes", R"({"fn":"mul","side":"none","scalar":0})"}},
                   {{"in0", tensor<float>({1, 2, 3}, {3})},
                    {"in1", tensor<float>({4, 5, 6}, {3})},
                    {"grad_in0", tensor<float>({4, 5, 6}, {3})}}};
  for (const char* grad : {"", "--grad"}) {
    const Reply right = replay(file, grad);
    EXPECT_EQ(right.code, 0) << right.output;
    expect_contains(right.output, "grad_in0 f32[3]: agrees with the file");
  }
  file.tensors["grad_in0"] = tensor<float>({4, 5, 7}, {3});
  const Reply wrong = replay(file, "--grad");
  EXPECT_EQ(wrong.code, 1) << wrong.output;
  expect_contains(wrong.output, "grad_in0 f32[3]: differs from the file in 1 of 3 elements");
  const auto json = nlohmann::json::parse(replay(file, "--grad --json").output);
  EXPECT_EQ(json["gradients"][0]["agrees"], false);
  EXPECT_FALSE(json["gradients"][1].contains("agrees"));
  file.tensors["grad_in0"] = tensor<float>({4, 5}, {2});
  const Reply shape = replay(file, "--grad");
  EXPECT_EQ(shape.code, 1) << shape.output;
  expect_contains(shape.output, "grad_in0 f32[3]: differs from the file, which has f32[2]");
  file.tensors["grad_in7"] = file.tensors["grad_in0"];
  const Reply none = replay(file, "--grad");
  EXPECT_EQ(none.code, 2) << none.output;
  expect_contains(none.output, "the file has grad_in7: mul has no such gradient");
}

TEST_F(Replay, GradientsOfManyElementsAreAllowedNoMore) {
  const auto of = [](float value) { return tensor(std::vector<BFloat16>(4096, to_bfloat16(value)), {4096}); };
  SafeTensors file{{{"op", "binary"}, {"attributes", R"({"fn":"mul","side":"none","scalar":0})"}},
                   {{"in0", of(1)}, {"in1", of(4)}, {"grad_in0", of(4)}}};
  EXPECT_EQ(replay(file, "").code, 0);
  file.tensors["grad_in0"] = of(5);
  EXPECT_EQ(replay(file, "").code, 1);
}

TEST_F(Replay, RefusesTensorsThatItWouldIgnore) {
  const auto expect_refused = [&](const std::string& name, const std::string& message) {
    SafeTensors file = softmax_;
    file.tensors[name] = file.tensors["in0"];
    const Reply run = replay(file, "");
    EXPECT_EQ(run.code, 2) << run.output;
    expect_contains(run.output, message);
  };
  expect_refused("out1", "call.safetensors: there is no tensor out0 but one after it: number them from 0");
  expect_refused("in2", "there is no tensor in1 but one after it");
  expect_refused("out00", "there is no tensor out0");
  expect_refused("before0", "before0, ... of outputs that do not accumulate: leave them out, or set");
  for (const char* name : {"out", "output0", "expected", "grad1"})
    expect_refused(name,
                   fmt::format("call.safetensors: '{}' is no tensor of a replay file: name them", name));
}

TEST_F(Replay, RefusesBrokenAndHostileFiles) {
  const auto with = [&](const std::string& key, const std::string& value) {
    SafeTensors file = softmax_;
    file.metadata[key] = value;
    return replay(file, "");
  };
  for (const char* strides :
       {"[1]", "[1,\"a\"]", "{}", "[1,", "[1.5,1]", "[4611686018427387904,1]", "[99999999999,1]"}) {
    const Reply run = with("in0.strides", strides);
    EXPECT_EQ(run.code, 2) << strides << ": " << run.output;
    expect_contains(run.output, "in0.strides");
  }
  EXPECT_EQ(with("accumulate", "-1").code, 2);
  EXPECT_EQ(with("accumulate", "1x").code, 2);
  expect_contains(with("accumulate", "1").output, "output 0 accumulates but there is no tensor before0");
  EXPECT_EQ(with("accumulate", "4294967295").code, 2);
  write_safetensors(path_, softmax_);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 3);
  EXPECT_EQ(run_ferrite("replay " + path_).code, 2);
  EXPECT_EQ(run_ferrite("replay " + (folder_ / "nothing").string()).code, 2);
  EXPECT_FALSE(std::filesystem::exists(out_));
}

}  // namespace
}  // namespace ferrite::testing
