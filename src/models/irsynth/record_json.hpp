// The parts of a record's JSON, for writing and reading.
#pragma once

#include <nlohmann/json.hpp>

#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {

using Json = nlohmann::ordered_json;

/// Where the inputs of a record come from; parameter p has the stream p further on.
RandomKey input_key(std::uint64_t seed, std::int64_t index);
Json verification_json(const Checks& checks);
Json metadata_json(const Record& record, const Config& config, std::uint64_t seed);
/// The fields that a record must have and does not, like "metadata.arguments[2].stream is missing".
std::vector<std::string> missing_fields(const Json& record, const Config& config);
/// The metadata fields that do not match the program and its number; the verification is not checked.
std::vector<std::string> wrong_fields(const Json& metadata, const Record& record, const Config& config,
                                      std::uint64_t seed);
/// SHA-256 of an array's numbers as they lie in memory, little endian.
std::string digest(const kernel::Value& value);

}  // namespace ferrite::irsynth
