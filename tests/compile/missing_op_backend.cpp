// A backend that forgot one primitive. It must not compile, and the first error must name the op.
#include "ferrite/backend/concept.hpp"

namespace ferrite {

struct Forgetful {
  using Primitive = Array;
  Array allocate(const Meta&);
  void copy_from_host(const Array&, const void*);
  void copy_to_host(const Array&, void*);
  void synchronize();
  Device device() const;
  MemoryStats memory_stats() const;
  std::string describe() const;
};
void run(Forgetful&, const op::Fill&, Ins, Outs);
void run(Forgetful&, const op::Iota&, Ins, Outs);
void run(Forgetful&, const op::Random&, Ins, Outs);
void run(Forgetful&, const op::Copy&, Ins, Outs);
void run(Forgetful&, const op::Unary&, Ins, Outs);
void run(Forgetful&, const op::Binary&, Ins, Outs);
void run(Forgetful&, const op::Where&, Ins, Outs);
void run(Forgetful&, const op::Reduce&, Ins, Outs);
void run(Forgetful&, const op::ArgReduce&, Ins, Outs);
#ifdef COMPLETE
void run(Forgetful&, const op::Scan&, Ins, Outs);
#endif
void run(Forgetful&, const op::Matmul&, Ins, Outs);
void run(Forgetful&, const op::Gather&, Ins, Outs);
void run(Forgetful&, const op::Scatter&, Ins, Outs);
void run(Forgetful&, const op::ScatterAdd&, Ins, Outs);

static_assert(check_backend<Forgetful>());

}  // namespace ferrite
