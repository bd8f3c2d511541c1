// Programs of the documentation, by name.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace ferrite::testing {

/// Objects of static storage: main.cpp finds them all.
class Snippet {
 public:
  using Main = std::function<int(int argc, char** argv)>;

  /// `main` is the main() of a program, or the same without a result.
  template <class Result, class... Arguments>
  Snippet(std::string name, Result (*main)(Arguments...)) {
    add(std::move(name), [main]([[maybe_unused]] int argc, [[maybe_unused]] char** argv) {
      const auto call = [&] {
        if constexpr (sizeof...(Arguments) == 2)
          return main(argc, argv);
        else
          return main();
      };
      if constexpr (std::is_void_v<Result>)
        return call(), 0;
      else
        return call();
    });
  }

 private:
  static void add(std::string name, Main main);
};

}  // namespace ferrite::testing
