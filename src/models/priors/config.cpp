// Config to JSON and back, and its rules.
#include "ferrite/models/priors/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <type_traits>
#include <vector>

#include "ferrite/core/error.hpp"
#include "models/priors/laws.hpp"

namespace ferrite::priors {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
concept Range = std::is_same_v<T, IntRange> || std::is_same_v<T, RealRange>;

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

template <class T>
void check_limits(const std::string& key, const T& value, double low, double high) {
  if (!(static_cast<double>(value) >= low && static_cast<double>(value) <= high))
    throw ValueError(fmt::format("[priors config] {} {}: must be from {} to {}", key, value, low, high));
}

struct Writer {
  Json& object;
  template <class T, class... Limits>
  void operator()(const char* key, const T& field, Limits... limits) {
    if constexpr (std::is_enum_v<T>) {
      object[key] = to_string(field);
    } else if constexpr (std::is_arithmetic_v<T>) {
      object[key] = field;
    } else {
      Json nested = Json::object();
      T::fields(field, Writer{nested}, limits...);
      object[key] = std::move(nested);
    }
  }
};

/// Walks all numbers and checks each against its limits.
struct Checker {
  std::string path;
  template <class T, class... Limits>
  void operator()(const char* key, const T& field, Limits... limits) {
    const std::string name = joined(path, key);
    if constexpr (std::is_arithmetic_v<T>) {
      if constexpr (sizeof...(limits) == 2) check_limits(name, field, limits...);
    } else if constexpr (!std::is_enum_v<T>) {
      T::fields(field, Checker{name}, limits...);
      if constexpr (requires { field.min > field.max; })
        if (field.min > field.max)
          throw ValueError(fmt::format("[priors config] {} {} to {}: min must not exceed max", name,
                                       field.min, field.max));
    }
  }
};

class Reader {
 public:
  Reader(const Json& object, std::string path, std::vector<std::string>& known)
      : object_(object), path_(std::move(path)), known_(known) {}

  template <class T, class... Limits>
  void operator()(const char* key, T& field, Limits... limits) {
    known_.emplace_back(key);
    const auto found = object_.find(key);
    if (found == object_.end()) return;
    const std::string name = joined(path_, key);
    const Json& value = *found;
    if constexpr (std::is_enum_v<T>) {
      read_enum(name, value, field);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_boolean()) reject(name, value, "true or false");
      field = value.get<bool>();
    } else if constexpr (std::is_same_v<T, int>) {
      if (!value.is_number_integer()) reject(name, value, "an integer");
      const double wide = value.get<double>();
      if (std::fabs(wide) > 2e9) reject(name, value, "an integer of 32 bits");
      field = value.get<int>();
    } else if constexpr (std::is_same_v<T, double>) {
      if (!value.is_number()) reject(name, value, "a number");
      field = value.get<double>();
    } else {
      if constexpr (Range<T>)
        if (value.is_number()) return read_both(name, value, field);
      read_object(value, name, field, limits...);
    }
  }

  /// The members of `field` from a JSON object that has no other keys.
  template <class T, class... Limits>
  static void read_object(const Json& value, const std::string& path, T& field, Limits... limits) {
    if (!value.is_object())
      reject(path.empty() ? "the config" : path, value,
             Range<T> ? "a number or {\"min\", \"max\"}" : "an object");
    std::vector<std::string> known;
    T::fields(field, Reader(value, path, known), limits...);
    for (const auto& [key, ignored] : value.items())
      if (std::find(known.begin(), known.end(), key) == known.end())
        throw ParseError(fmt::format("[priors config] {}: unknown key; there are {}",
                                     joined(path, key.substr(0, 60)), fmt::join(known, ", ")));
  }

 private:
  [[noreturn]] static void reject(const std::string& name, const Json& value, std::string_view needed) {
    const std::string given = value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 60);
    throw ParseError(fmt::format("[priors config] {} is {}: needs {}", name, given, needed));
  }
  template <class T>
  static void read_both(const std::string& name, const Json& value, T& range) {
    if constexpr (std::is_same_v<T, IntRange>)
      if (!value.is_number_integer() || std::fabs(value.get<double>()) > 2e9)
        reject(name, value, "an integer");
    range.min = range.max = value.get<decltype(range.min)>();
  }
  template <class E>
  static void read_enum(const std::string& name, const Json& value, E& field) {
    std::vector<std::string_view> names;
    for (int i = 0; i < count_of(E{}); ++i) {
      names.push_back(to_string(static_cast<E>(i)));
      if (value.is_string() && value.get_ref<const std::string&>() == names.back()) {
        field = static_cast<E>(i);
        return;
      }
    }
    reject(name, value, fmt::format("one of {}", fmt::join(names, ", ")));
  }

  const Json& object_;
  std::string path_;
  std::vector<std::string>& known_;
};

}  // namespace

std::string_view to_string(Family v) {
  static constexpr std::string_view names[] = {"formula", "graph", "mlp_scm", "tree_scm", "gp", "mixture"};
  return names[static_cast<int>(v)];
}
std::string_view to_string(Task v) { return v == Task::classification ? "classification" : "regression"; }
std::string_view to_string(ClassCuts v) {
  static constexpr std::string_view names[] = {"sampled", "value", "rank", "balanced", "shares"};
  return names[static_cast<int>(v)];
}
std::string_view to_string(Causality v) {
  static constexpr std::string_view names[] = {"sampled", "causal", "non_causal"};
  return names[static_cast<int>(v)];
}
std::string_view to_string(RowLaw v) { return v == RowLaw::uniform ? "uniform" : "log_uniform"; }

Config Config::preset(std::string_view name) {
  Config c;
  if (name == "default") return c;
  if (name != "realistic")
    throw ValueError(fmt::format("[priors config] preset '{}': there are default and realistic", name));
  c.features = {3, 24};
  c.weights = {.formula = 0, .graph = 0.6, .mlp_scm = 0.35, .tree_scm = 0.05, .gp = 0};
  // Few causes for many columns: their correlations come from this.
  c.graph.latent.max_scale = 4;
  c.mlp_scm.causality = Causality::causal;
  c.mlp_scm.causes = {1, 3, 0};
  c.mlp_scm.layers = {1, 3, 1};
  c.post.cuts = ClassCuts::shares;
  c.post.evenness = 2;
  c.post.categorical_share = 0.84;
  c.post.category_scale = 4.5;
  c.post.category_codes = true;
  c.post.skewed_share = 0.5;
  c.post.missing_share = 0.35;
  c.post.missing_columns = 0.45;
  c.post.missing_rate = 0.2;
  return c;
}

void Config::check() const {
  Config::fields(*this, Checker{});
  const auto reject = [](const std::string& what) { throw ValueError("[priors config] " + what); };
  if (task == Task::classification && 2 * post.classes.max > rows.min)
    reject(fmt::format("post.classes.max {} with rows.min {}: each class needs a row in train and in test",
                       post.classes.max, rows.min));
  const int train = train_rows_of(train_share.min, rows.min),
            test = rows.min - train_rows_of(train_share.max, rows.min);
  if (task == Task::classification && std::min(train, test) < post.classes.min)
    reject(
        fmt::format("post.classes.min {} with rows.min {} and train_share {} to {}: as few as {} rows to "
                    "train and {} to test, and each class needs one in both",
                    post.classes.min, rows.min, train_share.min, train_share.max, train, test));
  const double sum = weights.formula + weights.graph + weights.mlp_scm + weights.tree_scm + weights.gp;
  if (family == Family::mixture && !(sum > 0)) reject("weights are all 0: a mixture needs a family");
}

std::string Config::to_json() const {
  Json object = Json::object();
  Config::fields(*this, Writer{object});
  return object.dump();
}

Config Config::from_json(std::string_view text) {
  Json object;
  try {
    object = Json::parse(text.begin(), text.end());
  } catch (const Json::exception& e) {
    throw ParseError(fmt::format("[priors config] not JSON: {}", e.what()));
  }
  Config config;
  if (const auto name = object.find("preset"); object.is_object() && name != object.end()) {
    if (!name->is_string())
      throw ParseError(fmt::format("[priors config] preset is {}: needs a name", name->dump().substr(0, 60)));
    config = preset(name->get<std::string>());
    object.erase(name);
  }
  Reader::read_object(object, "", config);
  config.check();
  return config;
}

Config Config::from_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf()))
    throw IoError(fmt::format("[priors config] {}: cannot be read", path.string()));
  try {
    return from_json(text.str());
  } catch (const ParseError& e) {
    throw ParseError(fmt::format("{} in {}", e.what(), path.string()));
  } catch (const ValueError& e) {
    throw ValueError(fmt::format("{} in {}", e.what(), path.string()));
  }
}

}  // namespace ferrite::priors
