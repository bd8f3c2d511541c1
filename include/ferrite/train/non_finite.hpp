// Where a NaN or inf came from: a parameter, the data, or the first op that made one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ferrite/data/batch.hpp"
#include "ferrite/data/finite.hpp"
#include "ferrite/train/metric.hpp"

namespace ferrite::train {

/// The first result of a forward pass that held NaN and the first that held inf: a mask of -inf is not an
/// error by itself.
class FERRITE_API FirstNonFinite {
 public:
  void see(std::string_view op, const HostTensor& result);
  /// "the first op whose result holds NaN is [log], f32[8, 4]"
  std::string describe() const;

 private:
  std::string nan_, inf_;
};

/// "x of the batch holds nan in row 3", or nothing if all are finite.
FERRITE_API std::string non_finite_input(const data::HostBatch& batch);

/// Watches the ops of a differentiating backend.
template <class Inner>
class NonFiniteWatch final : public detail::OpWatch {
 public:
  explicit NonFiniteWatch(Inner& backend) : backend_(backend) {}
  void on_result(std::string_view op, const std::type_info& type, const void* backend,
                 const void* result) override {
    if (type != typeid(Inner) || !same_backend(*static_cast<const Inner*>(backend), backend_)) return;
    first.see(op, to_host(Tensor<Inner>(backend_, *static_cast<const typename Inner::Primitive*>(result))));
  }
  FirstNonFinite first;

 private:
  Inner& backend_;
};

/// Why the loss of a batch is not finite. Runs the step function on it once more.
template <class B>
std::string explain_non_finite(nn::Module<B>& model, const StepFunction<B>& apply,
                               const data::HostBatch& host, const data::Batch<B>& batch) {
  for (const auto& p : model.parameters()) {
    if (first_non_finite(to_host(p.tensor)) >= 0)
      return "parameter '" + p.name + "' is not finite since an earlier update";
  }
  if (const std::string input = non_finite_input(host); !input.empty()) return input;
  NonFiniteWatch<typename B::Inner> watch(batch.x.backend().inner());
  const NoGrad no_grad;
  try {
    apply(batch);
  } catch (const Error&) {  // keep what was seen until then
  }
  return watch.first.describe();
}

}  // namespace ferrite::train
