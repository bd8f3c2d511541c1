// Runs the functions that are made of several ops, which `ferrite replay` cannot name, for op_peer.py. It
// reads and writes the files of `ferrite replay` and is called as that is:
//
//     functions_peer replay CALL.safetensors --backend NAME --out RESULT.safetensors [--grad]
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "ferrite/autodiff/autodiff.hpp"
#include "ferrite/io/safetensors.hpp"
#include "ferrite/ops/einsum.hpp"
#include "ferrite/ops/solve.hpp"
#include "ferrite/ops/svd.hpp"
#include "ferrite/stacks/any_backend.hpp"
#include "ferrite/tensor/host.hpp"
#include "ferrite/tensor/tensor_data.hpp"

namespace {

using namespace ferrite;
using Backend = Autodiff<AnyBackend>;
using X = Tensor<Backend>;
using Json = nlohmann::json;
using Function = std::function<std::vector<X>(const std::vector<X>&, const Json&)>;

MatrixNorm norm_of(const std::string& name) {
  const std::pair<const char*, MatrixNorm> norms[] = {{"frobenius", MatrixNorm::frobenius},
                                                      {"nuclear", MatrixNorm::nuclear},
                                                      {"spectral", MatrixNorm::spectral},
                                                      {"one", MatrixNorm::one},
                                                      {"infinity", MatrixNorm::infinity}};
  for (const auto& [known, norm] : norms)
    if (name == known) return norm;
  throw ValueError("there is no norm '" + name + "'");
}

const std::map<std::string, Function> functions{
    {"einsum",
     [](const auto& in, const Json& a) -> std::vector<X> {
       return {einsum(a.at("subscripts").template get<std::string>(), in)};
     }},
    {"inverse", [](const auto& in, const Json&) -> std::vector<X> { return {inverse(in[0])}; }},
    {"det", [](const auto& in, const Json&) -> std::vector<X> { return {det(in[0])}; }},
    {"slogdet",  // the logarithm comes first: gradients are taken of the first output
     [](const auto& in, const Json&) -> std::vector<X> {
       const auto [sign, logarithm] = slogdet(in[0]);
       return {logarithm, sign};
     }},
    {"lstsq", [](const auto& in, const Json&) -> std::vector<X> { return {lstsq(in[0], in[1])}; }},
    {"pinv", [](const auto& in, const Json&) -> std::vector<X> { return {pinv(in[0])}; }},
    {"matrix_norm",
     [](const auto& in, const Json& a) -> std::vector<X> {
       return {matrix_norm(in[0], norm_of(a.at("which")))};
     }},
};

NamedTensors run(const SafeTensors& call, const std::string& backend, bool with_gradients) {
  Backend b(backend);
  std::vector<X> in;
  for (std::string name = "in0"; call.tensors.count(name); name = "in" + std::to_string(in.size()))
    in.push_back(parameter(from_host(b, call.tensors.at(name)), name));
  const std::vector<X> out =
      functions.at(call.metadata.at("op"))(in, Json::parse(call.metadata.at("attributes")));
  NamedTensors results;
  for (std::size_t i = 0; i < out.size(); ++i) results["out" + std::to_string(i)] = to_host(out[i]);
  if (with_gradients) {
    const auto gradients = sum(out[0] * from_host(b, call.tensors.at("grad0"))).backward();
    for (std::size_t i = 0; i < in.size(); ++i)
      results["grad_in" + std::to_string(i)] = to_host(gradients.of(in[i]));
  }
  return results;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 7) {
    std::fputs("usage: functions_peer replay CALL --backend NAME --out RESULT [--grad]\n", stderr);
    return 2;
  }
  write_safetensors(argv[6], {{}, run(read_safetensors(argv[2]), argv[4], argc > 7)});
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
