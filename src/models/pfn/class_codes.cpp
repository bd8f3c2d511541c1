#include "ferrite/models/pfn/class_codes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ferrite/core/error.hpp"
#include "ferrite/core/rng.hpp"
#include "ferrite/core/thread_pool.hpp"

namespace ferrite::pfn {

namespace {

void normalise(std::span<double> row) {
  double sum = 0;
  for (const double p : row) sum += p;
  for (double& p : row) p = sum > 0 ? p / sum : 1.0 / static_cast<double>(row.size());
}

}  // namespace

ClassCodes::ClassCodes(std::int64_t classes, std::int64_t rounds, std::uint64_t seed, std::int64_t symbols)
    : classes_(classes), rounds_(rounds), symbols_(std::min(symbols, classes)) {
  if (classes < 2 || symbols < 2 || rounds < 1)
    throw ValueError(fmt::format("[class_codes] {} classes, {} symbols, {} rounds: at least 2, 2 and 1",
                                 classes, symbols, rounds));
  if (classes <= symbols) {
    rounds_ = 1;
    symbol_of_.emplace_back();
    for (std::int32_t c = 0; c < classes; ++c) symbol_of_[0].push_back(c);
    return;
  }
  // The digits of a class's place in a random order would do; but the high ones have few values if the number
  // of classes is not a power. The low digit, added to them, makes all symbols about equally frequent.
  std::int64_t digits = 1;
  for (std::int64_t reach = symbols; reach < classes; reach *= symbols) ++digits;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto places = random_permutation(classes, {seed, static_cast<std::uint64_t>(round)});
    std::int64_t unit = 1;
    for (std::int64_t digit = 0; digit < digits; ++digit, unit *= symbols) {
      std::vector<std::int32_t>& symbol_of = symbol_of_.emplace_back();
      for (const std::int64_t place : places)
        symbol_of.push_back(
            static_cast<std::int32_t>((place / unit + (digit > 0 ? place % symbols : 0)) % symbols));
    }
  }
}

std::vector<std::int32_t> ClassCodes::encode(std::int64_t coding,
                                             std::span<const std::int32_t> classes) const {
  std::vector<std::int32_t> out;
  for (const std::int32_t c : classes) {
    if (c < 0 || c >= classes_)
      throw ValueError(fmt::format("[class_codes] class {}: must lie between 0 and {}", c, classes_ - 1));
    out.push_back(symbol(coding, c));
  }
  return out;
}

std::vector<double> ClassCodes::decode(std::span<const double> probabilities, std::int64_t rows) const {
  const auto width = static_cast<std::size_t>(symbols_), count = static_cast<std::size_t>(classes_);
  const auto height = static_cast<std::size_t>(rows);
  if (probabilities.size() != symbol_of_.size() * height * width)
    throw ValueError(
        fmt::format("[class_codes] {} probabilities: {} codings of {} rows and {} symbols need {}",
                    probabilities.size(), codings(), rows, symbols_, symbol_of_.size() * height * width));
  constexpr double least = 1e-300;
  // Ten steps: of symbols that are a little wrong, more would fit the errors. The product alone is too sure.
  constexpr int steps = 10;
  std::vector<double> out(height * count);
  parallel_ranges(rows, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> given(symbol_of_.size() * width), mass(width), next(count);
    for (auto r = static_cast<std::size_t>(begin); r < static_cast<std::size_t>(end); ++r) {
      const std::span<double> p(out.data() + r * count, count);
      std::fill(p.begin(), p.end(), 0.0);
      for (std::size_t j = 0; j < symbol_of_.size(); ++j) {
        const std::span<double> symbols(given.data() + j * width, width);
        std::copy_n(probabilities.data() + (j * height + r) * width, width, symbols.begin());
        normalise(symbols);
        for (std::size_t c = 0; c < count; ++c)
          p[c] += std::log(std::max(symbols[static_cast<std::size_t>(symbol_of_[j][c])], least));
      }
      const double highest = *std::max_element(p.begin(), p.end());
      for (double& v : p) v = std::exp((v - highest) / static_cast<double>(rounds_));
      normalise(p);
      // Each step shares a symbol's probability among its classes as they stand, and takes the mean over the
      // codings: expectation maximisation.
      for (int step = 0; step < steps && symbol_of_.size() > 1; ++step) {
        std::fill(next.begin(), next.end(), 0.0);
        for (std::size_t j = 0; j < symbol_of_.size(); ++j) {
          std::fill(mass.begin(), mass.end(), 0.0);
          for (std::size_t c = 0; c < count; ++c) mass[static_cast<std::size_t>(symbol_of_[j][c])] += p[c];
          for (std::size_t c = 0; c < count; ++c) {
            const auto s = static_cast<std::size_t>(symbol_of_[j][c]);
            if (mass[s] > least) next[c] += given[j * width + s] * p[c] / mass[s];
          }
        }
        std::copy(next.begin(), next.end(), p.begin());
        normalise(p);
      }
    }
  });
  return out;
}

}  // namespace ferrite::pfn
