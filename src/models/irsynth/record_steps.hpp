// The steps of making a record that validation repeats.
#pragma once

#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {

/// The text for the config's device and style.
std::string forward_text(const Config& config, const kernel::Module& module);
/// That of the gradient; `back` is the adjoint. Warp writes forward and backward in one, and so does its
/// style.
std::string backward_text(const Config& config, const kernel::Module& module, const kernel::Module& back);
/// Runs `inputs` in both precisions into `outputs`. False if the program is too sensitive to be compared
/// across machines.
bool run_in_interpreter(Record& record);
/// Runs the block program on `inputs` and compares with `outputs`; a difference is the record's failure.
FERRITE_API void run_on_cpu(Record& record);
/// `back` is the adjoint; a wrong gradient is the record's failure.
void check_gradient(Record& record, const kernel::Module& back, std::uint64_t seed);

}  // namespace ferrite::irsynth
