#include "kernel/cpu/executor.hpp"

#include "core/isa_table.hpp"

namespace ferrite::kernel {

FERRITE_CHOOSE_TABLE(kernel, BlockExecutor)

const BlockExecutor& executor() { return chosen_table(); }

BlockProgram::BlockProgram(const Module& module, const Function& kernel)
    : code_(executor().compile(module, kernel)) {}

const std::string& BlockProgram::fallback() const { return executor().fallback(*code_); }

void BlockProgram::run(std::span<const std::int64_t> dim, void* const* arguments,
                       const BlockOptions& options) const {
  executor().run(*code_, dim, arguments, options);
}

}  // namespace ferrite::kernel
