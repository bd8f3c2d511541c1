// Views, and what is assembled from copies: cat, stack, pad, repeat, triangles.
#pragma once

#include "case.hpp"

namespace ferrite::conformance {

template <class B>
void add_view_cases(Cases<B>& cases) {
  const auto add = [&](const char* name, std::vector<Shape> shapes, auto f) {
    Spec spec{std::string("view/") + name, {real(shapes[0])}, every};
    spec.same_dtype = true;
    for (std::size_t i = 1; i < shapes.size(); ++i) spec.more.push_back({shapes[i]});
    cases.add(spec, f);
  };
  add("reshape", {{2, 3, 4}, {0, 4}, {4}}, [](const auto& in) { return reshape(in[0], {4, -1}); });
  add("flatten", {{2, 3, 4}, {0, 3, 4}, {2, 1}}, [](const auto& in) { return flatten(in[0], 1); });
  add("squeeze", {{1, 3, 1}, {}, {0, 1}}, [](const auto& in) { return squeeze(in[0]); });
  add("unsqueeze", {{3, 2}, {0, 2}, {1}}, [](const auto& in) { return unsqueeze(in[0], -2); });
  add("permute", {{2, 3, 4}, {0, 3, 4}, {1, 1, 1}}, [](const auto& in) { return permute(in[0], {2, 0, 1}); });
  add("transpose", {{2, 3, 4}, {0, 3}, {1}}, [](const auto& in) { return transpose(in[0], 0, -1); });
  add("slice", {{7, 5}, {7, 1}, {7, 0}},
      [](const auto& in) { return slice(slice(in[0], 0, 1, 7, 2), 1, -4, -1); });
  add("slice/backwards", {{7, 3}, {7, 0}, {0, 3}, {1, 3}},
      [](const auto& in) { return slice(in[0], 0, 5, 0, -2); });
  add("slice/nothing", {{7, 3}, {7, 0}, {1, 1}}, [](const auto& in) { return slice(in[0], 0, 5, 2); });
  add("select", {{4, 3}, {4, 0}, {2}}, [](const auto& in) { return select(in[0], 0, -2); });
  add("expand", {{3, 1}, {}, {1, 1, 1}}, [](const auto& in) { return expand(in[0], {2, 3, 4}); });
  add("flip", {{3, 4}, {0, 4}, {1}}, [](const auto& in) { return flip(in[0]); });
  add("windows", {{9, 2}, {3, 0}, {3}}, [](const auto& in) { return windows(in[0], 0, 3, 2); });
  add("windows/dilated", {{9, 2}}, [](const auto& in) { return windows(in[0], 0, 3, 1, 3); });
  add("split", {{5, 2}}, [](const auto& in) { return split(in[0], {1, 3, 1}); });
  add("chunk", {{5, 2}, {2}, {5, 0}}, [](const auto& in) { return chunk(in[0], 2); });
  add("repeat", {{2, 3}, {0, 3}, {1, 1}}, [](const auto& in) { return repeat(in[0], {2, 3}); });
  add("stack", {{2, 3}, {0, 3}, {2}}, [](const auto& in) { return stack(std::vector{in[0], in[0]}, 1); });
  add("pad", {{2, 3}, {0, 3}, {1, 1}}, [](const auto& in) { return pad(in[0], {1, 0}, {2, 1}, 1); });
  add("pad/interior", {{3, 3}, {0, 3}, {1, 1}}, [](const auto& in) {
    return eval(op::Pad{{1, 0}, {0, 2}, {2, 1}, 0}, in[0]);
  });
  add("tril", {{2, 4, 3}, {0, 4, 3}, {4, 0}, {1, 1}}, [](const auto& in) { return tril(in[0], 1); });
  add("triu", {{3, 4}, {0, 4}, {3, 0}, {1, 1}}, [](const auto& in) { return triu(in[0], -1); });
  add("clone", {{3, 4}, {}, {0, 4}, {1}}, [](const auto& in) { return clone(in[0]); });
  Spec cat_spec{"cat", {real({2, 3}), real({2, 2}), real({2, 1})}, every};
  cat_spec.same_dtype = true;
  cases.add(cat_spec, [](const auto& in) { return cat(std::vector{in[0], in[1], in[2]}, 1); });
  cases.add({"fold", {real({3, 2, 4})}, floats, 4}, [](const auto& in) {
    return eval(op::Fold{0, 8, 2, 1}, in[0]);
  });
}

}  // namespace ferrite::conformance
