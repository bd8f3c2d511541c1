// Network: a prior-fitted network (TabPFN, Hollmann et al., 2023). It reads the train rows of a table and
// predicts other rows of it in one pass, without training on the table. What it knows it has learned from
// synthetic tables (models/priors).
//
//   nn::Pfn<B> model(backend, pfn::Config{}, rng);
//   model.loss(x, is_category, labels, targets, classes).backward();
//   const auto logits = model.forward(x, is_category, labels);  // of the rows after the labelled ones
//
//   const auto context = model.forward_context(x_train, is_category, labels);
//   const auto more = model.predict(context, x_query);  // of any rows, now or later
//
// Every cell of a table is a token, and the label of a row is one more cell. Blocks of attention go along the
// rows and along the columns in turn. Along a column, rows see the train rows and the registers alone, so a
// row is predicted the same in any company. Columns have no order but that of the offsets in the config.
#pragma once

#include "ferrite/models/pfn/context.hpp"
#include "ferrite/models/pfn/label_bins.hpp"
#include "ferrite/ops/softmax_cross_entropy.hpp"

namespace ferrite::pfn {

/// Scores of the classes that a dataset does not have become -1e30: their probability is 0.
/// # Shapes: logits [N, R, classes], classes integer [N]: how many each dataset has -> the same
template <class B>
Tensor<B> without_absent_classes(const Tensor<B>& logits, const Tensor<B>& classes) {
  const Tensor<B> count = reshape(classes, {classes.size(0), 1, 1});
  return where(arange(logits.backend(), logits.size(2)) < count, logits, -1e30);
}

/// Shapes of all members: N datasets with C columns; R rows, of which the first T are train rows; Q query
/// rows. x is floating, category codes being numbers; a cell that is not finite is missing. is_category [N,
/// C] has 1 for columns of categories and 0 for others. Labels are integers in [0, classes) for
/// classification, floating for regression. A shape that does not fit is a ShapeError, a dtype a DTypeError.
template <class B>
class Network final : public nn::Module<B> {
 public:
  nn::Linear<B> cell;                             // 3 offsets -> dim
  std::optional<nn::Embedding<B>> label_classes;  // of classification: [classes, dim]
  std::optional<nn::Linear<B>> label_values;      // of regression: 1 -> dim
  Tensor<B> label_unknown;                        // [dim]: the label of query rows
  Tensor<B> register_cells, register_labels;      // [registers, dim]; undefined if there are none
  std::vector<Block<B>> blocks;
  nn::RmsNorm<B> norm;
  nn::Linear<B> head, output;  // dim -> hidden -> outputs

  /// Throws as Config::check does.
  Network(B& backend, const Config& config, Rng& rng)
      : cell(backend,
             nn::LinearConfig{3 * static_cast<std::int64_t>((config.check(), config.offsets.size())),
                              config.dim}
                 .with_dtype(config.dtype),
             rng),
        norm(backend, nn::NormConfig{config.dim}.with_eps(config.eps).with_dtype(config.dtype)),
        head(backend,
             nn::LinearConfig{config.dim, config.hidden}
                 .with_activation(Activation::gelu)
                 .with_dtype(config.dtype),
             rng),
        output(backend, nn::LinearConfig{config.hidden, config.outputs()}.with_dtype(config.dtype), rng),
        config_(config) {
    if (config.task == Task::classification) {
      label_classes.emplace(backend, nn::EmbeddingConfig{config.classes, config.dim}.with_dtype(config.dtype),
                            rng);
    } else {
      label_values.emplace(backend, nn::LinearConfig{1, config.dim}.with_dtype(config.dtype), rng);
      bins_.emplace(backend, config.bins);
    }
    const auto drawn = [&](const Shape& shape, const char* name) {
      return parameter(nn::Initializer::normal().create(backend, shape, rng, config.dtype), name);
    };
    label_unknown = drawn({config.dim}, "label_unknown");
    if (config.registers > 0) {
      register_cells = drawn({config.registers, config.dim}, "register_cells");
      register_labels = drawn({config.registers, config.dim}, "register_labels");
    }
    for (std::int64_t i = 0; i < config.layers; ++i) blocks.emplace_back(backend, config, rng);
  }
  const Config& config() const { return config_; }
  /// Of regression. Throws ValueError for a classifier.
  const LabelBins<B>& bins() const {
    if (!bins_) throw ValueError("[Pfn] a classifier: only regression has bins");
    return *bins_;
  }

  void visit(nn::Visitor<B>& v) override {
    v.child("cell", cell);
    if (label_classes) v.child("label_classes", *label_classes);
    if (label_values) v.child("label_values", *label_values);
    v.parameter("label_unknown", label_unknown);
    v.parameter("register_cells", register_cells);
    v.parameter("register_labels", register_labels);
    for (std::size_t i = 0; i < blocks.size(); ++i) v.child("blocks." + std::to_string(i), blocks[i]);
    v.child("norm", norm);
    v.child("head", head);
    v.child("output", output);
  }

  /// The scores of the classes or bins of the rows that have no label.
  /// # Shapes: x [N, R, C], labels [N, T], 0 < T < R -> f32 [N, R - T, outputs] (f64 for f64)
  Tensor<B> forward(const Tensor<B>& x, const Tensor<B>& is_category, const Tensor<B>& labels) {
    const std::int64_t train = train_rows(x, labels);
    return predict(forward_context(slice(x, 1, 0, train), is_category, labels),
                   slice(x, 1, train, x.size(1)));
  }
  /// The mean cross entropy of the rows that have no label.
  /// # Shapes: as forward; targets [N, R - T] like the labels; classes integer [N], the classes that each
  /// dataset has, or undefined for all of them -> []
  /// A target of -100, or NaN for regression, does not count; if none does, the loss is 0.
  Tensor<B> loss(const Tensor<B>& x, const Tensor<B>& is_category, const Tensor<B>& labels,
                 const Tensor<B>& targets, const Tensor<B>& classes = {}) {
    const std::int64_t train = train_rows(x, labels);
    ferrite::detail::check_shape("Pfn", "targets", targets.shape(), {x.size(0), x.size(1) - train});
    check_labels("targets", targets);
    const Context<B> context = forward_context(slice(x, 1, 0, train), is_category, labels);
    const Tensor<B> logits = predict(context, slice(x, 1, train, x.size(1)));
    if (bins_) {
      const Tensor<B> column = cast(unsqueeze(targets, 2), wide());
      const Tensor<B> z = where(isnan(column), column, context.labels.standardise(column));
      return mean_cross_entropy(logits, bins_->of(squeeze(z, {2})), bins_->count());
    }
    if (!classes.defined()) return mean_cross_entropy(logits, targets, CrossEntropyConfig{}.ignore_index);
    ferrite::detail::check_shape("Pfn", "classes", classes.shape(), {x.size(0)});
    return mean_cross_entropy(without_absent_classes(logits, classes), targets,
                              CrossEntropyConfig{}.ignore_index);
  }

  /// # Shapes: x [N, T, C], labels [N, T], T at least 1
  Context<B> forward_context(const Tensor<B>& x, const Tensor<B>& is_category, const Tensor<B>& labels) {
    check_table("x", x);
    ferrite::detail::check_shape("Pfn", "is_category", is_category.shape(), {x.size(0), x.size(2)});
    ferrite::detail::check_shape("Pfn", "labels", labels.shape(), {x.size(0), x.size(1)});
    check_labels("labels", labels);
    Context<B> context{ColumnScale<B>::of(cast(x, wide())), cast(is_category, wide()), {}, {}};
    Tensor<B> label;
    if (bins_) {
      const Tensor<B> column = cast(unsqueeze(labels, 2), wide());
      context.labels = ColumnScale<B>::of(column);
      label = label_values->forward(cast(compressed(context.labels.standardise(column)), config_.dtype));
    } else {
      label = label_classes->forward(labels);
    }
    Tensor<B> rows = with_registers(rows_of(context, x, label));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const bool is_last = i + 1 == blocks.size();
      rows = is_last ? label_cells(blocks[i], rows) : blocks[i].among_cells(rows);
      const Tensor<B> normed = blocks[i].normed(rows);
      context.layers.push_back(blocks[i].shown(rows, normed));
      if (!is_last) rows = blocks[i].among_rows(rows, normed, context.layers.back());
    }
    return context;
  }
  /// The scores of any number of rows, each of which is predicted by itself: forward is forward_context and
  /// then predict.
  /// # Shapes: x [N, Q, C] -> f32 [N, Q, outputs] (f64 for f64)
  /// Throws ShapeError and ValueError if the context is of other columns or of another network.
  Tensor<B> predict(const Context<B>& context, const Tensor<B>& x) {
    check_table("x", x);
    check_context(context, x);
    const Shape one_label{1, 1, config_.dim}, labels{x.size(0), x.size(1), config_.dim};
    Tensor<B> rows = rows_of(context, x, expand(reshape(label_unknown, one_label), labels));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      rows = i + 1 == blocks.size() ? label_cells(blocks[i], rows) : blocks[i].among_cells(rows);
      rows = blocks[i].among_rows(rows, blocks[i].normed(rows), context.layers[i]);
    }
    return cast(output.forward(head.forward(norm.forward(squeeze(rows, {2})))), wide());
  }

 private:
  static Tensor<B> mean_cross_entropy(const Tensor<B>& logits, const Tensor<B>& targets,
                                      std::int64_t ignored) {
    const auto sums = CrossEntropyConfig{}.with_ignore_index(ignored).with_reduction(Reduction::sum);
    const Tensor<B> count = cast(sum(targets != ignored), logits.dtype());
    return softmax_cross_entropy(logits, targets, sums) / maximum(count, 1);
  }
  /// Of statistics and scores.
  DType wide() const { return wide_dtype(config_.dtype); }
  /// The first branch of the last block, behind which only labels are read. Training does it for all cells,
  /// in fewer ops.
  static Tensor<B> label_cells(Block<B>& last, const Tensor<B>& rows) {
    if constexpr (is_autodiff<B>)
      return slice(last.among_cells(rows), 2, rows.size(2) - 1, rows.size(2));
    else
      return last.last_among_cells(rows);
  }
  /// The tokens. # Shapes: x [N, R, C], label [N, R, dim] -> [N, R, C + 1, dim]
  Tensor<B> rows_of(const Context<B>& context, const Tensor<B>& x, const Tensor<B>& label) {
    const Tensor<B> features =
        cell_features(context.columns, cast(x, wide()), context.is_category, config_.offsets);
    const Tensor<B> cells = cell.forward(cast(features, config_.dtype));
    // In mixed precision products give 16 bits, and parameters have 32.
    return cat(std::vector{cells, cast(unsqueeze(label, 2), cells.dtype())}, 2);
  }
  /// # Shapes: rows [N, T, C + 1, dim] -> [N, registers + T, C + 1, dim]
  Tensor<B> with_registers(const Tensor<B>& rows) {
    if (!register_cells.defined()) return rows;
    const std::int64_t cells = rows.size(2) - 1;
    const auto row = [&](const Tensor<B>& vectors, std::int64_t count) {
      const Shape one{1, config_.registers, 1, config_.dim};
      return expand(reshape(cast(vectors, rows.dtype()), one),
                    {rows.size(0), config_.registers, count, config_.dim});
    };
    return cat(std::vector{cat(std::vector{row(register_cells, cells), row(register_labels, 1)}, 2), rows},
               1);
  }

  static void check_table(const char* what, const Tensor<B>& x) {
    ferrite::detail::check_rank("Pfn", what, x.shape(), 3);
    ferrite::detail::check_floating("Pfn", what, x.dtype());
    if (x.size(1) < 1 || x.size(2) < 1)
      throw ShapeError(std::string("[Pfn] ") + what + " " + to_string(x.shape()) +
                       ": needs at least one row and one column");
  }
  void check_labels(const char* what, const Tensor<B>& labels) const {
    const bool fits = bins_ ? is_floating(labels.dtype()) : is_integer(labels.dtype());
    if (!fits)
      throw DTypeError(std::string("[Pfn] ") + what + " are " + std::string(to_string(labels.dtype())) +
                       (bins_ ? ": regression needs floating ones" : ": classification needs integers"));
  }
  static std::int64_t train_rows(const Tensor<B>& x, const Tensor<B>& labels) {
    check_table("x", x);
    ferrite::detail::check_rank("Pfn", "labels", labels.shape(), 2);
    if (labels.size(1) < 1 || labels.size(1) >= x.size(1))
      throw ShapeError("[Pfn] x " + to_string(x.shape()) + " and labels " + to_string(labels.shape()) +
                       ": at least one row needs a label, and at least one must have none");
    return labels.size(1);
  }
  void check_context(const Context<B>& context, const Tensor<B>& x) const {
    const auto& [magnitude, mean, deviation] = context.columns;
    for (const Tensor<B>* scale : {&magnitude, &mean, &deviation})
      ferrite::detail::check_shape("Pfn", "columns of the context", scale->shape(),
                                   {x.size(0), 1, x.size(2)});
    ferrite::detail::check_shape("Pfn", "is_category of the context", context.is_category.shape(),
                                 {x.size(0), x.size(2)});
    if (context.layers.size() != blocks.size())
      throw ValueError("[Pfn] a context of " + std::to_string(context.layers.size()) +
                       " layers: the network has " + std::to_string(blocks.size()));
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const KeyValues<B>& layer = context.layers[i];
      ferrite::detail::check_rank("Pfn", "keys of the context", layer.key.shape(), 4);
      const Shape needed{x.size(0), context.layers[0].key.size(1), i + 1 == blocks.size() ? 1 : x.size(2) + 1,
                         config_.dim};
      ferrite::detail::check_shape("Pfn", "keys of the context", layer.key.shape(), needed);
      ferrite::detail::check_shape("Pfn", "values of the context", layer.value.shape(), needed);
    }
  }

  Config config_;
  std::optional<LabelBins<B>> bins_;
};

}  // namespace ferrite::pfn

namespace ferrite::nn {
template <class B>
using Pfn = pfn::Network<B>;
}  // namespace ferrite::nn
