// Any op with any attributes and any inputs: its shape rule throws one of our errors, or the op runs, on
// Reference and on Cpu. Replay files come from anywhere, so nothing else stands between them and the kernels.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ferrite/ferrite.hpp"

namespace {

using namespace ferrite;

/// Zeros when they are used up.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  std::size_t below(std::size_t limit) {
    const std::size_t byte = at_ < size_ ? data_[at_] : 0;
    ++at_;
    return byte % limit;
  }
  template <class T, std::size_t n>
  T one_of(const T (&choices)[n]) {
    return choices[below(n)];
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

/// Mostly small, and what wraps around or does not fit.
std::int64_t integer(Bytes& bytes) {
  constexpr std::int64_t choices[] = {0,
                                      1,
                                      2,
                                      3,
                                      4,
                                      5,
                                      8,
                                      -1,
                                      -2,
                                      -3,
                                      1,
                                      1,
                                      0,
                                      2,
                                      7,
                                      -4,
                                      16,
                                      -100,
                                      INT32_MIN,
                                      INT32_MAX,
                                      (std::int64_t{1} << 32) + 1,
                                      std::int64_t{1} << 62,
                                      INT64_MAX,
                                      INT64_MIN};
  return bytes.one_of(choices);
}
double real(Bytes& bytes) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double choices[] = {0, 1, 0.5, 2, -1, 1e-5, 3, 0.9, 255, 1e30, -1e30, infinity, -infinity, NAN};
  return bytes.one_of(choices);
}
Shape shape(Bytes& bytes) {
  constexpr std::int64_t extents[] = {2, 3, 1, 4, 0, 2, 5, 1, 3, 2, 17};
  Shape result;
  for (std::size_t rank = bytes.below(6); rank > 0; --rank) result.push_back(bytes.one_of(extents));
  return result;
}

struct Attributes {
  Bytes& bytes;
  template <class T>
  void operator()(std::string_view, T& value) {
    if constexpr (std::is_same_v<T, DType>)
      value = bytes.one_of(all_dtypes);
    else if constexpr (std::is_same_v<T, std::optional<DType>>)
      value = bytes.below(2) == 1 ? std::optional(bytes.one_of(all_dtypes)) : std::nullopt;
    else if constexpr (std::is_enum_v<T>)
      value = static_cast<T>(bytes.below(static_cast<std::size_t>(count_of(T{}))));
    else if constexpr (std::is_same_v<T, bool>)
      value = bytes.below(2) == 1;
    else if constexpr (std::is_same_v<T, double>)
      value = real(bytes);
    else if constexpr (std::is_same_v<T, Scalar>)
      value = bytes.below(2) ? Scalar(real(bytes)) : Scalar(integer(bytes));
    else if constexpr (std::is_integral_v<T>)
      value = static_cast<T>(integer(bytes));
    else if (bytes.below(3) > 0)
      value = shape(bytes);
    else
      for (std::size_t rank = value.rank() > 0 ? static_cast<std::size_t>(value.rank()) : bytes.below(4),
                       i = 0;
           i < rank; ++i) {
        if (static_cast<int>(i) == value.rank()) value.push_back(0);
        value[static_cast<int>(i)] = integer(bytes);
      }
  }
};

/// Often the shape or dtype of an earlier input, so that some calls are valid.
std::vector<Meta> inputs(Bytes& bytes) {
  std::vector<Meta> metas;
  for (std::size_t count = bytes.below(8); count > 0; --count) {
    Meta meta{shape(bytes), bytes.one_of(all_dtypes)};
    if (!metas.empty()) {
      const Meta& earlier = metas[bytes.below(metas.size())];
      const std::size_t how = bytes.below(8);
      if (how < 3) meta.shape = earlier.shape;
      if (how == 3 && earlier.shape.rank() > 0) meta.shape = {earlier.shape.back()};
      if (how == 4 && earlier.shape.rank() > 0) {
        meta.shape = earlier.shape;
        meta.shape.erase(earlier.shape.rank() - 1);
      }
      if (bytes.below(3) > 0) meta.dtype = earlier.dtype;
    }
    metas.push_back(meta);
  }
  return metas;
}

template <class B, class Op>
void run(B& b, const Op& op, const std::vector<Meta>& metas, Bytes bytes) {
  std::vector<Array> arrays;
  std::vector<const Array*> refs;
  for (const Meta& meta : metas) {
    std::vector<double> values(static_cast<std::size_t>(meta.shape.numel()));
    for (double& value : values)
      value = static_cast<double>(bytes.below(12)) - 4;  // as an index, out of range too
    arrays.push_back(cast(from_vector(b, values, meta.shape), meta.dtype).primitive());
  }
  for (const Array& array : arrays) refs.push_back(&array);
  try {
    const auto results = evaluate(b, op, Ins(refs.data(), refs.size()));
    const Metas promised = op.infer(metas);
    for (std::size_t i = 0; i < promised.size(); ++i)
      if (!(results[i].meta() == promised[i])) __builtin_trap();
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  std::size_t chosen = bytes.below(op::Core::size);
  op::Core::for_each([&]<class Op>() {
    if (chosen-- != 0) return;
    Op op;
    Attributes attributes{bytes};
    if constexpr (std::same_as<Op, op::Launch>)
      op.example(DType::f32);  // the text of a kernel: tests/fuzz/kernel_fuzz.cpp
    else
      Op::attributes(op, attributes);
    const std::vector<Meta> metas = inputs(bytes);
    try {
      // An empty result counts too: one_hot of no ids still makes as many numbers as there are classes.
      double elements = 0;
      for (const Meta& m : detail::infer_results(op, metas)) {
        elements += static_cast<double>(m.shape.numel());
        for (const std::int64_t extent : m.shape) elements += static_cast<double>(extent);
      }
      if (elements > 1 << 16) return;
    } catch (const Error&) {
      return;
    }
    Reference reference;
    run(reference, op, metas, bytes);
    Cpu cpu;
    run(cpu, op, metas, bytes);
  });
  return 0;
}
