// A replay file: one call of an op as a .safetensors file. Parity writes them, Python peers do too.
//
//   metadata  op, attributes (JSON); optional: accumulate (bit mask), inK.strides (JSON list, elements)
//   tensors   in0, in1, ...; optional: out0, ... (expected), before0, ... (of accumulating outputs),
//             grad0 (gradient of output 0)
#pragma once

#include <string>
#include <vector>

#include "ferrite/backend/comparison.hpp"
#include "ferrite/io/safetensors.hpp"

namespace ferrite::cli {

struct ReplayFile {
  std::string op;
  std::string attributes;
  Accumulate accumulate = Accumulate::none;
  std::vector<HostTensor> inputs;
  std::vector<Layout> layouts;       // of the inputs
  std::vector<HostTensor> expected;  // empty if the file has none
  std::vector<HostTensor> before;    // one per accumulating output, by position; shape [0] for the others
  std::optional<HostTensor> root_gradient;
};

/// Throws IoError or ParseError. `op` and `attributes`, where not empty, go before the file's own.
ReplayFile read_replay_file(const std::string& path, const std::string& op, const std::string& attributes);

}  // namespace ferrite::cli
