// The text around lowered kernels and functions, for CUDA and for the CPU.
#include "ferrite/models/irsynth/emit_warp.hpp"

#include <fmt/format.h>

#include "ferrite/kernel/parse.hpp"
#include "kernel/parse/parser.hpp"
#include "models/irsynth/warp_form/lowering.hpp"

namespace ferrite::irsynth {

namespace {

using namespace kernel;

using warp::Lowered;

constexpr std::string_view separator = ",\n    ";

class WarpWriter {
 public:
  WarpWriter(ModuleChecker& names, const Source& source, const WarpOptions& options)
      : names_(names), source_(source), options_(options) {}

  void add_kernel(const std::string& name) {
    const Function& kernel = names_.module().kernel(name);
    const Lowered lowered = lower(name, kernel);
    const bool backward = options_.backward && kernel.enable_backward;
    if (backward && lowered.no_backward) throw *lowered.no_backward;
    add_functions(lowered, backward);
    if (options_.device == Device::cuda)
      cuda_kernel(lowered, backward);
    else
      cpu_kernel(lowered, backward);
  }

  std::string text() const { return functions_ + adjoints_ + kernels_; }

 private:
  Lowered lower(const std::string& name, const Function& function) {
    for (const syntax::Definition& d : names_.file().definitions) {
      if (d.name != name) continue;
      const ModuleChecker::InScope scope(names_, d);
      return warp::Lowering(names_, source_, d, function).run();
    }
    throw KernelError(&source_, function.place, "the source has no such definition");
  }

  /// Those that a function calls come before it.
  void add_functions(const Lowered& caller, bool backward) {
    for (const std::string& name : caller.calls) {
      bool& written = written_[{name, false}];
      bool& adjoint = written_[{name, true}];
      if (written && (adjoint || !backward)) continue;
      for (const Function& f : names_.module().functions) {
        if (f.name != name) continue;
        const Lowered lowered = lower(name, f);
        if (backward && lowered.no_backward) throw *lowered.no_backward;
        add_functions(lowered, backward);
        if (!written) functions_ += function_text(lowered, false);
        if (backward && !adjoint) adjoints_ += function_text(lowered, true);
      }
      written = true;
      adjoint |= backward;
    }
  }

  std::string type(const warp::ValueType& t) const { return warp::type_text(t, names_.module()); }

  std::string function_text(const Lowered& f, bool adjoint) const {
    std::vector<std::string> list;
    const auto reference = [&](const warp::Variable* v, const std::string& name) {
      list.push_back(fmt::format("{} & {}", type(v->type), name));
    };
    for (const auto* p : f.parameters) list.push_back(fmt::format("{} {}", type(p->type), p->name()));
    const bool several = f.results.size() > 1;
    for (std::size_t i = 0; several && i < f.results.size(); ++i)
      reference(f.results[i], fmt::format("ret_{}", i));
    const std::string result = f.results.size() == 1 ? type(f.results[0]->type) : "void";
    if (adjoint) {
      for (const auto* p : f.parameters) reference(p, p->adjoint());
      for (std::size_t i = 0; several && i < f.results.size(); ++i)
        reference(f.results[i], fmt::format("adj_ret_{}", i));
      if (f.results.size() == 1) reference(f.results[0], "adj_ret");
    }
    return fmt::format("\n// {}:{}\nstatic {}{} {}{}_0(\n    {})\n{{\n{}}}\n\n", source_.file,
                       f.definition->head.line, options_.device == Device::cuda ? "CUDA_CALLABLE " : "",
                       adjoint ? "void" : result, adjoint ? "adj_" : "", f.function->name,
                       fmt::join(list, separator),
                       adjoint ? backward_body(f, "    ", "return;") : forward_body(f, "    ", "return;"));
  }

  std::string variables(const Lowered& f, const std::string& indent) const {
    std::string text = indent + "//---------\n" + indent + "// primal vars\n";
    for (const auto* v : f.variables)
      text += v->constant
                  ? fmt::format("{}const {} {} = {};\n", indent, type(v->type), v->name(), v->constant->text)
                  : fmt::format("{}{} {};\n", indent, type(v->type), v->name());
    return text;
  }

  std::string forward_body(const Lowered& f, const std::string& indent, std::string_view on_return) const {
    std::string text = variables(f, indent) + indent + "//---------\n" + indent + "// forward\n";
    for (const std::string& line : f.body.forward) {
      const std::size_t first = line.find_first_not_of(" \t");
      const bool returns = first != std::string::npos && line.compare(first, 7, "return;") == 0;
      text += indent + (returns ? line.substr(0, first).append(on_return) : line) + "\n";
    }
    return text;
  }

  std::string backward_body(const Lowered& f, const std::string& indent, std::string_view on_return) const {
    const std::string rule = indent + "//---------\n" + indent;
    std::string text = variables(f, indent) + rule + "// dual vars\n";
    for (const auto* v : f.variables)
      text += fmt::format("{}{} {} = {{}};\n", indent, type(warp::stripped(v->type)), v->adjoint());
    text += rule + "// forward\n";
    for (const std::string& line : f.body.replay) text += indent + line + "\n";
    text += rule + "// reverse\n";
    for (auto line = f.body.reverse.rbegin(); line != f.body.reverse.rend(); ++line)
      text += indent + *line + "\n";
    return text + indent + std::string(on_return) + "\n";
  }

  void cuda_kernel(const Lowered& k, bool backward) {
    std::vector<std::string> list{
        fmt::format("wp::launch_bounds_t<{}> dim", std::max(1, tid_dims(*k.function)))};
    for (const auto* p : k.parameters) list.push_back(fmt::format("{} {}", type(p->type), p->name()));
    const std::string_view on_return = options_.grid_stride ? "continue;" : "return;";
    const std::string indent(8, ' ');
    kernels_ +=
        cuda_text(k.function->name + "_cuda_kernel_forward", list, forward_body(k, indent, on_return));
    if (!backward) return;
    for (const auto* p : k.parameters) list.push_back(fmt::format("{} {}", type(p->type), p->adjoint()));
    kernels_ +=
        cuda_text(k.function->name + "_cuda_kernel_backward", list, backward_body(k, indent, on_return));
  }

  std::string cuda_text(const std::string& name, const std::vector<std::string>& parameters,
                        const std::string& body) const {
    const std::string head = fmt::format(
        "\n\nextern \"C\" __global__ void {}(\n    {})\n{{\n    wp::tile_shared_storage_t tile_mem;\n\n",
        name, fmt::join(parameters, separator));
    if (options_.grid_stride)
      return head +
             "    for (size_t _idx = static_cast<size_t>(blockDim.x) * static_cast<size_t>(blockIdx.x) + "
             "static_cast<size_t>(threadIdx.x);\n         _idx < dim.size;\n         _idx += "
             "static_cast<size_t>(blockDim.x) * static_cast<size_t>(gridDim.x))\n    {\n"
             "            // reset shared memory allocator\n        wp::tile_shared_storage_t::init();\n\n" +
             body + "    }\n}\n\n";
    return head +
           "    const size_t _idx = static_cast<size_t>(blockIdx.z * gridDim.y + blockIdx.y) * "
           "static_cast<size_t>(gridDim.x * blockDim.x) + static_cast<size_t>(blockIdx.x * blockDim.x + "
           "threadIdx.x);\n    if (_idx >= dim.size) return;\n            // reset shared memory allocator\n"
           "    wp::tile_shared_storage_t::init();\n\n" +
           body + "}\n\n";
  }

  void cpu_kernel(const Lowered& k, bool backward) {
    const std::string& name = k.function->name;
    const int dims = std::max(1, tid_dims(*k.function));
    std::string fields, own, adjoint;
    for (const auto* p : k.parameters) {
      const std::string t = type(p->type);
      fields += fmt::format("    {} {};\n", t, p->label);
      own += fmt::format("    {} {} = _wp_args->{};\n", t, p->name(), p->label);
      adjoint += fmt::format("    {} {} = _wp_adj_args->{};\n", t, p->adjoint(), p->label);
    }
    kernels_ += fmt::format("struct wp_args_{} {{\n{}}};\n", name, fields);
    const auto write = [&](bool reverse, const std::string& arguments, const std::string& body) {
      kernels_ += fmt::format(
          "\n\ntemplate <bool wp_linear_contiguous>\nstatic void {0}_cpu_kernel_{1}(\n    "
          "wp::launch_bounds_t<{2}> dim,\n    size_t task_index,\n    wp_args_{0} *_wp_args{3})\n{{\n    "
          "static "
          "constexpr bool wp_linear_tid = wp_linear_contiguous;\n{4}\n    //---------\n    // argument "
          "vars\n{5}{6}}}\n\n",
          name, reverse ? "backward" : "forward", dims,
          reverse ? fmt::format(",\n    wp_args_{} *_wp_adj_args", name) : "", contiguous(k, dims, reverse),
          arguments, body);
    };
    write(false, own, forward_body(k, "    ", "return;"));
    if (backward) write(true, own + adjoint, backward_body(k, "    ", "return;"));
  }

  /// Warp's special case for kernels over one axis whose arrays lie without gaps.
  std::string contiguous(const Lowered& k, int dims, bool reverse) const {
    bool any = false, all = true, scalar_tid = false;
    for (const auto* p : k.parameters) {
      if (!p->type.is_array()) continue;
      any |= p->type.type.dims == 1;
      all &= p->type.type.dims == 1;
    }
    for_each_expr(k.function->body, [&](const Expr& e) {
      scalar_tid |= e.kind == ExprKind::apply && e.builtin == Builtin::tid && e.type.is_scalar();
    });
    if (dims != 1 || !scalar_tid || !any || !(k.rolled_constant_loop || all)) return "";
    const std::string args = "wp_args_" + k.function->name;
    std::string text = fmt::format("    {} wp_contiguous_args;\n", args);
    if (reverse) text += fmt::format("    {} wp_contiguous_adj_args;\n", args);
    text += "    if constexpr (wp_linear_contiguous)\n    {\n        wp_contiguous_args = *_wp_args;\n";
    if (reverse) text += "        wp_contiguous_adj_args = *_wp_adj_args;\n";
    for (const auto* p : k.parameters) {
      if (!p->type.is_array() || p->type.type.dims != 1) continue;
      const std::string element = type(warp::value_of(p->type.type.element()));
      text += fmt::format("        wp_contiguous_args.{}.strides[0] = sizeof({});\n", p->label, element);
      if (reverse)
        text +=
            fmt::format("        wp_contiguous_adj_args.{}.strides[0] = sizeof({});\n", p->label, element);
    }
    text += "        _wp_args = &wp_contiguous_args;\n";
    if (reverse) text += "        _wp_adj_args = &wp_contiguous_adj_args;\n";
    return text + "    }";
  }

  ModuleChecker& names_;
  const Source& source_;
  const WarpOptions options_;
  std::map<std::pair<std::string, bool>, bool> written_;  // functions, and their adjoints
  std::string functions_, adjoints_, kernels_;
};

/// Reads the text again, because the form depends on things that the tree does not keep: named constants,
/// chained comparisons.
std::string emit(const Module& module, const std::vector<std::string>& kernels, const WarpOptions& options) {
  const auto write = [&](const std::shared_ptr<const Source>& source) -> std::optional<std::string> {
    std::vector<KernelError> errors;
    ModuleChecker names(Parser(*source).file(errors), source);
    names.run(errors);
    if (!(names.module() == module)) return std::nullopt;
    WarpWriter writer(names, *source, options);
    for (const std::string& kernel : kernels) writer.add_kernel(kernel);
    return writer.text();
  };
  if (module.source != nullptr)
    if (auto text = write(module.source)) return std::move(*text);
  auto text = write(std::make_shared<const Source>(Source{"kernel.py", print(module)}));
  if (!text) throw ValueError("[emit_warp] a module that does not read back as it is printed");
  return std::move(*text);
}

}  // namespace

std::string emit_warp(const kernel::Module& module, const kernel::Function& kernel,
                      const WarpOptions& options) {
  return emit(module, {kernel.name}, options);
}

std::string emit_warp(const kernel::Module& module, const WarpOptions& options) {
  std::vector<std::string> names;
  for (const Function& k : module.kernels) names.push_back(k.name);
  return emit(module, names, options);
}

}  // namespace ferrite::irsynth
