#include "core/parallel/layout.h"

#include <algorithm>
#include <cmath>

namespace msrt {
namespace {

Status CheckCuts(const Dims& dims, const DimCuts& c, std::vector<bool>* is_cut) {
  if (c.at.size() < 2) return InvalidArgument("an axis of a grid has no parts");
  if (c.dim == -1) return OkStatus();
  if (c.dim < 0 || c.dim >= dims.rank() || (*is_cut)[static_cast<size_t>(c.dim)])
    return InvalidArgument("dim ", c.dim, " of a tensor of rank ", dims.rank(),
                           " does not exist or is cut twice");
  (*is_cut)[static_cast<size_t>(c.dim)] = true;
  if (c.at.front() != 0 || c.at.back() != dims[c.dim] || !std::is_sorted(c.at.begin(), c.at.end()))
    return InvalidArgument("the cuts of dim ", c.dim, " must ascend from 0 to ", dims[c.dim]);
  return OkStatus();
}

}  // namespace

RankLayout RankLayout::Whole(const Dims& dims, int ranks) {
  return {dims, std::vector<Box>(static_cast<size_t>(ranks), Box::Whole(dims))};
}

Result<RankLayout> RankLayout::Grid(const Dims& dims, std::span<const DimCuts> cuts) {
  std::vector<Box> boxes{Box::Whole(dims)};
  std::vector<bool> is_cut(dims.size());
  for (const DimCuts& c : cuts) {
    MSRT_RETURN_IF_ERROR(CheckCuts(dims, c, &is_cut));
    std::vector<Box> finer;
    for (const Box& box : boxes) {
      for (size_t p = 0; p + 1 < c.at.size(); ++p) {
        finer.push_back(box);
        if (c.dim >= 0) finer.back()[c.dim] = {c.at[p], c.at[p + 1]};
      }
    }
    boxes = std::move(finer);
  }
  return RankLayout(dims, std::move(boxes));
}

std::vector<int64_t> CutsByShares(int64_t extent, std::span<const double> shares, int64_t granule) {
  double total = 0, sum = 0;
  for (double s : shares) total += s;
  std::vector<int64_t> at{0};
  const double granules = static_cast<double>(extent) / static_cast<double>(granule);
  for (double s : shares) {
    sum += s;
    const auto cut = static_cast<int64_t>(std::llround(granules * (sum / total))) * granule;
    at.push_back(std::clamp(cut, at.back(), extent));
  }
  at.back() = extent;
  return at;
}

}  // namespace msrt
