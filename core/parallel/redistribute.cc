#include "core/parallel/redistribute.h"

#include <set>

namespace msrt {
namespace {

void SubtractOne(const Box& box, const Box& hole, std::vector<Box>* out) {
  const Box common = Intersect(box, hole);
  if (common.empty()) {
    out->push_back(box);
    return;
  }
  Box rest = box;
  for (int d = 0; d < box.rank(); ++d) {
    for (const Interval side :
         {Interval{rest[d].begin, common[d].begin}, Interval{common[d].end, rest[d].end}}) {
      if (side.empty()) continue;
      out->push_back(rest);
      out->back()[d] = side;
    }
    rest[d] = common[d];
  }
}

}  // namespace

int RankTransfers::messages_sent() const {
  std::set<int> ranks;
  for (const PeerBox& s : sends) ranks.insert(s.rank);
  return static_cast<int>(ranks.size());
}

std::vector<Box> Subtract(const Box& box, std::span<const Box> without) {
  std::vector<Box> parts;
  if (!box.empty()) parts.push_back(box);
  for (const Box& hole : without) {
    if (hole.empty()) continue;
    std::vector<Box> rest;
    for (const Box& part : parts) SubtractOne(part, hole, &rest);
    parts = std::move(rest);
  }
  return parts;
}

Result<std::vector<RankTransfers>> PlanRedistribution(std::span<const Box> owned,
                                                      std::span<const std::vector<Box>> required) {
  if (owned.size() != required.size())
    return InvalidArgument(owned.size(), " ranks own, ", required.size(), " require");
  std::vector<RankTransfers> plan(owned.size());
  for (size_t r = 0; r < owned.size(); ++r) {
    std::vector<Box> there{owned[r]};
    for (const Box& box : required[r]) {
      for (size_t q = 0; q < owned.size(); ++q) {
        if (q == r || box.empty() || owned[q].empty()) continue;
        for (const Box& part : Subtract(Intersect(box, owned[q]), there)) {
          plan[r].receives.push_back({static_cast<int>(q), part});
          plan[q].sends.push_back({static_cast<int>(r), part});
          there.push_back(part);
        }
      }
      if (const std::vector<Box> missing = Subtract(box, there); !missing.empty())
        return InvalidArgument("rank ", r, " requires ", missing[0], ", which no rank owns");
    }
  }
  return plan;
}

}  // namespace msrt
