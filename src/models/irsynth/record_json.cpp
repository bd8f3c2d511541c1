// Records as JSON: the seed format's three fields, with everything about the pair in `metadata`.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "ferrite/models/irsynth/record.hpp"
#include "models/irsynth/record_json.hpp"
#include "models/irsynth/sha256.hpp"

namespace ferrite::irsynth {

namespace {

using kernel::Value;

Json number(kernel::ScalarType s, kernel::Number n) {
  if (kernel::is_float(s)) return n.real;
  return s == kernel::ScalarType::bool_ ? Json(n.integer != 0) : Json(n.integer);
}

Json numbers(const kernel::Module& module, const Value& v) {
  Json all = Json::array();
  if (v.type.kind == kernel::Type::Kind::structure) {
    std::size_t at = 0;
    while (at < v.numbers.size())
      for (const kernel::Variable& f : module.structs[v.type.structure].fields)
        for (int i = 0; i < f.type.components(); ++i) all.push_back(number(f.type.scalar, v.numbers[at++]));
    return all;
  }
  for (const kernel::Number n : v.numbers) all.push_back(number(v.type.scalar, n));
  return all;
}

/// Builtins and what is not one, by how often they appear.
Json operations(const kernel::Module& module) {
  std::map<std::string_view, int> counts;
  const auto count = [&](const kernel::Function& f) {
    kernel::for_each_stmt(f.body, [&](const kernel::Stmt& s) {
      if (s.kind == kernel::StmtKind::update) ++counts[kernel::info(s.builtin).name];
      if (s.kind == kernel::StmtKind::if_) ++counts["if"];
      if (s.kind == kernel::StmtKind::for_) ++counts["for"];
      if (s.kind == kernel::StmtKind::while_) ++counts["while"];
    });
    kernel::for_each_expr(f.body, [&](const kernel::Expr& e) {
      if (e.kind == kernel::ExprKind::apply) ++counts[kernel::info(e.builtin).name];
      if (e.kind == kernel::ExprKind::call) ++counts["call"];
    });
  };
  for (const kernel::Function& f : module.functions) count(f);
  count(module.kernels[0]);
  Json json = Json::object();
  for (const auto& [name, n] : counts) json[std::string(name)] = n;
  return json;
}

Json arguments(const Record& r, const Config& config, std::uint64_t seed) {
  Json all = Json::array();
  const kernel::Function& k = r.program.kernel();
  const auto names = r.program.module.struct_names();
  for (std::size_t i = 0; i < r.program.arguments.size(); ++i) {
    const Argument& a = r.program.arguments[i];
    Json one{{"name", k.variables[i].name}, {"type", kernel::to_string(k.variables[i].type, names)}};
    if (k.variables[i].type.is_array()) one["shape"] = a.shape;
    one["low"] = a.low;
    one["high"] = a.high;
    one["stream"] = std::to_string(input_key(seed, r.index).stream + i);  // beyond what readers keep exactly
    one["output"] = a.output;
    if (config.values && !r.inputs.empty()) one["values"] = numbers(r.program.module, r.inputs[i]);
    all.push_back(std::move(one));
  }
  return all;
}

Json outputs(const Record& r, const Config& config) {
  Json all = Json::array();
  for (std::size_t i = 0; i < r.outputs.size(); ++i) {
    if (!r.program.arguments[i].output) continue;
    Json one{{"name", r.program.kernel().variables[i].name}, {"sha256", digest(r.outputs[i])}};
    if (config.values) one["values"] = numbers(r.program.module, r.outputs[i]);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace

Json verification_json(const Checks& c) {
  Json json = Json::object();
  json["round_trip"] = c.round_trip;
  json["interpreter"] = c.interpreted ? Json("native and f64") : Json(nullptr);
  if (c.interpreted) json["roundings"] = std::round(c.roundings * 100) / 100;
  const auto text = [](const std::string& s) { return s.empty() ? Json(nullptr) : Json(s); };
  json["cpu"] = text(c.cpu);
  json["nvrtc"] = text(c.compiled);
  json["gpu"] = text(c.gpu);
  json["adjoint"] = text(c.adjoint);
  return json;
}

std::string digest(const Value& v) {
  Sha256 hash;
  for (const kernel::Number n : v.numbers) {
    if (v.type.scalar == kernel::ScalarType::f32) {
      const auto x = static_cast<float>(n.real);
      hash.add(std::as_bytes(std::span(&x, 1)));
    } else if (kernel::is_float(v.type.scalar)) {
      hash.add(std::as_bytes(std::span(&n.real, 1)));
    } else {
      const auto x = static_cast<std::int32_t>(n.integer);
      hash.add(std::as_bytes(std::span(&x, 1)));
    }
  }
  return hash.hex();
}

Json metadata_json(const Record& r, const Config& config, std::uint64_t seed) {
  Json m;
  m["kernel_name"] = r.program.kernel().name;
  m["category"] = r.program.category;
  m["description"] = r.program.description;
  m["device"] = to_string(config.device);
  m["style"] = to_string(config.style);
  m["level"] = r.program.level;
  m["has_backward"] = !r.backward.empty();
  m["seed"] = std::to_string(seed);
  m["index"] = r.index;
  m["hash"] = r.structure;
  m["split"] = r.split();
  m["grid"] = r.program.grid;
  m["block_dim"] = r.program.block_dim;
  m["arguments"] = arguments(r, config, seed);
  if (!r.outputs.empty()) m["outputs"] = outputs(r, config);
  m["operations"] = operations(r.program.module);
  m["verification"] = verification_json(r.checks);
  return m;
}

namespace {

/// A text as JSON. Texts are the larger part of a record and plain ASCII: this takes a third of the time of a
/// general writer.
void put_text(std::string& out, std::string_view text) {
  out += '"';
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20) continue;
    out.append(text, from, i - from);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c == '\n')
      out += "\\n";
    else
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    from = i + 1;
  }
  out.append(text, from, text.size() - from);
  out += '"';
}

}  // namespace

std::string to_json(const Record& r, const Config& config, std::uint64_t seed, Layout layout) {
  const std::string device(to_string(config.device));
  const bool lines = layout == Layout::lines;
  std::string out = "{";
  const auto key = [&](std::string_view name) {
    if (out.size() > 1) out += ',';
    out += lines ? "\n  \"" : "\"";
    out += name;
    out += lines ? "\": " : "\":";
  };
  const auto field = [&](std::string_view name, std::string_view text) {
    key(name);
    put_text(out, text);
  };
  field("python_source", r.python);
  field(device + "_forward", r.forward);
  if (!r.backward.empty()) field(device + "_backward", r.backward);
  if (!r.ptx.empty()) field("ptx", r.ptx);
  key("metadata");
  const std::string rest = metadata_json(r, config, seed).dump(lines ? 2 : -1);
  for (const char c : rest) {
    out += c;
    if (lines && c == '\n') out += "  ";
  }
  return out + (lines ? "\n}\n" : "}\n");
}

}  // namespace ferrite::irsynth
