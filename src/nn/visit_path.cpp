// Names of the parts of a module tree, each given once.
#include "ferrite/nn/visit_path.hpp"

#include "ferrite/core/error.hpp"

namespace ferrite::nn {

std::string VisitPath::claim(std::string_view name) {
  std::string path = prefix_ + std::string(name);
  if (!taken_.insert(path).second) {
    throw ValueError("[visit] two parts are called '" + path +
                     "': a state keeps one of them only, so give each parameter, buffer, generator and "
                     "child of a module a name of its own");
  }
  return path;
}

VisitPath::Scope::Scope(VisitPath& path, std::string_view name) : path_(path), length_(path.prefix_.size()) {
  path_.prefix_ = path_.claim(name) + '.';
}

VisitPath::Scope::~Scope() { path_.prefix_.resize(length_); }

}  // namespace ferrite::nn
