// Tape: a stand-in for a GPU that records, a backend that notes the kernels of the CPU and runs them again.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "ferrite/backend/record.hpp"
#include "ferrite/decorators/decorator.hpp"

namespace ferrite::testing {

struct TapeConfig {};
struct TapeState {
  explicit TapeState(const TapeConfig&) {}
  bool recording = false;
  int replays = 0, recorded_beside = 0;
  std::vector<std::function<void()>> kernels;
  std::vector<Array> held;
};

template <class B>
class Tape : public Decorator<Tape<B>, B, TapeConfig, TapeState> {
  using Base = Decorator<Tape, B, TapeConfig, TapeState>;

 public:
  using Base::Base;
  using Base::state;
  std::string describe() const { return "tape over " + Base::inner().describe(); }

  template <class Op>
  void call(const Op& op, Ins in, Outs out, Accumulate mask) {
    std::vector<Array> inputs, outputs(out.begin(), out.end());
    for (std::size_t i = 0; i < in.size(); ++i) inputs.push_back(in[i]);
    if (!state().recording) {
      // As the notes hold theirs: gradients are added in place only where nobody else holds them.
      state().held.insert(state().held.end(), outputs.begin(), outputs.end());
      return Base::call(op, in, out, mask);
    }
    state().kernels.push_back([tape = *this, op, inputs, outputs, mask]() mutable {
      std::vector<const Array*> operands;
      for (const Array& array : inputs) operands.push_back(&array);
      tape.Base::call(op, Ins(operands.data(), operands.size()), Outs(outputs), mask);
    });
  }
  void copy_to_host(const Array& array, void* target) {
    if (state().recording) throw BackendError("[item] a copy to the host: would not be made again");
    Base::copy_to_host(array, target);
  }

  bool can_record() const { return true; }
  std::unique_ptr<RecordedStep> record(const std::function<void()>& step, const RecordedStep* beside) {
    if (beside) ++state().recorded_beside;
    struct Notes final : RecordedStep {
      Tape tape;
      std::vector<std::function<void()>> kernels;
      explicit Notes(const Tape& t) : tape(t), kernels(std::exchange(tape.state().kernels, {})) {}
      void replay() override {
        ++tape.state().replays;
        for (auto& kernel : kernels) kernel();
      }
    };
    state().recording = true;
    try {
      step();
    } catch (...) {
      state().recording = false;
      state().kernels.clear();
      throw;
    }
    state().recording = false;
    return std::make_unique<Notes>(*this);
  }
};

}  // namespace ferrite::testing
