// ProgressLog: how a training run goes, line by line.
#pragma once

#include <fmt/format.h>

#include <cstdio>

#include "ferrite/train/observer.hpp"

namespace ferrite::cli {

/// Lines instead of a bar, where the output is not a terminal but a file that somebody reads later.
class ProgressLog final : public train::Observer {
 public:
  ProgressLog(std::FILE* stream, std::int64_t tokens_per_sample)
      : stream_(stream), tokens_per_sample_(tokens_per_sample) {}
  void on_progress(const train::Progress& progress) override {
    print(to_string(progress, tokens_per_sample_));
  }
  void on_evaluation(std::int64_t step, const train::Evaluation& evaluation) override {
    std::string text = fmt::format("step {}", step);
    for (const auto& [name, value] : evaluation.values)
      text += fmt::format("  {} {:.4f}", name == "loss" ? "validation loss" : name, value);
    print(text);
  }
  void on_notice(const std::string& text) override { print("notice: " + text); }

 private:
  /// A full disk does not end a training: what cannot be written is lost.
  void print(const std::string& text) {
    std::fputs((text + "\n").c_str(), stream_);
    std::fflush(stream_);
  }

  std::FILE* stream_;
  std::int64_t tokens_per_sample_;
};

}  // namespace ferrite::cli
