// Files of prior-fitted networks and of their contexts, and configs as text.
#include "ferrite/models/pfn/file.hpp"

#include "models/pfn/pfn_test.hpp"

namespace ferrite::pfn {
namespace {

using testing::both_tasks;
using testing::expect_error;
using testing::lively_pfn;
using testing::small_pfn;
using testing::Tables;

TEST(PfnFile, HoldsWeightsAndConfig) {
  const testing::ScratchFolder folder;
  Cpu backend;
  for (const Task task : both_tasks) {
    auto model = lively_pfn(backend, small_pfn(task).with_offsets({0, 2}));
    const Tables<Cpu> tables(backend, task);
    save(folder / "m.safetensors", model);
    auto loaded = load(backend, folder / "m.safetensors");
    EXPECT_EQ(loaded.config(), model.config());
    const auto scores = model.forward(tables.x, tables.is_category, tables.labels);
    EXPECT_EQ(loaded.forward(tables.x, tables.is_category, tables.labels).to_vector(), scores.to_vector());

    save(folder / "half.safetensors", model, DType::bf16);
    auto rounded_once = load(backend, folder / "half.safetensors");
    EXPECT_EQ(rounded_once.cell.weight.dtype(), DType::f32);
    EXPECT_LT(max(abs(rounded_once.cell.weight - model.cell.weight)).item(), 0.02);
    EXPECT_NE(rounded_once.cell.weight.to_vector(), model.cell.weight.to_vector());
  }
}

TEST(PfnFile, AContextPredictsAfterItsTrainRowsAreGone) {
  const testing::ScratchFolder folder;
  Cpu backend;
  for (const Task task : both_tasks) {
    auto model = lively_pfn(backend, small_pfn(task));
    const Tables<Cpu> tables(backend, task);
    const auto context = model.forward_context(tables.x_train(), tables.is_category, tables.labels);
    save_context(folder / "c.safetensors", context, model.config());
    const auto loaded = load_context(backend, folder / "c.safetensors", model.config());
    EXPECT_EQ(model.predict(loaded, tables.x_query()).to_vector(),
              model.predict(context, tables.x_query()).to_vector());
    if (task == Task::regression) {
      EXPECT_EQ(loaded.in_units(tables.targets).to_vector(), context.in_units(tables.targets).to_vector());
    }
    expect_error<ParseError>(
        [&] { load_context(backend, folder / "c.safetensors", model.config().with_layers(9)); },
        {"c.safetensors", "another config"});
  }
}

TEST(PfnFile, BadFilesAreRefusedByName) {
  const testing::ScratchFolder folder;
  Cpu backend;
  auto model = lively_pfn(backend, small_pfn());
  train::write_weights(folder / "bare.safetensors", model.state());
  expect_error<ParseError>([&] { load(backend, folder / "bare.safetensors"); },
                           {"bare.safetensors: has no config", "pfn::save"});
  expect_error<ParseError>([&] { load_context(backend, folder / "bare.safetensors", model.config()); },
                           {"bare.safetensors: has no config", "pfn::save_context"});
  expect_error<IoError>([&] { load(backend, folder / "none.safetensors"); }, {"none.safetensors"});
  train::write_weights(folder / "other.safetensors", model.state(),
                       {{setting, small_pfn().with_layers(1).to_json()}});
  expect_error<ValueError>([&] { load(backend, folder / "other.safetensors"); }, {"unexpected 'blocks.1"});
  train::write_weights(folder / "damaged.safetensors", model.state(),
                       {{setting, small_pfn().with_layers(1'000'000).to_json()}});
  expect_error<ParseError>([&] { load(backend, folder / "damaged.safetensors"); },
                           {"damaged.safetensors: its config says 1000000 layers"});
  train::write_weights(folder / "empty.safetensors", {{"is_category", to_host(zeros(backend, {1, 1}))}},
                       {{context_setting, model.config().to_json()}});
  expect_error<ValueError>([&] { load_context(backend, folder / "empty.safetensors", model.config()); },
                           {"a context without 'columns."});
  expect_error<DTypeError>([&] { save(folder / "m.safetensors", model, DType::i32); }, {"[Pfn] dtype"});
}

TEST(PfnConfig, TextHoldsEveryMember) {
  const Config config = small_pfn(Task::regression)
                            .with_offsets({0, 7})
                            .with_eps(1e-6)
                            .with_dtype(DType::f64)
                            .with_registers(0)
                            .with_bins(64);
  EXPECT_EQ(Config::from_json(config.to_json(), "here"), config);
  EXPECT_EQ(Config::from_json(Config{}.to_json(), "here"), Config{});
  EXPECT_NE(config, Config{});
}

TEST(PfnConfig, ErrorsNameTheMemberAndTheRule) {
  const auto refused = [](const Config& config, std::initializer_list<std::string_view> parts) {
    expect_error<ValueError>([&] { config.check(); }, parts);
  };
  refused(Config{}.with_dim(0), {"[Pfn] dim 0", "[1, "});
  refused(Config{}.with_dim(100), {"dim 100 and heads of 32"});
  refused(Config{}.with_registers(-1), {"registers -1"});
  refused(Config{}.with_classes(1), {"classes 1"});
  refused(Config{}.with_bins(3), {"bins 3"});
  refused(Config{}.with_layers(std::int64_t{1} << 40), {"layers"});
  refused(Config{}.with_offsets({}), {"offsets []"});
  refused(Config{}.with_offsets({0, -1}), {"offsets [0, -1]"});
  refused(Config{}.with_eps(0), {"eps 0"});
  refused(Config{}.with_dtype(DType::i32), {"dtype i32"});
  const auto unread = [](std::string text, std::initializer_list<std::string_view> parts) {
    expect_error<ParseError>([&] { Config::from_json(text, "here"); }, parts);
  };
  unread("[]", {"here"});
  unread("{", {"here: is not the config of a Pfn"});
  std::string text = Config{}.to_json();
  unread(text.substr(0, text.size() - 1) + ",\"more\":1}", {"\"more\" is not known"});
  unread(text.replace(text.find("classification"), 14, "ranking"), {"task \"ranking\""});
}

TEST(Pfn, TheDefaultHasThreeMillionParameters) {
  Cpu backend;
  Rng rng(1);
  Network<Cpu> model(backend, Config{}, rng);
  EXPECT_NEAR(static_cast<double>(model.parameter_count()), 3.06e6, 0.1e6);
  Network<Cpu> bare(backend, Config{}.with_registers(0), rng);
  EXPECT_EQ(model.parameter_count() - bare.parameter_count(), 2 * 16 * 192);
}

}  // namespace
}  // namespace ferrite::pfn
