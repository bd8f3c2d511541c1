// VisitPath: the names a visitor gives to the parts of a module tree.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "ferrite/core/export.hpp"

namespace ferrite::nn {

/// Names are joined by dots from the root down, and each name is unique: a state holds one tensor per name,
/// so a duplicate would lose weights.
class FERRITE_API VisitPath {
 public:
  /// The full name of a part of the current module. Throws ValueError if another part has it.
  std::string claim(std::string_view name);

  /// Goes into a child and comes back when the scope ends.
  class FERRITE_API Scope {
   public:
    Scope(VisitPath& path, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    VisitPath& path_;
    std::size_t length_;
  };

 private:
  std::string prefix_;
  std::unordered_set<std::string> taken_;
};

}  // namespace ferrite::nn
