// Kernels and functions as a whole, and the text around them.
#include <fmt/format.h>

#include "kernel/emit/emitter.hpp"
#include "kernel/emit/half.hpp"
#include "kernel/emit/names.hpp"

namespace ferrite::kernel {

namespace {

bool returns_in_loop(const std::vector<Stmt>& body, bool in_loop = false) {
  for (const Stmt& s : body) {
    if (s.kind == StmtKind::return_ && in_loop) return true;
    const bool inner = in_loop || s.kind == StmtKind::for_ || s.kind == StmtKind::while_;
    if (returns_in_loop(s.body, inner) || returns_in_loop(s.orelse, inner)) return true;
  }
  return false;
}

bool has_shared_array(const Function& kernel) {
  bool found = false;
  for_each_stmt(kernel.body, [&](const Stmt& s) { found |= s.shared; });
  return found;
}

}  // namespace

Emitter::Emitter(const Module& module, Target target, const EmitOptions& options)
    : module_(module), target_(target), options_(options) {}

std::string Emitter::parameters() {
  const Function& f = *scope_.function;
  std::vector<std::string> list;
  for (std::size_t i = 0; i < static_cast<std::size_t>(f.parameters); ++i)
    list.push_back(fmt::format("{} {}", type_name(f.variables[i].type), scope_.names[i]));
  return fmt::format("{}", fmt::join(list, ", "));
}

void Emitter::add_function(int index) {
  const Function& f = module_.functions[static_cast<std::size_t>(index)];
  if (!defined_.insert(fmt::format("function {}", index)).second) return;
  const Scope caller = scope_;
  std::string* const out = out_;
  const int indent = indent_;
  const bool ordered = ordered_;
  std::string text;
  out_ = &text;
  indent_ = 0;
  begin(f);
  std::string result = f.results.empty() ? "void" : type_name(f.results[0]);
  if (f.results.size() > 1) {
    result = function_name(index) + "_results";
    std::string fields;
    for (std::size_t i = 0; i < f.results.size(); ++i)
      fields += fmt::format("  {} value{};\n", type_name(f.results[i]), i);
    line(fmt::format("struct {} {{\n{}}};\n", result, fields));
  }
  line(fmt::format("{} {} {}({}) {{", target_ == Target::cuda ? "__device__ inline" : "inline", result,
                   function_name(index), parameters()));
  block(f.body);
  line("}\n");
  functions_ += text;  // after those it calls
  scope_ = caller;
  out_ = out;
  indent_ = indent;
  ordered_ = ordered;
}

void Emitter::add_kernel(const Function& kernel) {
  begin(kernel);
  std::string text;
  out_ = &text;
  indent_ = 0;
  if (target_ == Target::cuda)
    cuda_kernel(kernel);
  else if (has_barrier(kernel.body) || has_shared_array(kernel))
    lockstep_kernel(kernel);
  else
    cpp_kernel(kernel);
  kernels_ += text;
}

namespace {

bool needs_function(const Function& kernel, bool changes_parameters) {
  return changes_parameters || returns_in_loop(kernel.body);
}

}  // namespace

void Emitter::cuda_kernel(const Function& kernel) {
  const bool changed = changes(kernel.body, 0, kernel.parameters);
  const bool tiles = has_barrier(kernel.body) || has_shared_array(kernel);
  const bool apart = needs_function(kernel, changed);
  const std::string given = parameters(), comma = given.empty() ? "" : ", ";
  if (apart && tiles)
    fail(kernel.place, "a kernel with blocks that changes a parameter or returns inside a loop");
  if (apart) {
    line(fmt::format("__device__ inline void {}_thread(const Launch& launch, unsigned int thread{}{}) {{",
                     kernel.name, comma, given));
    block(kernel.body);
    line("}\n");
  }
  line(fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}(Launch launch{}{}) {{",
                   options_.block_dim, entry_name(kernel), comma, given));
  ++indent_;
  if (tiles) {
    std::vector<const Stmt*> shared;
    for (const Stmt& s : kernel.body)
      if (s.shared) shared.push_back(&s);
    for (const Stmt* s : shared) {
      array_storage(*s, "__shared__ ");
      const auto variable = static_cast<std::size_t>(s->targets[0].index);
      line(fmt::format("const {} {} = {};", type_name(s->targets[0].type), scope_.names[variable],
                       array_view(*s)));
    }
    line("for (unsigned int block = blockIdx.x; block * blockDim.x < launch.size; block += gridDim.x) {");
    ++indent_;
    line("const unsigned int thread = block * blockDim.x + threadIdx.x;");
    for (const Stmt* s : shared) {
      std::int64_t count = 1;
      for (const Expr& extent : s->values) count *= extent.number.integer;
      const std::string data = array_view(*s).substr(1, array_view(*s).find(',') - 1);
      line(fmt::format("for (int k = threadIdx.x; k < {}; k += blockDim.x) {}[k] = {};", count, data,
                       zero(s->targets[0].type.element())));
    }
    if (!shared.empty()) line("__syncthreads();");
    line("if (thread < launch.size) {");
    scope_.on_return = "goto done;";
    block(kernel.body);
    line("}");
    bool returns = false;
    for_each_stmt(kernel.body, [&](const Stmt& s) { returns |= s.kind == StmtKind::return_; });
    if (returns) *out_ += "  done:\n";
    line("__syncthreads();");
  } else {
    line("for (unsigned int thread = blockIdx.x * blockDim.x + threadIdx.x; thread < launch.size;");
    line("     thread += gridDim.x * blockDim.x) {");
    scope_.on_return = "continue;";
    if (apart) {
      ++indent_;
      std::string arguments;
      for (std::size_t i = 0; i < static_cast<std::size_t>(kernel.parameters); ++i)
        arguments += ", " + scope_.names[i];
      line(fmt::format("{}_thread(launch, thread{});", kernel.name, arguments));
    } else {
      block(kernel.body);
      ++indent_;
    }
  }
  --indent_;
  line("}");
  --indent_;
  line("}\n");
}

namespace {

std::string packed(const std::string& name, const std::vector<std::string>& types) {
  std::string text = fmt::format(
      "extern \"C\" void {0}_packed(const Launch* launch, void* const* arguments) {{\n  {0}(launch", name);
  for (std::size_t i = 0; i < types.size(); ++i)
    text += fmt::format(", *static_cast<const {}*>(arguments[{}])", types[i], i);
  return text + ");\n" + (types.empty() ? "  (void)arguments;\n" : "") + "}\n";
}

}  // namespace

void Emitter::cpp_kernel(const Function& kernel) {
  const bool changed = changes(kernel.body, 0, kernel.parameters);
  const bool apart = needs_function(kernel, changed);
  const std::string given = parameters(), comma = given.empty() ? "" : ", ";
  if (apart) {
    line(fmt::format("static void {}_thread(const Launch* launch, int thread{}{}) {{", kernel.name, comma,
                     given));
    line("  (void)launch, (void)thread;");
    block(kernel.body);
    line("}\n");
  }
  line(fmt::format("extern \"C\" void {}(const Launch* launch{}{}) {{", entry_name(kernel), comma, given));
  ++indent_;
  line("for (int thread = 0; thread < launch->size; ++thread) {");
  scope_.on_return = "continue;";
  if (apart) {
    std::string arguments;
    for (std::size_t i = 0; i < static_cast<std::size_t>(kernel.parameters); ++i)
      arguments += ", " + scope_.names[i];
    line(fmt::format("  {}_thread(launch, thread{});", kernel.name, arguments));
  } else {
    block(kernel.body);
  }
  line("}");
  --indent_;
  line("}");
  close_cpp(kernel);
}

void Emitter::close_cpp(const Function& kernel) {
  std::vector<std::string> types;
  for (int i = 0; i < kernel.parameters; ++i)
    types.push_back(type_name(kernel.variables[static_cast<std::size_t>(i)].type));
  *out_ += packed(entry_name(kernel), types) + "\n";
}

namespace {

/// The functions of an array that return an element. Those called `at` also take indices from the end.
std::string element_functions(const std::set<std::size_t>& axes, bool wraps, const std::string& on) {
  std::string text;
  for (const std::size_t count : axes) {
    std::vector<std::string> parameters, places;
    for (std::size_t axis = 0; axis < count; ++axis) {
      const char i = "ijkl"[axis];
      parameters.push_back(fmt::format("long long {}", i));
      places.push_back(wraps ? fmt::format("({0} < 0 ? {0} + shape[{1}] : {0}) * strides[{1}]", i, axis)
                             : fmt::format("{} * strides[{}]", i, axis));
    }
    const bool long_line = wraps ? count > 1 : count > 2;
    text += fmt::format("  {}T& {}({}) const {{{}return data[{}];{}}}\n", on,
                        wraps        ? "at"
                        : count == 1 ? "operator[]"
                                     : "operator()",
                        fmt::join(parameters, ", "), long_line ? "\n    " : " ", fmt::join(places, " + "),
                        long_line ? "\n  " : " ");
  }
  return text;
}

}  // namespace

std::string Emitter::text() const {
  const bool cuda = target_ == Target::cuda;
  std::string text;
  if (cuda) {
    if (has_half_) text += "#include <cuda_fp16.h>\n";
    if (has_bfloat_) text += "#include <cuda_bf16.h>\n";
    if (has_half_ || has_bfloat_) text += "\n";
  } else {
    text +=
        "// c++ -std=c++17 -O2 -fwrapv\n#include <algorithm>\n#include <cmath>\n#include <cstring>\n#include "
        "<limits>\n#include <stdexcept>\n#include <vector>\n\n";
  }
  static constexpr std::pair<std::string_view, std::string_view> spelled[] = {
      {"int8", "signed char"},         {"uint8", "unsigned char"}, {"int16", "short"},
      {"uint16", "unsigned short"},    {"uint32", "unsigned int"}, {"int64", "long long"},
      {"uint64", "unsigned long long"}};
  for (const auto& [name, type] : spelled)
    if (aliases_.contains(std::string(name))) text += fmt::format("using {} = {};\n", name, type);
  if (cuda && has_bfloat_) text += "using bfloat16 = __nv_bfloat16;\n";
  if (!aliases_.empty() || (cuda && has_bfloat_)) text += "\n";
  if (!cuda && has_half_) text += half_of_cpp();
  if (!cuda && has_bfloat_) text += bfloat16_of_cpp();
  text += fmt::format(
      "// The grid of threads.\nstruct Launch {{\n  int shape[4];\n  {} size;\n  int block_dim;\n}};\n\n",
      cuda ? "unsigned int" : "int");
  if (has_arrays_) {
    const std::string on = cuda ? "__device__ " : "";
    text +=
        "template <class T>\nstruct array {\n  T* data;\n  int shape[4];\n  long long strides[4];  // in "
        "elements\n";
    text += element_functions(axes_, false, on) + element_functions(wrapped_, true, on);
    text += "};\n\n";
  }
  return text + definitions_ + functions_ + kernels_.substr(0, kernels_.size() - 1);
}

namespace {

std::string emit_all(const Module& module, std::span<const Function* const> kernels, Target target,
                     const EmitOptions& options) {
  Emitter emitter(module, target, options);
  for (const Function* k : kernels) emitter.add_kernel(*k);
  return emitter.text();
}
std::vector<const Function*> all_of(const Module& module) {
  std::vector<const Function*> list;
  for (const Function& k : module.kernels) list.push_back(&k);
  return list;
}

}  // namespace

std::string emit_cuda(const Module& module, const Function& kernel, const EmitOptions& options) {
  const Function* one[] = {&kernel};
  return emit_all(module, one, Target::cuda, options);
}
std::string emit_cuda(const Module& module, const EmitOptions& options) {
  return emit_all(module, all_of(module), Target::cuda, options);
}
std::string emit_cpp(const Module& module, const Function& kernel, const EmitOptions& options) {
  const Function* one[] = {&kernel};
  return emit_all(module, one, Target::cpp, options);
}
std::string emit_cpp(const Module& module, const EmitOptions& options) {
  return emit_all(module, all_of(module), Target::cpp, options);
}

}  // namespace ferrite::kernel
