#include "models/pfn/fitted_ensemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ferrite/core/thread_pool.hpp"
#include "models/pfn/context_memory.hpp"

namespace ferrite::pfn::detail {

namespace {

/// Cells that go through the network together. The standard network needs 14 KiB for each, and a GPU many to
/// be busy.
constexpr std::int64_t cells_on_gpu = 1 << 18, cells_on_cpu = 1 << 16;

void tell(const PredictorConfig& config, std::string_view work, std::int64_t done, std::int64_t all) {
  if (config.progress) config.progress(work, static_cast<double>(done) / static_cast<double>(all));
}

}  // namespace

LabelScale LabelScale::of(std::span<const double> labels) {
  LabelScale scale;
  double largest = 0, sum = 0, squares = 0;
  for (const double y : labels) largest = std::max(largest, std::abs(y));
  if (largest > 0) scale.magnitude = largest;
  const auto count = static_cast<double>(labels.size());
  for (const double y : labels) sum += y / scale.magnitude;
  scale.mean = sum / count;
  for (const double y : labels) squares += std::pow(y / scale.magnitude - scale.mean, 2);
  scale.deviation = std::sqrt(squares / count);
  return scale;
}

std::size_t Ensemble::width() const {
  return static_cast<std::size_t>(codes_ ? codes_->symbols() : network_->network.config().bins);
}

/// Members share out the rounds of codes. With one member there are two rounds all the same.
void Ensemble::set_codes(std::int64_t members, std::int64_t classes) {
  classes_ = classes;
  datasets_.clear();
  if (task() == Task::classification) {
    const std::int64_t rounds = std::max<std::int64_t>(2, members);
    codes_.emplace(classes, rounds, seed_, network_->network.config().classes);
    if (codes_->codings() > 1) {
      const std::int64_t digits = codes_->codings() / rounds;
      for (std::int64_t j = 0; j < codes_->codings(); ++j) datasets_.push_back({j / digits % members, j});
      return;
    }
  }
  for (std::int64_t m = 0; m < members; ++m) datasets_.push_back({m, 0});
}

/// Rows of a context for which there is memory.
std::int64_t Ensemble::room_for_rows(const PredictorConfig& config, const EncodedTable& train) const {
  const Config& sizes = network_->network.config();
  // Keys and values; in the last layer only the label's.
  const double row = 2.0 * static_cast<double>(sizes.dim) * static_cast<double>(size_of(sizes.dtype)) *
                     (static_cast<double>(sizes.layers - 1) * static_cast<double>(train.columns() + 1) + 1) *
                     static_cast<double>(datasets_.size());
  const auto needed = [&](std::int64_t rows) { return row * static_cast<double>(rows + sizes.registers); };
  const double bytes =
      config.context_bytes > 0
          ? static_cast<double>(config.context_bytes)
          : usual_context_bytes(network_->backend, needed(std::min(train.rows, config.context_rows)));
  const double rows = std::floor(bytes / row) - static_cast<double>(sizes.registers);
  const std::int64_t least = std::max<std::int64_t>(2, classes_);
  if (rows < static_cast<double>(least))
    throw ValueError(
        fmt::format("[pfn.fit] context_bytes (--memory) {:.0f}: {} columns and {} members need {:.0f} for {} "
                    "rows; allow more, or use fewer members or columns",
                    bytes, train.columns(), config.members, needed(least), least));
  return static_cast<std::int64_t>(std::min(rows, 1e15));
}

Ensemble Ensemble::fit(std::shared_ptr<LoadedNetwork> network, const EncodedTable& train,
                       const PredictorConfig& config) {
  config.check();
  train.check_targets("pfn.fit");
  Ensemble ensemble;
  ensemble.network_ = std::move(network);
  ensemble.seed_ = config.seed;
  ensemble.columns_ = train.columns();
  ensemble.temperature_ = config.temperature;
  ensemble.set_codes(config.members, train.class_count());
  if (train.task == Task::regression) ensemble.labels_ = LabelScale::of(train.targets);

  if (config.context_rows < train.class_count())
    throw ValueError(fmt::format(
        "[pfn.fit] context_rows (--context-rows) {}: must be at least {}, so that every class has a row",
        config.context_rows, train.class_count()));
  std::vector<std::vector<std::int64_t>> rows;
  const std::int64_t room = ensemble.room_for_rows(config, train);
  std::string sampled;
  std::vector<MemberConfig> members;
  for (std::int64_t m = 0; m < config.members; ++m) {
    members.push_back(member_config(config.seed, m));
    ContextRows read = context_rows(train, std::min(config.context_rows, room), member_seed(config.seed, m));
    rows.push_back(std::move(read.rows));
    sampled = std::move(read.notice);
  }
  // They deal the symbols of the codes, not the classes.
  ensemble.members_ =
      EnsembleMember::fit(train, members, ensemble.codes_ ? static_cast<std::int64_t>(ensemble.width()) : 0);
  if (!sampled.empty())
    ensemble.notices_.push_back(fmt::format("{}, another for each member; {} allows more", sampled,
                                            room < config.context_rows
                                                ? "more memory (context_bytes, --memory)"
                                                : "context_rows (--context-rows)"));
  if (ensemble.codes_ && ensemble.codes_->codings() > 1)
    ensemble.notices_.push_back(
        fmt::format("there are {} classes and the network tells {} apart: they are predicted by {} codes",
                    train.class_count(), ensemble.codes_->symbols(), ensemble.codes_->codings()));
  ensemble.add_contexts(train, rows, config);
  return ensemble;
}

HostTensor Ensemble::seen_cells(const EncodedTable& table, std::size_t first_dataset,
                                const std::vector<std::span<const std::int64_t>>& rows) const {
  constexpr std::int64_t most = 128;  // rows of a piece of work
  const auto sets = static_cast<std::int64_t>(rows.size()),
             height = static_cast<std::int64_t>(rows[0].size()), pieces = (height - 1) / most + 1;
  return HostTensor::make(DType::f32, {sets, height, columns_}, [&](std::span<std::byte> bytes) {
    auto* const x = reinterpret_cast<float*>(bytes.data());
    parallel_for(sets * pieces, [&](std::int64_t i) {
      const std::int64_t set = i / pieces, begin = i % pieces * most, end = std::min(height, begin + most);
      member_of(first_dataset + static_cast<std::size_t>(set))
          .write_cells(table,
                       rows[static_cast<std::size_t>(set)].subspan(static_cast<std::size_t>(begin),
                                                                   static_cast<std::size_t>(end - begin)),
                       x + (set * height + begin) * columns_);
    });
  });
}

void Ensemble::add_contexts(const EncodedTable& train, const std::vector<std::vector<std::int64_t>>& rows,
                            const PredictorConfig& config) {
  AnyBackend& backend = network_->backend;
  const auto height = static_cast<std::int64_t>(rows[0].size());
  const auto all = static_cast<std::int64_t>(datasets_.size());
  const std::int64_t cells = (height + network_->network.config().registers) * (columns_ + 1);
  const bool on_gpu = backend.device().kind == DeviceKind::cuda;
  const std::int64_t together = config.members_together > 0 ? config.members_together
                                : on_gpu                    ? std::max<std::int64_t>(1, cells_on_gpu / cells)
                                                            : 1;
  const std::vector<std::uint8_t> flags = train.is_category();
  for (std::int64_t first = 0; first < all; first += together) {
    tell(config, "reading train rows", first, all);
    const std::int64_t count = std::min(together, all - first);
    std::vector<std::span<const std::int64_t>> taken;
    std::vector<float> is_category, numbers;
    std::vector<std::int32_t> classes;
    for (auto d = static_cast<std::size_t>(first); d < static_cast<std::size_t>(first + count); ++d) {
      const EnsembleMember& member = member_of(d);
      taken.push_back(rows[static_cast<std::size_t>(datasets_[d].member)]);
      for (const std::int64_t column : member.columns())
        is_category.push_back(flags[static_cast<std::size_t>(column)]);
      if (codes_) {
        std::vector<std::int32_t> of_rows;
        for (const std::int64_t r : taken.back())
          of_rows.push_back(train.classes[static_cast<std::size_t>(r)]);
        const std::vector<std::int32_t> place = member.class_places();
        for (const std::int32_t symbol : codes_->encode(datasets_[d].coding, of_rows))
          classes.push_back(place[static_cast<std::size_t>(symbol)]);
      } else {
        for (const std::int64_t r : taken.back())
          numbers.push_back(labels_.standardise(train.targets[static_cast<std::size_t>(r)]));
      }
    }
    const Shape labels{count, height};
    contexts_.push_back(
        network_->read({seen_cells(train, static_cast<std::size_t>(first), taken),
                        HostTensor::from(std::span<const float>(is_category), {count, columns_}),
                        codes_ ? HostTensor::from(std::span<const std::int32_t>(classes), labels)
                               : HostTensor::from(std::span<const float>(numbers), labels)}));
  }
  tell(config, "reading train rows", all, all);
}

std::vector<float> Ensemble::pass(RecordedContext<AnyBackend>& context, const HostTensor& x) const {
  const std::scoped_lock lock(network_->one_pass);
  // The network may know more classes than the table has.
  const Tensor<AnyBackend> scores = slice(context.predict(x), 2, 0, static_cast<std::int64_t>(width()));
  std::vector<float> p = cast(softmax(scores / temperature_, -1), DType::f32).template to_vector<float>();
  if (std::any_of(p.begin(), p.end(), [](float share) { return std::isnan(share); }))
    throw ValueError(
        fmt::format("[pfn.predict] {}: the network predicts NaN with these weights; they are damaged or "
                    "their training diverged: take others",
                    network_->path));
  return p;
}

void Ensemble::predict(const EncodedTable& rows, const PredictorConfig& config, const Take& take) const {
  if (rows.task != task() || rows.columns() != columns_ || rows.class_count() != classes_)
    throw ValueError(fmt::format(
        "[pfn.predict] rows of {} with {} features and {} classes: {} with {} and {} was fitted; encode "
        "them with the encoder of the train table",
        to_string(rows.task), rows.columns(), rows.class_count(), to_string(task()), columns_, classes_));
  std::int64_t together = 1;
  for (const SharedContext& context : contexts_) together = std::max(together, sets_of(context));
  const std::int64_t cells =
      network_->backend.device().kind == DeviceKind::cuda ? cells_on_gpu : cells_on_cpu;
  const std::int64_t step = config.query_rows > 0
                                ? config.query_rows
                                : std::max<std::int64_t>(1, cells / (together * (columns_ + 1)));
  for (std::int64_t begin = 0; begin < rows.rows; begin += step) {
    tell(config, "predicting rows", begin, rows.rows);
    const std::int64_t count = std::min(step, rows.rows - begin);
    std::vector<std::int64_t> taken(static_cast<std::size_t>(count));
    std::iota(taken.begin(), taken.end(), begin);
    std::size_t first = 0;
    for (const SharedContext& context : contexts_) {
      const auto sets = static_cast<std::size_t>(sets_of(context));
      const std::vector<float> p =
          pass(*context, seen_cells(rows, first, std::vector<std::span<const std::int64_t>>(sets, taken)));
      const std::size_t of_set = static_cast<std::size_t>(count) * width();
      for (std::size_t d = 0; d < sets; ++d) take(first + d, begin, std::span(p).subspan(d * of_set, of_set));
      first += sets;
    }
  }
  tell(config, "predicting rows", 1, 1);
}

std::vector<double> Ensemble::probabilities(const EncodedTable& rows, const PredictorConfig& config) const {
  if (!codes_) throw ValueError("[pfn.predict] a regressor was fitted: it has no probabilities of classes");
  const std::size_t of_coding = static_cast<std::size_t>(rows.rows) * width();
  std::vector<double> sums(static_cast<std::size_t>(codes_->codings()) * of_coding);
  predict(rows, config, [&](std::size_t d, std::int64_t first, std::span<const float> p) {
    const std::vector<double> given(p.begin(), p.end());
    const Dataset dataset = datasets_[d];
    const auto restored = members_[static_cast<std::size_t>(dataset.member)].restore(given);
    double* const to = sums.data() + static_cast<std::size_t>(dataset.coding) * of_coding +
                       static_cast<std::size_t>(first) * width();
    for (std::size_t i = 0; i < restored.size(); ++i) to[i] += restored[i];
  });
  if (codes_->codings() > 1) return codes_->decode(sums, rows.rows);
  for (std::size_t row = 0; row < sums.size(); row += width()) {
    const double sum = std::accumulate(sums.begin() + static_cast<std::ptrdiff_t>(row),
                                       sums.begin() + static_cast<std::ptrdiff_t>(row + width()), 0.0);
    for (std::size_t c = 0; c < width(); ++c) sums[row + c] /= sum;
  }
  return sums;
}

std::vector<std::pair<double, double>> Ensemble::label_units() const {
  const std::scoped_lock lock(network_->one_pass);
  std::vector<std::pair<double, double>> units;
  for (const SharedContext& context : contexts_) {
    const auto numbers = [](const Tensor<AnyBackend>& t) { return t.template to_vector<double>(); };
    const ColumnScale<AnyBackend>& labels = context->context().labels;
    const std::vector<double> magnitude = numbers(labels.magnitude), mean = numbers(labels.mean),
                              deviation = numbers(labels.deviation);
    for (std::size_t i = 0; i < mean.size(); ++i)
      units.emplace_back((labels_.mean + labels_.deviation * mean[i] * magnitude[i]) * labels_.magnitude,
                         labels_.deviation * deviation[i] * magnitude[i] * labels_.magnitude);
  }
  return units;
}

LabelDistributions Ensemble::distributions(const EncodedTable& rows, const PredictorConfig& config) const {
  if (codes_) throw ValueError("[pfn.predict] a classifier was fitted: its labels are not numbers");
  // Members who see labels in the same scale, as those do that read the same rows, are one part.
  const auto units = label_units();
  std::vector<LabelDistributions::Part> parts;
  std::vector<std::size_t> part_of;
  for (const auto& [centre, spread] : units) {
    std::size_t i = 0;
    while (i < parts.size() && (parts[i].centre != centre || parts[i].spread != spread)) ++i;
    if (i == parts.size())
      parts.push_back(
          {centre, spread, 0, std::vector<double>(static_cast<std::size_t>(rows.rows) * width())});
    parts[i].weight += 1;
    part_of.push_back(i);
  }
  predict(rows, config, [&](std::size_t d, std::int64_t first, std::span<const float> p) {
    double* const to = parts[part_of[d]].probabilities.data() + static_cast<std::size_t>(first) * width();
    for (std::size_t i = 0; i < p.size(); ++i) to[i] += static_cast<double>(p[i]);
  });
  for (LabelDistributions::Part& part : parts) {
    for (double& p : part.probabilities) p /= part.weight;
    part.weight /= static_cast<double>(datasets_.size());
  }
  return LabelDistributions(rows.rows, static_cast<std::int64_t>(width()), std::move(parts));
}

}  // namespace ferrite::pfn::detail
