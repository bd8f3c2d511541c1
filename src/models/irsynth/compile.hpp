// Many records in one module.
#pragma once

#include <string>

#include "ferrite/core/thread_pool.hpp"
#include "ferrite/models/irsynth/record.hpp"

namespace ferrite::irsynth {

inline constexpr std::size_t records_per_module = 64;

enum class Code : std::uint8_t { ptx, cubin };
enum class Texts : std::uint8_t { forward, backward, both };

/// The code of up to records_per_module records: PTX, or machine code for GPUs of the config's architecture.
/// The kernel of record k is record<k>_entry; that of its gradient, if there is one, adjoint<k>_entry. A
/// record that NVRTC refuses gets a failure and is not in the module; the others are marked as compiled.
/// Records in Warp's style, which needs Warp's headers, are compiled in the standalone style.
FERRITE_API std::string compile_module(const Config& config, std::span<Record> records, Code code,
                                       Texts texts);

/// `task(records)` for the records of each module, on all threads of the pool.
template <class Task>
void for_each_module(std::span<Record> records, const Task& task) {
  parallel_ranges(
      static_cast<std::int64_t>(records.size()), static_cast<std::int64_t>(records_per_module),
      [&](std::int64_t begin, std::int64_t end) {
        task(records.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
      });
}

}  // namespace ferrite::irsynth
