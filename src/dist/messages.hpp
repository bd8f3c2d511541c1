// What the errors of all groups say.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace ferrite::dist {

/// "rank 2", "ranks 0, 1 and 3"
std::string name_ranks(std::span<const int> ranks);

/// Empty if all ranks called the same. Otherwise what each of them called, ranks with the same call together:
/// "[dist] the ranks called different things: rank 0 all_reduce(sum) of f32[3]; ranks 1 and 2 barrier".
std::string find_mismatch(std::span<const std::string> calls);

/// "[dist] rank 2 did not arrive within 1.5 s at all_reduce(sum) of f32[3], which rank 0 called".
std::string not_arrived(std::span<const int> missing, const std::string& call, int rank,
                        std::chrono::milliseconds timeout);

/// "[dist] all_reduce(sum) of f32[3] did not end within 1.5 s on rank 0, though all ranks had called it".
std::string not_finished(const std::string& call, int rank, std::chrono::milliseconds timeout);

/// "[nccl] all_reduce(sum) of f32[3] did not end within 1.5 s on rank 0: ...", where nobody knows what the
/// other ranks have called.
std::string not_done_by_gpu(const std::string& call, int rank, std::chrono::milliseconds timeout);

/// "[dist] rank 2 is gone, the group there was destroyed: rank 0 called all_reduce(sum) of f32[3]".
std::string has_left(std::span<const int> gone, const std::string& call, int rank);

/// "[dist] rank 0 sends f32[3] to rank 1, which receives i64[2]: shape and dtype must be the same".
std::string pair_mismatch(int from, const std::string& sent, int to, const std::string& expected);

}  // namespace ferrite::dist
