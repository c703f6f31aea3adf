// Attention of some query rows of one head, with all scores of those rows in the cache: products in
// tiles that stay in registers, and one pass over the scores between them.
#include <algorithm>

#include "delegates/cpu/vector/math.h"
#include "delegates/cpu/vector/parts.h"
#include "delegates/cpu/vector/product_tile.h"

namespace msrt::cpu::MSRT_CPU_ISA {
namespace {

constexpr int64_t kPanel = 2 * kLanes;

void Product(Rows a, Rows b, Results y, int64_t rows, int64_t columns, int64_t depth, bool add) {
  const auto right = [&](int64_t j) { return Rows{b.at + j, b.step}; };
  const auto result = [&](int64_t j) { return Results{y.at + j, y.step}; };
  int64_t j = 0;
  for (; j + 2 * kLanes <= columns; j += 2 * kLanes)
    TileRows<2, kLanes>(a, right(j), result(j), rows, depth, add);
  for (; j + kLanes <= columns; j += kLanes)
    TileRows<1, kLanes>(a, right(j), result(j), rows, depth, add);
  for (; j + 4 <= columns; j += 4) TileRows<1, 4>(a, right(j), result(j), rows, depth, add);
  for (; j < columns; ++j) TileRows<1, 1>(a, right(j), result(j), rows, depth, add);
}

// One dot product for each key, for so few rows that packing would cost more than it saves.
float Dot(const float* a, const float* b, int64_t count) {
  Vector<kLanes> sums = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) sums += Load<kLanes>(a + i) * Load<kLanes>(b + i);
  float sum = 0;
  for (int l = 0; l < kLanes; ++l) sum += sums[l];
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void Scores(const AttentionRows& r, int64_t keys) {
  if (r.packed_keys != nullptr) {
    for (int64_t j = 0; j < keys; j += kPanel) {
      TileRows<2, kLanes>({r.q, r.q_step}, {r.packed_keys + j * r.width, kPanel},
                          {r.scores + j, r.score_step}, r.rows, r.width, false);
    }
    return;
  }
  int64_t j = 0;
  for (const AttentionRows::Part& part : r.keys) {
    for (int64_t k = 0; k < part.count && j < keys; ++k, ++j) {
      for (int64_t i = 0; i < r.rows; ++i)
        r.scores[i * r.score_step + j] = Dot(r.q + i * r.q_step, part.at + k * part.step, r.width);
    }
  }
}

// x * scale + mask. False if the mask hides all.
bool ScaleAndMask(const AttentionRows& r, int64_t row, float* x, int64_t count) {
  const float scale = r.scale;
  if (r.mask == nullptr && r.choice == nullptr) {
    for (int64_t j = 0; j < count; ++j) x[j] *= scale;
    return count > 0;
  }
  int32_t seen = 0;
  const int64_t step = r.mask_step, at = row * r.mask_row_step;
  if (r.choice != nullptr) {
    const uint8_t* choice = r.choice + at;
    for (int64_t j = 0; j < count; ++j) {
      const int32_t sees = choice[j * step];
      x[j] = x[j] * scale + (sees != 0 ? 0.0f : -kInfinity);
      seen |= sees;
    }
    return seen != 0;
  }
  const float* mask = r.mask + at;
  if (step == 1) {
    for (int64_t j = 0; j < count; ++j) {
      x[j] = x[j] * scale + mask[j];
      seen |= mask[j] == -kInfinity ? 0 : 1;
    }
  } else {
    for (int64_t j = 0; j < count; ++j) x[j] = x[j] * scale + mask[j * step];
    for (int64_t j = 0; j < count; ++j) seen |= mask[j * step] == -kInfinity ? 0 : 1;
  }
  return seen != 0;
}

float Largest(const float* x, int64_t count) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -kInfinity);
  int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] = x[j + l] > lanes[l] ? x[j + l] : lanes[l];
  }
  for (; j < count; ++j) lanes[0] = x[j] > lanes[0] ? x[j] : lanes[0];
  return *std::max_element(lanes, lanes + kLanes);
}

// e^(x - largest) in place; their sum.
float ExpAndSum(float* x, int64_t count, float largest) {
  float lanes[kLanes] = {}, sum = 0;
  int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      x[j + l] = Exp(x[j + l] - largest);
      lanes[l] += x[j + l];
    }
  }
  for (; j < count; ++j) sum += x[j] = Exp(x[j] - largest);
  for (const float lane : lanes) sum += lane;
  return sum;
}

// Weights up to a factor, which is returned. A row that sees no key has weights of zero.
float Weigh(const AttentionRows& r, int64_t row, int64_t seen, int64_t keys) {
  float* x = r.scores + row * r.score_step;
  const bool alive = ScaleAndMask(r, row, x, seen);
  // Keys that come after the query count only where something is not finite: then they are summed
  // like all others.
  if (r.finite) std::fill(x + seen, x + keys, 0.0f);
  else
    for (int64_t j = seen; j < keys; ++j) x[j] = x[j] * r.scale - kInfinity;
  const int64_t count = r.finite ? seen : keys;
  const float largest = Largest(x, count);
  // NaN is no largest, but it is not hidden either.
  const auto has_nan = [&] { return std::any_of(x, x + count, [](float v) { return v != v; }); };
  if (!alive || (largest == -kInfinity && !has_nan())) {
    std::fill(x, x + keys, 0.0f);
    return r.hidden;
  }
  return 1.0f / ExpAndSum(x, count, largest);
}

void Attend(const AttentionRows& r) {
  const auto seen_by = [&](int64_t row) {
    return std::clamp<int64_t>(r.first_seen + row, 0, r.key_count);
  };
  const int64_t keys = r.finite ? seen_by(r.rows - 1) : r.key_count;
  Scores(r, keys);
  float* factors = r.factors;
  for (int64_t i = 0; i < r.rows; ++i) factors[i] = Weigh(r, i, seen_by(i), keys);
  int64_t done = 0;
  for (const AttentionRows::Part& part : r.values) {
    const int64_t depth = std::clamp<int64_t>(keys - done, 0, part.count);
    if (depth == 0 && done > 0) break;
    Product({r.scores + done, r.score_step}, {part.at, part.step}, {r.y, r.y_step}, r.rows,
            r.value_width, depth, done > 0);
    done += depth;
  }
  for (int64_t i = 0; i < r.rows; ++i) {
    for (int64_t d = 0; d < r.value_width; ++d) r.y[i * r.y_step + d] *= factors[i];
  }
}

// Panels [width][kPanel] of keys; the last is padded with zeros.
void PackKeys(const AttentionRows::Part* parts, int64_t count, int64_t width, float* to) {
  int64_t first = 0;  // key of the part at hand
  for (int64_t j = 0; j < (count + kPanel - 1) / kPanel * kPanel; ++j) {
    while (j < count && j - first >= parts->count) first += (parts++)->count;
    float* column = to + j / kPanel * kPanel * width + j % kPanel;
    if (j >= count) {
      for (int64_t d = 0; d < width; ++d) column[d * kPanel] = 0;
      continue;
    }
    const float* key = parts->at + (j - first) * parts->step;
    for (int64_t d = 0; d < width; ++d) column[d * kPanel] = key[d];
  }
}

bool AllFinite(const float* x, int64_t count) {
  int32_t special = 0;
  for (int64_t i = 0; i < count; ++i) special |= (AsInt(x[i]) & 0x7f800000) == 0x7f800000 ? 1 : 0;
  return special == 0;
}

}  // namespace

void FillAttention(Loops* loops) {
  loops->attend = Attend;
  loops->pack_keys = PackKeys;
  loops->key_panel = kPanel;
  loops->all_finite = AllFinite;
}

}  // namespace msrt::cpu::MSRT_CPU_ISA
