#include "cli/gpt/train_result.hpp"

#include <nlohmann/json.hpp>

#include "cli/show_json.hpp"
#include "ferrite/train/checkpoint.hpp"

namespace ferrite::cli::gpt {

void TrainResult::print(const train::TrainerBase& trainer, train::Outcome outcome, std::int64_t tokens,
                        const std::string& backend) const {
  const train::CheckpointFolder folder(options_.out);
  const auto newest = folder.latest();
  nlohmann::ordered_json json{{"out", newest ? newest->string() : options_.out},
                              {"step", trainer.step()},
                              {"steps", options_.steps},
                              {"interrupted", outcome == train::Outcome::interrupted}};
  if (std::filesystem::exists(folder.best())) json["best"] = folder.best().string();
  if (options_.from) json["from"] = *options_.from;
  if (resumed_) json["resumed_from"] = *resumed_;
  if (progress_) {
    json["loss"] = progress_->loss;
    json["tokens_per_second"] = progress_->samples_per_second * static_cast<double>(options_.length);
    json["memory_bytes"] = progress_->memory_bytes;
  }
  if (evaluation_)
    for (const auto& [name, value] : evaluation_->values) json["validation_" + name] = value;
  json.update({{"parameters", options_.model.parameter_count()},
               {"data_tokens", tokens},
               {"precision", options_.precision},
               {"backend", backend},
               {"seconds", std::chrono::duration<double>(Clock::now() - start_).count()},
               {"notices", trainer.notices()}});
  show_json(json);
}

}  // namespace ferrite::cli::gpt
