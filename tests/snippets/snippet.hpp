// Programs of the documentation, by name.
#pragma once

#include <functional>
#include <string>
#include <utility>

namespace ferrite::testing {

/// Objects of static storage: main.cpp finds them all.
class Snippet {
 public:
  using Main = std::function<int(int argc, char** argv)>;

  /// `main` is the main() of a program.
  template <class... Arguments>
  Snippet(std::string name, int (*main)(Arguments...)) {
    add(std::move(name), [main]([[maybe_unused]] int argc, [[maybe_unused]] char** argv) {
      if constexpr (sizeof...(Arguments) == 2)
        return main(argc, argv);
      else
        return main();
    });
  }

 private:
  static void add(std::string name, Main main);
};

}  // namespace ferrite::testing
