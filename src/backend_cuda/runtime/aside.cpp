// Work aside: a lane with a stream and an arena of its own. Memory that the lane frees is used again by the
// lane alone. It may have been read by the compute stream since, so every run() waits for that stream first.
#include "ferrite/backend/aside.hpp"

#include <deque>

#include "backend_cuda/runtime/side_stream.hpp"
#include "ferrite/backend/cuda.hpp"

namespace ferrite {
namespace {

class LaneAside final : public Aside {
 public:
  explicit LaneAside(const Cuda& cuda)
      : cuda_(cuda),
        context_(cuda_.context()),
        stream_(context_, cuda::SideStream::Priority::after_compute),
        arena_(cuda::Pool::make_arena(context_.common_pool(),
                                      [this](cuda::Pool& parent, std::size_t bytes) {
                                        const cuda::LaneScope outside(nullptr);
                                        auto segment = parent.allocate(bytes);
                                        stream_.after_compute();  // whose work may still use the memory
                                        return segment;
                                      })),
        lane_{&context_, stream_.get(), arena_.get()} {
    context_.add_lane(stream_.get());
  }
  /// The arena's memory goes back to the common pool: later users come after the lane's last work.
  ~LaneAside() override {
    context_.remove_lane(stream_.get());
    try {
      stream_.before_compute();
    } catch (const std::exception&) {  // a lost GPU: nothing runs any more
    }
  }
  LaneAside(const LaneAside&) = delete;
  LaneAside& operator=(const LaneAside&) = delete;

  std::int64_t run(const std::function<void()>& work) override {
    context_.refuse_aside("aside");
    if (context_.is_capturing())
      throw BackendError("[aside] inside a capture: would not run again with replays; do it before or after");
    stream_.after_compute();
    try {
      const cuda::LaneScope inside(&lane_);
      work();
    } catch (...) {
      stream_.before_compute();  // nobody has a number to wait for
      throw;
    }
    const cuda::DeviceGuard guard(context_.index());
    Done& done = done_.emplace_back(++runs_, context_.events());
    cuda::check(cudaEventRecord(done.event.get(), stream_.get()), "aside");
    return done.run;
  }
  void wait(std::int64_t run) override {
    const cuda::DeviceGuard guard(context_.index());
    for (; !done_.empty() && done_.front().run <= run; done_.pop_front())
      cuda::check(cudaStreamWaitEvent(context_.compute_stream(), done_.front().event.get()), "aside");
  }

 private:
  struct Done {
    Done(std::int64_t number, cuda::EventPool& events) : run(number), event(events) {}
    std::int64_t run;
    cuda::PooledEvent event;
  };

  Cuda cuda_;  // holds the backend
  cuda::DeviceContext& context_;
  cuda::SideStream stream_;
  cuda::PoolHandle arena_;
  const cuda::Lane lane_;
  std::int64_t runs_ = 0;
  std::deque<Done> done_;  // runs that nobody has waited for
};

}  // namespace

std::unique_ptr<Aside> aside(Cuda& backend) { return std::make_unique<LaneAside>(backend); }

}  // namespace ferrite
