// A kernel as a member would be passed over in silence, so it must not compile; a free function is found.
#include "ferrite/backend/cpu.hpp"
#include "ferrite/tensor/tensor.hpp"

struct MyOp {
  static constexpr std::string_view type_name = "my_op";
  ferrite::Metas infer(ferrite::MetaSpan in) const { return {in[0]}; }
  static void attributes(auto&, auto&&) {}
  template <class B>
  ferrite::Tensors<B> compose(B&, ferrite::TensorSpan<B> in) const {
    return {in[0]};
  }
};

struct MyBackend : ferrite::Cpu {
#ifdef COMPLETE
  friend void run(MyBackend&, const MyOp&, ferrite::Ins, ferrite::Outs) {}
#else
  void run(const MyOp&, ferrite::Ins, ferrite::Outs) {}
#endif
};

int main() {
  MyBackend b;
  eval(MyOp{}, ferrite::zeros(b, {2}));
}
