// Replayer: finds the backend and op of a request, and answers requests in a serving program.
#include "ferrite/stacks/replay.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "ferrite/io/safetensors.hpp"

namespace ferrite {

namespace detail {

namespace {

bool is_alike(const HostTensor& a, const HostTensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape();
}

ReplayComparison against_file(const Comparison& numbers, const HostTensor& value,
                              const HostTensor& expected) {
  return {numbers, is_alike(value, expected) ? "" : to_string(Meta{expected.shape(), expected.dtype()})};
}

/// How many elements of output 0 add up to one element of this gradient: indices may all be the same.
double gradient_terms(const HostTensor& gradient, MetaSpan in, MetaSpan out) {
  const auto size = [](const Shape& shape) { return static_cast<double>(shape.numel()); };
  double terms = size(out[0].shape) / std::max(size(gradient.shape()), 1.0);
  for (const Meta& meta : in)
    if (is_integer(meta.dtype)) terms = std::max(terms, size(meta.shape));
  return std::max(terms, 1.0);
}

}  // namespace

void compare_with_file(const ErasedOp& op, const ReplayFile& file, ReplayOutputs& result) {
  if (file.expected.empty()) return;
  if (file.expected.size() != result.outputs.size())
    throw ShapeError(fmt::format("[replay] the file has {} outputs: {} has {}", file.expected.size(),
                                 op.name(), result.outputs.size()));
  std::vector<HostTensor> expected = file.expected;
  for (std::size_t k = 0; k < expected.size(); ++k)
    if (!is_alike(result.outputs[k], expected[k])) expected[k] = result.outputs[k];  // not to be compared
  const std::vector<Comparison> numbers =
      compare_outputs({op, file.accumulate, file.inputs, file.before, result.outputs, std::move(expected)});
  for (std::size_t k = 0; k < numbers.size(); ++k)
    result.comparisons.push_back(against_file(numbers[k], result.outputs[k], file.expected[k]));
}

void compare_gradients_with_file(const ErasedOp& op, const ReplayFile& file, ReplayOutputs& result) {
  const Metas in = metas_of(file.inputs), out = metas_of(result.outputs);
  const double forward = op.info->tolerance(op.op, in, out);
  for (const auto& [name, expected] : file.gradients) {
    const auto found = result.gradients.find(name);
    if (found == result.gradients.end())
      throw ParseError(
          fmt::format("[replay] the file has {}: {} has no such gradient, so leave it out", name, op.name()));
    const HostTensor& value = found->second;
    const double tolerance = forward * std::sqrt(gradient_terms(value, in, out));
    const Comparison numbers = is_alike(value, expected) ? compare(value, expected, tolerance) : Comparison{};
    result.gradient_comparisons.emplace(name, against_file(numbers, value, expected));
  }
}

}  // namespace detail

namespace {

void write_results(const ReplayResult& result) {
  SafeTensors content{{{"op", result.op}, {"attributes", result.attributes}, {"backend", result.backend}},
                      result.gradients};
  for (std::size_t k = 0; k < result.outputs.size(); ++k)
    content.tensors[fmt::format("out{}", k)] = result.outputs[k];
  write_safetensors(result.out, content);
}

ReplayRequest parse_request(const std::string& line, const std::string& backend) {
  const auto json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object())
    throw ParseError(
        R"([replay] the request is no JSON object: write {"file": ..., "out": ...} on one line)");
  ReplayRequest request;
  request.backend = backend;
  for (const auto& [key, value] : json.items()) {
    const auto text = [&, &key = key, &value = value]() -> std::string {
      if (value.is_null()) return "";
      if (!value.is_string())
        throw ParseError(
            fmt::format("[replay] '{}' in the request is {}: must be a string", key, value.type_name()));
      return value.get<std::string>();
    };
    if (key == "file") {
      request.file = text();
    } else if (key == "out") {
      request.out = text();
    } else if (key == "op") {
      request.op = text();
    } else if (key == "attributes") {
      request.attributes = text();
    } else if (key == "backend") {
      request.backend = text();
    } else if (key == "grad") {
      if (!value.is_boolean()) throw ParseError("[replay] 'grad' in the request: must be true or false");
      request.grad = value.get<bool>();
    } else {
      throw ParseError(fmt::format(
          "[replay] '{}' in the request: the keys are file, backend, op, attributes, out and grad", key));
    }
  }
  if (request.file.empty()) throw ParseError("[replay] the request names no file: it needs the key 'file'");
  return request;
}

/// The answer of `get`, or of the error that it throws.
template <class Get>
ReplayAnswer answer_of(Get&& get) {
  try {
    return get();
  } catch (const BackendError& e) {  // Parity found a difference, or a kernel failed
    return {1, e.what()};
  } catch (const std::exception& e) {
    return {2, e.what()};
  }
}

}  // namespace

void detail::name_as_in_the_file(Error& error, const ErasedOp& op) {
  const std::string_view family = op.info->type_name, member = op.name();
  if (family != member && std::string_view(error.what()).starts_with(fmt::format("[{}]", member)))
    error.rename(fmt::format("{} {}", family, member));
}

Replayer::Calls& Replayer::new_backend(std::string name) {
  for (const auto& [known, calls] : backends_)
    if (known == name)
      throw ValueError(
          fmt::format("[replay] backend '{}' was added before: give this one another name", name));
  return backends_.emplace_back(std::move(name), Calls{}).second;
}

std::vector<std::string> Replayer::backends() const {
  std::vector<std::string> names;
  for (const auto& [name, calls] : backends_) names.push_back(name);
  return names;
}

std::pair<std::string, const Replayer::Calls*> Replayer::find(const std::string& asked,
                                                              const ReplayFile& file) const {
  if (backends_.empty()) throw ValueError("[replay] this program has no backends: add one to its Replayer");
  const std::string name = !asked.empty()          ? asked
                           : !file.backend.empty() ? file.backend
                                                   : backends_.front().first;
  const std::string stem = name.substr(0, name.find(':'));  // cuda:1 is a name of cuda
  for (const auto& [known, calls] : backends_)
    if (known == name || known == stem) return {name, &calls};
  throw ValueError(fmt::format(
      "[replay] backend '{}'{} is not one of this program: it has {}; name one of these, or add yours to a "
      "Replayer (ferrite/stacks/replay.hpp)",
      name, asked.empty() ? ", which the file names," : "", fmt::join(backends(), ", ")));
}

ReplayResult Replayer::run(const ReplayRequest& request) const {
  if (std::error_code ignored; std::filesystem::equivalent(request.file, request.out, ignored))
    throw ValueError(
        fmt::format("[replay] {}: the results would be written over the call: give 'out' a file of "
                    "its own",
                    request.out.string()));
  const ReplayFile file = ReplayFile::read(request.file, request.op, request.attributes);
  const auto [backend, calls] = find(request.backend, file);
  const auto call = calls->find(file.op);
  if (call == calls->end())
    throw ParseError(fmt::format(
        "[replay] there is no op '{}' in this program: `ferrite ops` lists the library's, and a Replayer "
        "(ferrite/stacks/replay.hpp) takes your own",
        file.op));
  ReplayResult result{call->second(backend, file, request.grad),
                      file.op,
                      file.attributes,
                      backend,
                      file.backend,
                      request.out};
  if (!result.out.empty()) write_results(result);
  return result;
}

ReplayAnswer Replayer::answer(const ReplayRequest& request) const {
  return answer_of([&]() -> ReplayAnswer {
    const ReplayResult result = run(request);
    return {result.agrees() ? 0 : 1, result.text()};
  });
}

void Replayer::serve(std::istream& requests, std::ostream& answers, const std::string& backend) const {
  for (std::string line; std::getline(requests, line);) {
    const ReplayAnswer reply = answer_of([&] { return answer(parse_request(line, backend)); });
    const nlohmann::ordered_json json{{"status", reply.status}, {"message", reply.message}};
    // A message may quote a file's bytes, which need not be UTF-8.
    answers << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }
}

}  // namespace ferrite
