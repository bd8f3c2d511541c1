// ferrite ops: what every backend does for every op and dtype. Nothing here is listed by hand: Runs and
// accepts find the kernels, the shape rules the dtypes.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/backend_option.hpp"
#include "cli/show_json.hpp"
#include "ferrite/models/priors/priors.hpp"
#include "ferrite/ops/all.hpp"
#include "ferrite/stacks.hpp"

namespace ferrite::cli {

namespace {

/// Those of this build.
std::vector<std::string> known_backends() {
  std::vector<std::string> names{"reference", "cpu"};
  if (is_built_with_cuda()) names.push_back("cuda");
  return names;
}

/// How one backend evaluates one op for one dtype.
enum class Support : std::uint8_t { none, view, kernel, fused, both_ways, forward_only, composed, missing };

std::string_view to_string(Support support) {
  static constexpr std::string_view names[] = {"",          "view",         "kernel",   "fused",
                                               "both ways", "forward only", "composed", "missing"};
  return names[static_cast<int>(support)];
}

using ByDType = std::map<DType, Support>;

/// Suffixes after the name of the op whose gradient they compute.
constexpr const char* backward_suffixes[] = {"_backward", "_input_grad", "_weight_grad"};

struct Row {
  std::string op;
  std::vector<std::string> functions;
  bool has_gradient = false;  // its own; others are differentiated through their composition
  bool is_backward = false;
  std::map<std::string, ByDType> backends;
};

/// Calls f(op) for the members of a family: every value of the enums and bools among the attributes that
/// changes the op's name. Other ops are called once.
template <class Op, class F>
void for_each_function(F&& f) {
  std::vector<std::string> seen;
  const auto take = [&](const Op& op) {
    const std::string name(op_name(op));
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return;
    seen.push_back(name);
    f(op);
  };
  take(Op{});
  Op op;
  Op::attributes(op, [&](std::string_view, auto& field) {
    using Field = std::remove_reference_t<decltype(field)>;
    const Field before = field;
    if constexpr (std::is_same_v<Field, bool>) {
      field = !field;
      take(op);
    } else if constexpr (std::is_enum_v<Field> && !std::is_same_v<Field, DType>) {
      for (int i = 0; i < count_of(Field{}); ++i) {
        field = static_cast<Field>(i);
        take(op);
      }
    }
    field = before;
  });
}

template <class B, class Op>
Support support_of(const B& b, const Op& op, MetaSpan in) {
  if constexpr (ViewOp<Op>) return Support::view;
  const OpEntry<B>& entry = op_entry<B, Op>();
  if (entry.runs(b, &op, in)) return entry.compose ? Support::fused : Support::kernel;
  return entry.compose ? Support::composed : Support::missing;
}

/// The dtypes some function of the op takes, and the least the backend does with them.
template <class B, class Op>
ByDType survey(const B& b) {
  ByDType result;
  for_each_function<Op>([&](const Op& member) {
    for (const DType dtype : all_dtypes) {
      Op op = member;
      Metas in;
      try {
        in = op_example(op, dtype);
        ferrite::detail::infer_results(op, in);
      } catch (const DTypeError&) {
        continue;
      }
      Support& support = result[dtype];
      support = std::max(support, support_of(b, op, in));
    }
  });
  return result;
}

/// Fused ops are fused both ways if their gradient is made of kernels: of their own backward ops, or of
/// primitives. Backward ops are there for the forward's dtypes.
void pair_with_backward(std::map<std::string, Row>& rows) {
  for (auto& [name, row] : rows) {
    std::vector<Row*> backward;
    for (const char* suffix : backward_suffixes)
      if (const auto found = rows.find(name + suffix); found != rows.end())
        backward.push_back(&found->second);
    for (auto& entry : row.backends) {
      const std::string& backend = entry.first;
      ByDType& forward = entry.second;
      for (Row* other : backward)
        std::erase_if(other->backends[backend], [&](const auto& e) { return !forward.contains(e.first); });
      for (auto& [dtype, support] : forward) {
        if (support != Support::fused || row.is_backward) continue;
        support = row.has_gradient ? Support::both_ways : Support::forward_only;
        for (Row* other : backward) {
          const auto found = other->backends[backend].find(dtype);
          if (found == other->backends[backend].end() || found->second != Support::fused)
            support = Support::forward_only;
        }
      }
    }
  }
}

std::vector<Row> collect(const std::vector<std::string>& backends) {
  const Reference reference;
  const Cpu cpu;
  const Cuda cuda = Cuda::without_device();
  std::map<std::string, Row> rows;
  std::vector<std::string> order;
  const auto add_row = [&]<class Op>() {
    const std::string name(Op::type_name);
    Row& row = rows[name];
    order.push_back(name);
    row.op = name;
    row.has_gradient = HasVjp<Reference, Op>;
    row.is_backward = std::any_of(std::begin(backward_suffixes), std::end(backward_suffixes),
                                  [&](std::string_view suffix) { return name.ends_with(suffix); });
    for_each_function<Op>([&](const Op& op) { row.functions.emplace_back(op_name(op)); });
    for (const std::string& backend : backends) {
      if (backend == "reference") row.backends[backend] = survey<Reference, Op>(reference);
      if (backend == "cpu") row.backends[backend] = survey<Cpu, Op>(cpu);
      if (backend == "cuda") row.backends[backend] = survey<Cuda, Op>(cuda);
    }
  };
  op::Core::for_each(add_row);
  priors::Ops::for_each(add_row);
  pair_with_backward(rows);
  std::vector<Row> result;
  for (const std::string& name : order) result.push_back(rows[name]);
  return result;
}

/// "all", "float", "number", or the names; "all and storage" with those dtypes that are for storage.
std::string summary(const std::vector<DType>& dtypes) {
  const auto all_of = [&](auto&& member) {
    std::size_t count = 0;
    for (const DType d : all_dtypes) count += member(d) ? 1 : 0;
    return dtypes.size() == count && std::all_of(dtypes.begin(), dtypes.end(), member);
  };
  if (all_of([](DType) { return true; })) return "all and storage";
  if (all_of([](DType d) { return !is_storage(d); })) return "all";
  if (all_of(is_floating)) return "float";
  if (all_of([](DType d) { return d != DType::bool_ && !is_storage(d); })) return "number";
  std::string text;
  for (const DType d : dtypes) text += (text.empty() ? "" : " ") + std::string(ferrite::to_string(d));
  return text;
}

/// "kernel all", or "both ways f32 f64, composed f16 bf16".
std::string cell(const ByDType& by_dtype) {
  std::map<Support, std::vector<DType>> groups;
  for (const auto& [dtype, support] : by_dtype) groups[support].push_back(dtype);
  std::string text;
  for (const auto& [support, dtypes] : groups)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(support), summary(dtypes));
  return text;
}

/// Words on lines of at most `width` characters.
std::vector<std::string> wrapped(const std::vector<std::string>& words, std::size_t width) {
  std::vector<std::string> lines(1);
  for (const std::string& word : words) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

void print_table(const std::vector<Row>& rows, const std::vector<std::string>& backends) {
  std::size_t name_width = 2;
  std::vector<std::size_t> widths;
  for (const Row& row : rows) name_width = std::max(name_width, row.op.size());
  for (const std::string& backend : backends) {
    std::size_t width = backend.size();
    for (const Row& row : rows) width = std::max(width, cell(row.backends.at(backend)).size());
    widths.push_back(width);
  }
  std::string text;
  const auto line = [&](std::string_view op, auto&& column, std::string_view functions) {
    std::string row = fmt::format("{:<{}}  ", op, name_width);
    for (std::size_t i = 0; i < backends.size(); ++i)
      row += fmt::format("{:<{}}  ", column(backends[i]), widths[i]);
    row += functions;
    text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  };
  line(
      "op", [](const std::string& backend) { return backend; }, "functions");
  for (const Row& row : rows) {
    const bool family = row.functions.size() > 1 || row.functions[0] != row.op;
    const auto functions = family ? wrapped(row.functions, 48) : std::vector<std::string>(1);
    line(
        row.op, [&](const std::string& backend) { return cell(row.backends.at(backend)); }, functions[0]);
    for (std::size_t i = 1; i < functions.size(); ++i)
      line(
          "", [](const std::string&) { return ""; }, functions[i]);
  }
  fmt::print(
      "{}\nkernel        a primitive the backend must have\n"
      "both ways     a fused kernel, forward and backward\n"
      "forward only  a fused kernel; its gradient, if it has one, is composed\n"
      "fused         a fused kernel of a backward op\n"
      "composed      made of other ops; view: no kernel needed\n"
      "float: f32 f64 f16 bf16; number: float and i32 i64 u8; all: number and bool; storage: i8 u16 u32\n",
      text);
}

void print_json(const std::vector<Row>& rows) {
  nlohmann::ordered_json ops = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json support;
    for (const auto& [backend, by_dtype] : row.backends)
      for (const auto& [dtype, value] : by_dtype)
        support[backend][std::string(ferrite::to_string(dtype))] = to_string(value);
    ops.push_back(
        {{"op", row.op}, {"functions", row.functions}, {"gradient", row.has_gradient}, {"support", support}});
  }
  show_json(nlohmann::ordered_json{{"ops", ops}});
}

}  // namespace

void add_ops(CLI::App& app, Action& action) {
  struct Options {
    std::vector<std::string> backends = known_backends();
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("ops", "List what every backend does for every op and dtype");
  as_list(command->add_option("--backend", options->backends, "Only these backends"))
      ->check(CLI::IsMember(known_backends()));
  command->add_flag("--json", options->json, "Print JSON");
  command->footer("Examples:\n  ferrite ops\n  ferrite ops --backend cpu\n  ferrite ops --json");
  command->callback([&action, options] {
    action = [options] {
      const std::vector<Row> rows = collect(options->backends);
      if (options->json)
        print_json(rows);
      else
        print_table(rows, options->backends);
      return success;
    };
  });
}

}  // namespace ferrite::cli
