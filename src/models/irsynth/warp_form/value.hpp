// The values of Warp's code generator: numbered variables with C++ types, some of them constants, some of
// them pointers to what they stand for.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/kernel/ir.hpp"

namespace ferrite::irsynth::warp {

using namespace kernel;  // the tree and its syntax, of which all here is made

/// A value that Python knew: literals keep Python's type (int, float, bool) until they are printed.
struct Constant {
  enum class Kind : std::uint8_t { boolean, integer, real, composite } kind = Kind::integer;
  std::int64_t integer = 0;
  double real = 0;
  std::string text = {};  // in C++

  bool truth() const { return kind == Kind::real ? real != 0 : integer != 0; }
};
Constant boolean(bool value);
Constant integer(std::int64_t value);
Constant real(double value);
/// A number of a Warp type, wp.uint32(7): its literal has a suffix.
Constant typed(ScalarType type, const Constant& value);

/// The contents of a variable: a value of the language, or something only Warp's library has.
struct ValueType {
  enum class Form : std::uint8_t { value, range, shape, tuple, fixed_array } form = Form::value;
  Type type = {};
  int size = 0;               // elements of a fixed array, ints of a tuple
  bool reference = false;     // a pointer to it
  bool python_float = false;  // its scalar was given as Python's float, and Warp prints that

  bool is_array() const { return type.is_array() && form != Form::shape; }
};
inline ValueType value_of(Type type) { return {ValueType::Form::value, type}; }
inline ValueType reference_to(ValueType type) {
  type.reference = true;
  return type;
}
inline ValueType stripped(ValueType type) {
  type.reference = false;
  return type;
}

/// Where a value lies, as C++ expressions of it and of a pointer to it.
struct Origin {
  std::string lvalue, pointer;
  bool is_root = true;  // a variable itself

  Origin field(const std::string& name) const {
    const std::string inside = "(" + lvalue + ")." + name;
    return {inside, "&(" + inside + ")", false};
  }
  Origin element(const std::string& indices) const {
    const std::string address = "wp::address(" + lvalue + ", " + indices + ")";
    return {"(*" + address + ")", address, false};
  }
};

struct Variable;

/// One component or field of an array element that is being written.
struct Slot {
  const Variable* root = nullptr;
  std::string indices, access;
  Type type;
};

struct Variable {
  std::string label;  // var_<label>, adj_<label>
  ValueType type;
  std::optional<Constant> constant = {};
  std::optional<Origin> origin = {};
  std::optional<Slot> slot = {};

  std::string name() const { return "var_" + label; }
  std::string adjoint() const { return "adj_" + label; }
};

/// The current variable of each Python name, in the order of first assignment, as a Python dict keeps it.
class Symbols {
 public:
  Variable* find(std::string_view name) const {
    for (const auto& [key, value] : entries_)
      if (key == name) return value;
    return nullptr;
  }
  void set(std::string_view name, Variable* value) {
    for (auto& [key, held] : entries_)
      if (key == name) {
        held = value;
        return;
      }
    entries_.emplace_back(name, value);
  }
  void erase(std::string_view name) {
    std::erase_if(entries_, [&](const auto& entry) { return entry.first == name; });
  }
  bool holds(const Variable* value) const {
    for (const auto& entry : entries_)
      if (entry.second == value) return true;
    return false;
  }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  std::vector<std::pair<std::string, Variable*>> entries_;
};

/// "wp::float32", "wp::vec_t<3, wp::float32>", "wp::array_t<...>*".
std::string type_text(const ValueType& type, const Module& module);
std::string scalar_text(ScalarType scalar);

/// A function of Warp's library, or one of the module, as it is called.
struct Callee {
  std::string forward, reverse;  // "wp::add" and "wp::adj_add"
  bool differentiable = true;
  bool needs_output = false;  // the adjoint takes the result too
  bool replayed = true;       // calls with an effect are not repeated in the backward kernel
};
Callee library(const std::string& name, bool differentiable = true);
/// The callee of a builtin for arguments of these types.
Callee library(Builtin builtin, const std::vector<ValueType>& types);

}  // namespace ferrite::irsynth::warp
