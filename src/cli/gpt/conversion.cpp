#include "cli/gpt/conversion.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/gpt/text_files.hpp"
#include "cli/show_json.hpp"

namespace ferrite::cli::gpt {

BytesWritten progress_on(ProgressLine& bar) {
  return [&bar](std::int64_t done, std::int64_t total) {
    const double share = static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(total, 1));
    bar("weights", share,
        fmt::format("{:3.0f}%  {}/s", 100 * share, size_text(static_cast<double>(done) / bar.seconds())));
  };
}

void print_conversion(const ferrite::gpt::Converted& result, double seconds, bool json) {
  const auto& model = result.model;
  const auto bytes = std::filesystem::file_size(result.file);
  if (json) {
    const nlohmann::ordered_json object{{"out", result.file.string()},
                                        {"parameters", model.parameter_count()},
                                        {"vocab", model.vocab},
                                        {"context", model.context},
                                        {"layers", model.layers},
                                        {"heads", model.heads},
                                        {"dim", model.dim},
                                        {"dtype", to_string(model.dtype)},
                                        {"bytes", bytes},
                                        {"seconds", seconds},
                                        {"notes", result.notes}};
    show_json(object);
    return;
  }
  fmt::print("{} parameters ({} layers, {} heads, dim {}, context {}, {} tokens), {}, {}, {:.1f} s: {}\n",
             model.parameter_count(), model.layers, model.heads, model.dim, model.context, model.vocab,
             to_string(model.dtype), size_text(static_cast<double>(bytes)), seconds, result.file.string());
  for (const std::string& note : result.notes) fmt::print("note: {}\n", note);
}

}  // namespace ferrite::cli::gpt
