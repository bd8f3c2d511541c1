// The working data of one dataset: the shape drawn for it, and scratch memory that a team owns.
#pragma once

#include "models/priors/causes.hpp"

namespace ferrite::priors {

/// Decisions made before any family is asked.
struct DatasetShape {
  Family family;
  int rows, train_rows, features;
};

/// Decisions of post-processing about columns and classes.
struct PostPlan {
  bool constant[max_features];
  int levels[max_features];   // of categorical columns; 0: numeric
  float share[max_features];  // of y explained by a column alone
  int column[max_features];   // where feature j of the dataset comes from
  int features;               // that are not constant
  int classes;
  float cuts[max_categories];
  int relabel[max_categories];
};

/// Values of all leaves of a layer of trees: 8 trees of depth 6 with 32 outputs.
inline constexpr int max_leaves = 8 * 64 * 32;

/// Rows that a GPU's product computes at once.
inline constexpr int row_group = 256;

/// Columns of `rows` values, one after the other. x and y are what a family leaves behind.
struct Workspace {
  float* x;        // [features][rows]
  float* y;        // [rows]
  float* a;        // [width][rows]
  float* b;        // [width][rows]
  float* weights;  // [width][width]
  float* bias;     // [width]
  float* leaves;   // [max_leaves]
  int* order;      // [rows]
  int* labels;     // [rows]
  FourierSeries* series;
  PostPlan* post;
};

/// Units that a layer, a graph or a chunk of Gaussian-process terms may have at once.
FERRITE_PORTABLE int workspace_width(const Config& config) {
  // mu + sigma z, sigma at most mu, and z below 8.6: what Draws::normal can give
  const double mu = config.mlp_scm.hidden.max, lower = config.mlp_scm.hidden.lower;
  int width = lesser(max_hidden, static_cast<int>(10 * mu + lower) + 1);
  width = greater(width, 1 + 2 * config.features.max);
  width = greater(width, config.features.max + 1 + max_latent);
  return greater(greater(width, max_causes), 64);
}

/// Lays everything out in one piece of memory, aligned to 64 bytes; returns its size. Without memory it only
/// computes the size. The last numbers are unused: a GPU reads whole groups of rows.
FERRITE_PORTABLE std::int64_t place_workspace(const Config& config, std::byte* memory, Workspace& w) {
  std::int64_t bytes = 0;
  const auto place = [&](std::int64_t count, std::int64_t size) {
    std::byte* const at = memory ? memory + bytes : nullptr;
    bytes += (count * size + 63) / 64 * 64;
    return at;
  };
  const auto floats = [&](std::int64_t count) {
    return reinterpret_cast<float*>(place(count, sizeof(float)));
  };
  const std::int64_t rows = config.rows.max, width = workspace_width(config);
  w.x = floats(config.features.max * rows);
  w.y = floats(rows);
  w.a = floats(width * rows);
  w.b = floats(width * rows);
  w.weights = floats(width * width);
  w.bias = floats(width);
  w.leaves = floats(max_leaves);
  w.order = reinterpret_cast<int*>(place(rows, sizeof(int)));
  w.labels = reinterpret_cast<int*>(place(rows, sizeof(int)));
  place(row_group, sizeof(float));
  return bytes;
}

/// Adds Gaussian noise to `count` columns; its scale is common, or separate for each column. A column's draws
/// are those of its number in `numbers`, or of its place if there is no such list.
template <class Team>
FERRITE_PORTABLE_CALL void add_noise(Team& team, const DatasetKey& key, std::uint32_t part, float std,
                                     bool own_scales, float* columns, const int* numbers, int count,
                                     int rows) {
  const Stream values = key.stream(Purpose::noise, part), scales = key.stream(Purpose::noise_scale, part);
  const auto blocks = static_cast<std::uint64_t>((rows + 3) / 4);
  team.columns(count, [&](int c, auto& inner) {
    const auto k = static_cast<std::uint64_t>(numbers ? numbers[c] : c);
    const float scale = own_scales ? std::fabs(std * scales.normal(k)) : std;
    float* column = columns + c * rows;
    inner.normals(values, blocks * k, rows,
                  [&](int r, float z) { column[r] = std::fma(scale, z, column[r]); });
  });
}
/// The same for one column.
template <class Team>
FERRITE_HOST_DEVICE void add_noise(Team& team, const DatasetKey& key, std::uint32_t part, float std,
                                   float* column, int rows) {
  add_noise(team, key, part, std, false, column, nullptr, 1, rows);
}

template <class Team>
FERRITE_HOST_DEVICE void copy_column(Team& team, const float* from, float* to, int rows) {
  team.each(rows, [&](int r) { to[r] = from[r]; });
}

}  // namespace ferrite::priors
