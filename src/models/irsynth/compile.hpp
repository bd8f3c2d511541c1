// Many records in one module.
#pragma once

#include <string>

#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {

inline constexpr std::size_t records_per_module = 64;

enum class Code : std::uint8_t { ptx, cubin };
enum class Texts : std::uint8_t { forward, backward, both };

/// The code of records_per_module records after another, on all threads of the pool: PTX, or machine code for
/// GPUs of the config's architecture. The kernel of record k of a module is record<k>_entry, that of its
/// gradient, where there is one, adjoint<k>_entry. What NVRTC refuses has a failure and is in no module; the
/// others are noted as compiled. Records in Warp's style, which needs Warp's headers, are compiled in the
/// standalone one.
FERRITE_API std::vector<std::string> compile_modules(const Config& config, std::span<Record> records,
                                                     Code code, Texts texts);

}  // namespace ferrite::irsynth
