// Replay in a user's program: an op and a backend of its own, the backend with a broken kernel.
#include "ferrite/stacks/replay.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "ferrite/io/safetensors.hpp"
#include "messages.hpp"
#include "scratch_folder.hpp"

namespace ferrite::testing {
namespace {

/// x + bias.
struct Shift {
  static constexpr std::string_view type_name = "shift";
  double by = 1;

  Metas infer(MetaSpan in) const {
    detail::check_arity(type_name, in.size(), 1, 1);
    detail::check_floating(type_name, "x", in[0].dtype);
    return {in[0]};
  }
  static void attributes(auto& self, auto&& visit) { visit("by", self.by); }
  template <class B>
  Tensors<B> compose(B&, TensorSpan<B> in) const {
    return {in[0] + by};
  }
  template <class B>
  void vjp(Vjp<B>& v) const {
    v.add(0, v.grad());
  }
};

/// Gets shift wrong, and softmax.
struct Broken : Cpu {
  friend void run(Broken& b, const Shift& op, Ins in, Outs out) {
    run(static_cast<Cpu&>(b), op::Binary{op::BinaryFn::add, op::ScalarSide::right, op.by + 0.01}, in, out);
  }
  friend void run(Broken& b, const op::Softmax& op, Ins in, Outs out) {
    run(static_cast<Cpu&>(b), op, in, out);
    out[0].data<float>()[0] *= 1.01f;
  }
};

class OwnReplay : public ::testing::Test {
 protected:
  /// The report of a call that Parity finds wrong.
  template <class F>
  ParityReport report_of(F&& call) {
    Parity<Broken, Reference> b(ParityConfig{}.with_throw(false).with_directory(folder_ / "reports"));
    call(from_vector(b, std::vector<float>{1, 2, 3, 4}, {2, 2}));
    EXPECT_EQ(b.reports().size(), 1u);
    return b.reports().at(0);
  }
  static Replayer& replayer() {
    static Replayer all = [] {
      Replayer r;
      r.add<Cpu, Shift>("cpu").add_only<Broken, Shift, op::Softmax>();
      return r;
    }();
    return all;
  }
  ScratchFolder folder_;
};

TEST_F(OwnReplay, RunsTheBrokenKernelAgainAndNotTheGoodOneOfItsBase) {
  for (const bool own_op : {true, false}) {
    const ParityReport report =
        report_of([&](const auto& x) { return own_op ? eval(Shift{2}, x) : softmax(x); });
    EXPECT_EQ(report.backend, "Broken");
    expect_contains(report.message(), "by a program whose Replayer has " + report.op + " on Broken");
    const ReplayAnswer again = replayer().answer({.file = report.file});
    EXPECT_EQ(again.status, 1) << again.message;
    expect_contains(again.message, " on Broken\n");
    expect_contains(again.message, "differs from the file");
    const ReplayAnswer good = replayer().answer({.file = report.file, .backend = "cpu"});
    EXPECT_EQ(good.status, 0) << good.message;
    expect_contains(good.message, " on cpu (the file is of Broken)\n");
  }
}

TEST_F(OwnReplay, SaysWhatIsMissing) {
  const ParityReport report = report_of([](const auto& x) { return eval(Shift{2}, x); });
  Replayer library;
  EXPECT_EQ(library.answer({.file = report.file}).status, 2);
  library.add<Reference>();
  expect_contains(library.answer({.file = report.file}).message,
                  "[replay] backend 'Broken', which the file names, is not one of this program: it has "
                  "reference;");
  expect_contains(library.answer({.file = report.file, .backend = "reference"}).message,
                  "[replay] there is no op 'shift' in this program");
  EXPECT_THROW(library.add<Reference>("reference"), ValueError);
  EXPECT_EQ(replayer().backends(), (std::vector<std::string>{"cpu", "Broken"}));
}

TEST_F(OwnReplay, GivesGradientsAndServesOpsOfItsOwn) {
  const std::vector<float> values{1, 2};
  write_safetensors(folder_ / "call", {{{"op", "shift"}, {"attributes", R"({"by":3})"}},
                                       {{"in0", HostTensor::from(std::span<const float>(values), {2})}}});
  const ReplayResult result = replayer().run({.file = folder_ / "call", .grad = true});
  EXPECT_EQ(result.backend, "cpu");  // the first, since the file names none
  EXPECT_EQ(result.outputs[0].as<float>()[1], 5);
  EXPECT_EQ(result.gradients.at("grad_in0").as<float>()[1], 1);

  const nlohmann::json request{{"file", (folder_ / "call").string()}, {"backend", "Broken"}};
  std::istringstream requests(request.dump() + "\nnonsense\n");
  std::ostringstream answers;
  replayer().serve(requests, answers);
  std::istringstream lines(answers.str());
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_EQ(nlohmann::json::parse(first)["status"], 0);
  expect_contains(first, "shift");
  EXPECT_EQ(nlohmann::json::parse(second)["status"], 2);
}

TEST_F(OwnReplay, ParityOfTheLibraryStillNamesTheCommand) {
  ParityReport report;
  report.outputs = {Meta{{1}, DType::f32}};
  report.file = "softmax-1.safetensors";
  report.backend = "cpu";
  expect_contains(report.message(), "replay: ferrite replay softmax-1.safetensors --backend cpu");
}

}  // namespace
}  // namespace ferrite::testing
