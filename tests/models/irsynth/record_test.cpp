// Records: verified in every way that needs no GPU, and caught when something is wrong.
#include "ferrite/models/irsynth/record.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "ferrite/kernel/adjoint.hpp"
#include "ferrite/kernel/emit.hpp"
#include "models/irsynth/adjoint_check.hpp"
#include "models/irsynth/record_steps.hpp"
#include "models/irsynth/sha256.hpp"

namespace ferrite::irsynth {
namespace {

TEST(IrsynthRecord, AllChecksOfTheCpuHold) {
  Config config;
  config.backward = true;
  std::map<std::string, int> gradients;
  std::set<std::string> structures;
  constexpr int count = 600;
  for (int i = 0; i < count; ++i) {
    const Record r = make_record(config, 5, i);
    ASSERT_EQ(r.failure, "") << i << "\n" << r.python;
    EXPECT_TRUE(r.checks.round_trip && r.checks.interpreted);
    EXPECT_FALSE(r.checks.cpu.empty());
    EXPECT_LE(r.checks.roundings, accepted_roundings);
    ++gradients[r.checks.adjoint.substr(0, 18)];
    structures.insert(r.structure);
    if (r.program.level == highest_level) {
      EXPECT_FALSE(r.backward.empty());
    }
  }
  EXPECT_GT(gradients["finite differences"], count / 2);
  EXPECT_GT(static_cast<int>(structures.size()), count * 95 / 100);
}

TEST(IrsynthRecord, IsAFunctionOfConfigSeedAndIndex) {
  Config config;
  const std::string a = to_json(make_record(config, 1, 17), config, 1);
  make_record(config, 1, 18);
  EXPECT_EQ(to_json(make_record(config, 1, 17), config, 1), a);
  EXPECT_NE(to_json(make_record(config, 2, 17), config, 2), a);
}

TEST(IrsynthRecord, SaysWhatWasNotDone) {
  Config config;
  config.verify = Verify::none;
  const Record r = make_record(config, 1, 0);
  const auto checks = nlohmann::json::parse(to_json(r, config, 1)).at("metadata").at("verification");
  EXPECT_EQ(checks.at("round_trip"), false);
  for (const char* key : {"interpreter", "cpu", "nvrtc", "gpu"}) EXPECT_TRUE(checks.at(key).is_null()) << key;
}

TEST(IrsynthRecord, HasTheSeedFormatsFields) {
  Config config;
  config.values = true;
  for (const Device device : {Device::cuda, Device::cpu}) {
    config.device = device;
    const std::string name(to_string(device));
    const Record r = make_record(config, 1, 3);
    const auto json = nlohmann::json::parse(to_json(r, config, 1, Layout::lines));
    EXPECT_EQ(json.at("python_source"), r.python);
    EXPECT_EQ(json.at(name + "_forward"), r.forward);
    EXPECT_EQ(json.at("metadata").at("device"), name);
    EXPECT_EQ(json.at("metadata").at("kernel_name"), r.program.kernel().name);
    EXPECT_EQ(json, nlohmann::json::parse(to_json(r, config, 1)));
    const auto& first = json.at("metadata").at("outputs")[0];
    EXPECT_EQ(first.at("sha256").get<std::string>().size(), 64u);
    EXPECT_FALSE(first.at("values").empty());
  }
}

TEST(IrsynthRecord, NamesAndNumbersDoNotCountInTheStructure) {
  Program p = make_program(category("arithmetic"), 3, {9, 9});
  const std::string before = structure_hash(p);
  kernel::Function& k = p.module.kernels[0];
  k.name += "_other";
  for (kernel::Variable& v : k.variables) v.name += "_x";
  kernel::for_each_expr(k.body, [](kernel::Expr& e) {
    if (e.kind == kernel::ExprKind::literal && e.type.is_float()) e.number.real += 0.25;
  });
  EXPECT_EQ(structure_hash(p), before);
}

/// The first record with this property.
template <class F>
Record find(const Config& config, F wanted) {
  for (int i = 0;; ++i) {
    Record r = make_record(config, 21, i);
    if (wanted(r)) return r;
  }
}

TEST(IrsynthRecord, AWrongGradientIsFound) {
  Config config;
  config.lowest_level = highest_level;
  const Record r = find(config, [](const Record& x) { return x.checks.adjoint == "finite differences"; });
  kernel::Module back = kernel::adjoint(r.program.module, r.program.kernel());
  EXPECT_FALSE(check_adjoint(r.program, back, r.inputs, {1, 2}).wrong);
  back.kernels[0].body.clear();
  EXPECT_TRUE(check_adjoint(r.program, back, r.inputs, {1, 2}).wrong);
}

TEST(IrsynthRecord, ABadlyConditionedProgramIsDrawnAgain) {
  // Here a sum of sums goes through tan, sin and a division by nearly nothing: by chance native precision and
  // f64 agreed at the inputs, and the CPU's own functions did not.
  Config config;
  config.backward = true;
  const Record r = make_record(config, 99, 1114);
  EXPECT_EQ(r.failure, "") << r.python;
  EXPECT_EQ(r.python.find("wp.sin(sum * sum + 0.4)"), std::string::npos) << r.python;
}

TEST(IrsynthRecord, AWrongOutputIsFound) {
  Record r = find(Config{}, [](const Record& x) { return x.program.kernel().body.size() > 3; });
  for (kernel::Value& v : r.outputs)
    for (kernel::Number& n : v.numbers)
      if (v.type.is_array() && kernel::is_float(v.type.scalar)) n.real += 1;
  run_on_cpu(r);
  EXPECT_NE(r.failure.find("roundings"), std::string::npos) << r.failure;
}

TEST(IrsynthRecord, NvrtcTakesTheTexts) {
  Config config;
  config.verify = Verify::compile;
  config.backward = true;
  std::vector<Record> records;
  for (int i = 0; i < 40; ++i) records.push_back(make_record(config, 8, i));
  try {
    compile_records(config, records);
  } catch (const BackendError& e) {
    GTEST_SKIP() << e.what();
  }
  for (const Record& r : records) {
    EXPECT_EQ(r.failure, "") << r.forward;
    EXPECT_EQ(r.checks.compiled, "NVRTC, compute_90");
  }
  // One that is wrong is told apart from those it is compiled with.
  records[7].forward += "\nnot a kernel;\n";
  compile_records(config, records);
  for (std::size_t i = 0; i < records.size(); ++i) EXPECT_EQ(records[i].failure.empty(), i != 7) << i;
}

TEST(IrsynthRecord, WarpsStyleIsWarpsText) {
  Config config;
  config.style = Style::warp;
  config.backward = true;
  for (const Device device : {Device::cuda, Device::cpu}) {
    config.device = device;
    for (int i = 0; i < 60; ++i) {
      const Record r = make_record(config, 3, i);
      ASSERT_EQ(r.failure, "") << r.python;
      EXPECT_NE(r.forward.find("// primal vars"), std::string::npos) << r.forward;
      EXPECT_EQ(r.forward.find("// reverse"), std::string::npos);
      const auto json = nlohmann::json::parse(to_json(r, config, 3));
      EXPECT_EQ(json.at(std::string(to_string(device)) + "_forward"), r.forward);
      if (!r.backward.empty()) {
        EXPECT_NE(r.backward.find("// reverse"), std::string::npos) << r.backward;
      }
    }
  }
  config.categories = {"shared_memory"};
  EXPECT_THROW(config.check(), ValueError);
}

TEST(IrsynthSha256, KnownAnswers) {  // FIPS 180-4, examples
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace ferrite::irsynth
