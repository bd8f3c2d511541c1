// einsum: reads subscripts.
#include "ferrite/ops/einsum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace ferrite::detail {

namespace {

[[noreturn]] void refuse(std::string_view subscripts, std::string_view why) {
  throw ValueError(fmt::format("[einsum] '{}': {}", subscripts, why));
}

/// One operand's letters; `dots` is the place of "...", or -1.
struct Term {
  std::string letters;
  int dots = -1;
};

Term parse_term(std::string_view text, std::string_view subscripts) {
  Term term;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 3) == "...") {
      if (term.dots >= 0) refuse(subscripts, "'...' twice in one operand");
      term.dots = static_cast<int>(term.letters.size());
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      term.letters += text[i];
    } else {
      refuse(subscripts, fmt::format("'{}' is not a letter, and axes are letters", text[i]));
    }
  }
  return term;
}

}  // namespace

EinsumAxes::EinsumAxes(std::string_view subscripts, std::span<const Shape> shapes) {
  std::string text;
  for (const char c : subscripts)
    if (c != ' ') text += c;
  const std::size_t arrow = text.find("->");
  const std::string inputs = text.substr(0, arrow);
  std::vector<Term> terms;
  for (std::size_t begin = 0; begin <= inputs.size();) {
    const std::size_t end = std::min(inputs.find(',', begin), inputs.size());
    terms.push_back(parse_term(std::string_view(inputs).substr(begin, end - begin), subscripts));
    begin = end + 1;
  }
  if (terms.size() != shapes.size())
    refuse(subscripts, fmt::format("names {} operands, {} are given", terms.size(), shapes.size()));

  // Axes under "..." come first, numbered from the right, so that they broadcast.
  int most_dots = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const int letters = static_cast<int>(terms[i].letters.size()), rank = shapes[i].rank();
    if (terms[i].dots < 0 ? letters != rank : letters > rank)
      throw ShapeError(fmt::format("[einsum] '{}': operand {} has {} letters, its shape {} has {} axes",
                                   subscripts, i, letters, to_string(shapes[i]), rank));
    if (terms[i].dots >= 0) most_dots = std::max(most_dots, rank - letters);
  }
  std::map<char, int> numbers;
  std::map<char, int> uses;
  extents.assign(static_cast<std::size_t>(most_dots), 1);
  const auto number_of = [&](char letter) {
    const auto [it, is_new] = numbers.emplace(letter, static_cast<int>(extents.size()));
    if (is_new) extents.push_back(1);
    return it->second;
  };
  for (std::size_t i = 0; i < terms.size(); ++i) {
    std::vector<int>& axes = operands.emplace_back();
    const int hidden = terms[i].dots < 0 ? 0 : shapes[i].rank() - static_cast<int>(terms[i].letters.size());
    for (std::size_t l = 0; l <= terms[i].letters.size(); ++l) {
      if (static_cast<int>(l) == terms[i].dots)
        for (int d = 0; d < hidden; ++d) axes.push_back(most_dots - hidden + d);
      if (l == terms[i].letters.size()) break;
      ++uses[terms[i].letters[l]];
      axes.push_back(number_of(terms[i].letters[l]));
    }
    for (std::size_t a = 0; a < axes.size(); ++a) {
      std::int64_t& extent = extents[static_cast<std::size_t>(axes[a])];
      const std::int64_t given = shapes[i][static_cast<int>(a)];
      if (extent == 1)
        extent = given;
      else if (given != extent && given != 1)
        throw ShapeError(
            fmt::format("[einsum] '{}': axis {} of operand {} has {} elements, earlier it had {}", subscripts,
                        a, i, given, extent));
    }
  }

  if (arrow == std::string::npos) {
    for (int d = 0; d < most_dots; ++d) result.push_back(d);
    for (const auto& [letter, count] : uses)
      if (count == 1) result.push_back(numbers.at(letter));
    return;
  }
  const Term out = parse_term(std::string_view(text).substr(arrow + 2), subscripts);
  if (out.dots < 0 && most_dots > 0) refuse(subscripts, "the result needs '...' too");
  for (std::size_t l = 0; l <= out.letters.size(); ++l) {
    if (static_cast<int>(l) == out.dots)
      for (int d = 0; d < most_dots; ++d) result.push_back(d);
    if (l == out.letters.size()) break;
    const char letter = out.letters[l];
    if (!numbers.contains(letter))
      refuse(subscripts, fmt::format("no operand has the axis '{}' of the result", letter));
    if (out.letters.find(letter, l + 1) != std::string::npos)
      refuse(subscripts, fmt::format("the result has '{}' twice", letter));
    result.push_back(numbers.at(letter));
  }
}

bool EinsumAxes::is_needed(int axis, std::size_t first) const {
  const auto has = [&](const std::vector<int>& axes) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
  };
  return has(result) ||
         std::any_of(operands.begin() + static_cast<std::ptrdiff_t>(std::min(first, operands.size())),
                     operands.end(), has);
}

}  // namespace ferrite::detail
