// A training step of a prior-fitted network can be captured: from the second one on, nothing goes to the host
// or comes from it. It learns with Muon.
#include "ferrite/decorators/autocast.hpp"
#include "ferrite/models/pfn/network.hpp"
#include "ferrite/optim/muon.hpp"
#include "models/pfn/pfn_test.hpp"

namespace ferrite::pfn {
namespace {

struct Gate {
  bool closed = false;
};

/// A backend whose host can be shut out.
template <class B>
class Gated : public Decorator<Gated<B>, B, Gate> {
  using Base = Decorator<Gated, B, Gate>;

 public:
  using Base::Base;
  std::string describe() const { return "gated " + Base::inner().describe(); }
  void close(bool closed) { Base::state().closed = closed; }
  void copy_from_host(const Array& array, const void* source) {
    check();
    Base::copy_from_host(array, source);
  }
  void copy_to_host(const Array& array, void* target) {
    check();
    Base::copy_to_host(array, target);
  }

 private:
  void check() const {
    if (Base::state().closed) throw BackendError("a copy between host and device");
  }
};

TEST(PfnCapture, AStepNeedsNothingFromTheHost) {
  using B = Autodiff<Autocast<Gated<Cpu>>>;
  for (const Task task : testing::both_tasks) {
    B backend;
    Gated<Cpu>& gate = backend.inner().inner();
    Rng rng(1);
    Network<B> model(backend, testing::small_pfn(task), rng);
    const testing::Tables<B> tables(backend, task);
    optim::Muon<B> muon(model.parameters(), optim::MuonConfig{}.with_lr(0.02).with_clip_norm(1).with_matrices(
                                                optim::under("blocks")));
    muon.keep_schedule_on_device();
    Tensor<B> loss;
    double first = 0;
    for (int step = 0; step < 40; ++step) {
      gate.close(step > 0);
      loss = tables.loss(model);
      muon.step(loss.backward());
      if (step == 0) first = loss.item();
    }
    gate.close(false);
    EXPECT_LT(loss.item(), 0.5 * first) << to_string(task);
    EXPECT_TRUE(muon.notices().empty());
  }
}

}  // namespace
}  // namespace ferrite::pfn
