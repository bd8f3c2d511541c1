// Kernels with barriers: the threads of a block run side by side. Between barriers each thread runs alone,
// one after the other. Only statements that contain a barrier are taken step by step. A barrier that some
// thread does not reach is an error.
#include <fmt/format.h>

#include "kernel/interpret/machine.hpp"

#include <algorithm>

namespace ferrite::kernel {

void Interpreter::enter(Lane& lane) {
  std::swap(frame_, lane.frame);
  thread_ = lane.thread;
}
void Interpreter::leave(Lane& lane) { std::swap(frame_, lane.frame); }

void Interpreter::lockstep(const std::vector<Stmt>& body, const Lanes& lanes) {
  for (const Stmt& s : body) {
    Lanes running;
    for (Lane* lane : lanes)
      if (lane->flow == Flow::next) running.push_back(lane);
    if (!running.empty()) lockstep(s, running);
  }
}

void Interpreter::lockstep(const Stmt& s, const Lanes& lanes) {
  if (!has_barrier(s)) {
    for (Lane* lane : lanes) {
      enter(*lane);
      lane->flow = execute(s);
      leave(*lane);
    }
  } else if (s.kind == StmtKind::if_) {
    lockstep_if(s, lanes);
  } else if (s.kind == StmtKind::evaluate) {
    barrier(s, lanes);
  } else {
    lockstep_loop(s, lanes);
  }
}

void Interpreter::barrier(const Stmt& s, const Lanes& lanes) {
  thread_ = lanes[0]->thread;
  step(s.place);
  if (races_) races_->barrier();
  for (const Lane& lane : lanes_) {
    if (std::find(lanes.begin(), lanes.end(), &lane) != lanes.end()) continue;
    fail(fmt::format("thread {} of the block does not reach this barrier", &lane - lanes_.data()));
  }
}

void Interpreter::lockstep_if(const Stmt& s, const Lanes& lanes) {
  Lanes taken, other;
  for (Lane* lane : lanes) {
    enter(*lane);
    step(s.place);
    (truth(s.values[0]) ? taken : other).push_back(lane);
    leave(*lane);
  }
  if (!taken.empty()) lockstep(s.body, taken);
  if (!other.empty()) lockstep(s.orelse, other);
}

/// Every thread has its own range or condition; threads that are done wait for the others after the loop.
void Interpreter::lockstep_loop(const Stmt& s, const Lanes& lanes) {
  std::vector<Range> ranges;
  for (Lane* lane : lanes) {
    enter(*lane);
    ranges.push_back(s.kind == StmtKind::for_ ? range_of(s) : Range{});
    leave(*lane);
  }
  std::vector<bool> done(lanes.size(), false);
  for (;;) {
    Lanes running;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      if (done[i]) continue;
      Lane& lane = *lanes[i];
      enter(lane);
      step(s.place);
      Range& range = ranges[i];
      done[i] = s.kind == StmtKind::for_ ? range.count == 0 : !truth(s.values[0]);
      if (!done[i]) {
        running.push_back(&lane);
        if (s.kind == StmtKind::for_) {
          set_loop_variable(s, range.value);
          range.value = static_cast<std::int64_t>(static_cast<std::uint64_t>(range.value) +
                                                  static_cast<std::uint64_t>(range.step));
          --range.count;
        }
      }
      leave(lane);
    }
    if (running.empty()) return;
    lockstep(s.body, running);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      Flow& flow = lanes[i]->flow;
      done[i] = done[i] || flow == Flow::break_ || flow == Flow::return_;
      if (flow != Flow::return_) flow = Flow::next;
    }
  }
}

}  // namespace ferrite::kernel
