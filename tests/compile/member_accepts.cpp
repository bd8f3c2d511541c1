// A backend derived from Cpu with an op of its own. A member `accepts` would hide those of Cpu, so it must
// not compile; a friend adds to them.
#include "ferrite/backend/cpu.hpp"
#include "ferrite/tensor/tensor.hpp"

struct MyOp {
  static constexpr std::string_view type_name = "my_op";
  ferrite::Metas infer(ferrite::MetaSpan in) const { return {in[0]}; }
  static void attributes(auto&, auto&&) {}
};

struct MyBackend : ferrite::Cpu {
  friend void run(MyBackend&, const MyOp&, ferrite::Ins, ferrite::Outs) {}
#ifdef COMPLETE
  friend bool accepts(const MyBackend&, const MyOp&, ferrite::MetaSpan) { return true; }
#else
  bool accepts(const MyOp&, ferrite::MetaSpan) const { return true; }
#endif
};

int main() {
  MyBackend b;
  eval(MyOp{}, ferrite::zeros(b, {2}));
}
