// What evaluate says when an op cannot run.
#include "ferrite/backend/evaluate.hpp"

#include <fmt/format.h>

namespace ferrite::detail {

void throw_backend_mismatch(std::string_view op) {
  throw DeviceError(fmt::format(
      "[{}] the operands belong to different backend objects: move them to one with to(backend, tensor)",
      op));
}

void throw_storage(std::string_view op, std::size_t input, DType dtype) {
  const std::string what = input == no_input ? "the result" : fmt::format("input {}", input);
  throw DTypeError(
      fmt::format("[{}] {} is {}, a dtype for storage: needs one for arithmetic, e.g. "
                  "cast(x, DType::i32)",
                  op, what, to_string(dtype)));
}

void throw_cannot_run(std::string_view op, const std::string& backend, MetaSpan in) {
  std::string operands;
  for (const Meta& m : in) operands += (operands.empty() ? "" : ", ") + to_string(m);
  throw BackendError(
      fmt::format("[{}] {} cannot run it on {} and the op has no composition", op, backend, operands));
}

void throw_broken_promise(std::string_view op, std::size_t output, const Meta& promised) {
  throw BackendError(
      fmt::format("[{}] its shape rule says that output {} is {}, but its composition gives another", op,
                  output, to_string(promised)));
}

void check_devices(std::string_view op, Device device, Ins in) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!in[i].defined()) throw ValueError(fmt::format("[{}] input {} is an undefined tensor", op, i));
    if (!(in[i].device() == device))
      throw DeviceError(fmt::format("[{}] input {} is on {} but the op runs on {}: copy it there first", op,
                                    i, to_string(in[i].device()), to_string(device)));
  }
}

}  // namespace ferrite::detail
