// Decoder: steps of generation that need nothing from the host. A step reads the last token of every text,
// runs the model, picks the next tokens and notes them, all on the device, so that steps are recorded once
// and replayed. generate.hpp uses it.
#pragma once

#include <cstring>
#include <deque>
#include <memory>

#include "ferrite/backend/late_copies.hpp"
#include "ferrite/nn/gpt.hpp"
#include "ferrite/nn/sampling.hpp"
#include "ferrite/ops/next_token.hpp"

namespace ferrite::nn {

/// Where a Decoder begins: see GeneratingTexts::start_of.
struct DecoderStart {
  std::vector<std::int32_t> ids;  // of the window that the model reads at first, [batch, length]
  std::int64_t length;
  std::vector<std::int32_t> text;  // [batch, columns]
  std::vector<double> uniforms;    // likewise
  std::vector<std::uint8_t> seen;  // [batch, vocab]
};

/// For one model and batch. The model must outlive it and keep its parameters meanwhile.
template <class B>
class Decoder {
 public:
  /// Steps of one recording: the host then has time for a few of them. Results that the host has not taken
  /// come in this many parts at most before it waits for the oldest.
  static constexpr std::int64_t steps_at_once = 4;
  static constexpr std::size_t most_pending = 2;

  /// For `batch` texts of up to `capacity` positions. Throws as Gpt::make_cache does.
  Decoder(Gpt<B>& model, std::int64_t batch, std::int64_t capacity, const GenerateConfig& config)
      : model_(model),
        backend_(model.tokens.weight.backend()),
        fixed_(detail::kernel_backend(*backend_)),
        cache_(model.make_cache(batch, capacity)),
        text_(zeros(*backend_, {batch, capacity + 1}, DType::i32)),
        uniforms_(zeros(*backend_, {batch, capacity + 1}, DType::f64)),
        seen_(zeros(*backend_, {batch, model.config().vocab}, DType::bool_)),
        read_(zeros(*backend_, {batch}, DType::i32)),
        ids_(zeros(*backend_, {batch}, DType::i32)),
        picks_{config.temperature, config.top_k, config.top_p, config.repetition_penalty, config.vocabulary},
        copies_(late_copies(detail::kernel_backend(*backend_))) {}

  /// Columns of the tables of a start: the capacity, and one for the token after it.
  std::int64_t columns() const { return text_.size(1); }

  /// Reads a window into an empty cache and picks the first tokens. Results that were not taken are dropped.
  void start(const DecoderStart& from) {
    const std::int64_t batch = read_.size(0);
    while (!pending_.empty()) drop();
    write(text_, from.text.data());
    write(uniforms_, from.uniforms.data());
    write(seen_, from.seen.data());
    const std::vector<std::int32_t> last(static_cast<std::size_t>(batch),
                                         static_cast<std::int32_t>(from.length - 1));
    write(read_, last.data());
    cache_.clear();
    pick(model_.next_scores(from_vector(*backend_, from.ids, {batch, from.length}), cache_));
    cache_.keep_read_on_device(read_);
    known_ = from.length + 1;
    note(1);
  }
  /// How many steps the capacity has room for.
  std::int64_t steps_left() const { return columns() - known_; }

  /// Runs one step, or several at once if they are recorded.
  void step(bool recorded) {
    const bool replays = recorded && warm_ && steps_left() >= steps_at_once;
    if (replays && !recorded_)
      recorded_ = record(*backend_, [&] {
        for (std::int64_t i = 0; i < steps_at_once; ++i) run();
      });
    if (replays)
      recorded_->replay();
    else
      run();
    warm_ = true;  // plans of products are chosen: a recording would have to take them untested
    known_ += replays ? steps_at_once : 1;
    note(replays ? steps_at_once : 1);
  }

  /// Results that were not taken: of a start, a step or a recording each.
  std::size_t pending() const { return pending_.size(); }
  /// The tokens of the oldest, [batch] for each step. Waits for the device if it has not come so far.
  std::vector<std::vector<std::int32_t>> take() {
    const auto batch = static_cast<std::size_t>(read_.size(0));
    const auto steps = static_cast<std::size_t>(pending_.front());
    const std::vector<std::byte> bytes = copies_->pop();
    pending_.pop_front();
    std::vector<std::vector<std::int32_t>> tokens(steps, std::vector<std::int32_t>(batch));
    for (std::size_t i = 0; i < steps; ++i)
      for (std::size_t n = 0; n < batch; ++n)
        std::memcpy(&tokens[i][n], bytes.data() + (n * steps + i) * sizeof(std::int32_t),
                    sizeof(std::int32_t));
    return tokens;
  }
  /// Waits for all steps; throws what went wrong on the device.
  void finish() { detail::kernel_backend(*backend_).synchronize(); }

 private:
  static const Array& array(const Tensor<B>& x) { return detail::kernel_array(x.primitive()); }
  void write(const Tensor<B>& to, const void* data) {
    detail::kernel_backend(*backend_).copy_from_host(array(to), data);
    array(to).buffer()->bump_version();
  }
  void run() { pick(model_.next_scores(reshape(ids_, {ids_.size(0), 1}), cache_)); }
  void pick(const Tensor<B>& scores) {
    const Array* in[] = {&array(scores), &array(text_), &array(read_), &array(uniforms_), &array(seen_)};
    Array out[] = {array(text_), array(read_), array(seen_), array(ids_)};
    evaluate_in_place(detail::kernel_backend(*backend_), picks_, Ins(in, 5), Outs(out, 4));
  }
  /// The last `steps` columns that are known.
  void note(std::int64_t steps) {
    copies_->push(array(slice(text_, 1, known_ - steps, known_)));
    pending_.push_back(steps);
  }
  void drop() {
    copies_->pop();
    pending_.pop_front();
  }

  using Kernels = std::remove_reference_t<decltype(detail::kernel_backend(std::declval<B&>()))>;

  Gpt<B>& model_;
  BackendRef<B> backend_;
  FixedParameters<Kernels> fixed_;
  KvCache<B> cache_;
  Tensor<B> text_, uniforms_, seen_, read_, ids_;  // as op::NextToken has them
  op::NextToken picks_;
  std::unique_ptr<LateCopies> copies_;
  std::unique_ptr<RecordedStep> recorded_;
  std::deque<std::int64_t> pending_;  // steps of each note
  std::int64_t known_ = 0;            // columns of the text that hold tokens
  bool warm_ = false;
};

}  // namespace ferrite::nn
