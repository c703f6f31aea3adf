#include "core/image/executors/piece_counter.h"

namespace msrt {

void PieceCounter::Add(const RequiredBoxes& required) {
  const Graph& graph = runner_.graph();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!required.pieces[n]) continue;
    const ResolvedSpace* space = runner_.spaces().of_node(n);
    const bool whole = space == nullptr || required.pieces[n]->rank() == 0;
    std::vector<Box> boxes;
    if (!whole) boxes = OutputBoxes(*space, *required.pieces[n]);
    for (size_t o = 0; o < graph.nodes[n].outputs.size(); ++o) {
      const ValueId v = graph.nodes[n].outputs[o];
      if (v == kNoValue) continue;
      const Box box = whole ? Box::Whole(runner_.type(v).dims) : boxes[o];
      if (box.empty()) continue;
      Computed& value = values_[IndexOf(v)];
      value.elements += static_cast<double>(box.volume());
      value.hull = value.hull ? Hull(*value.hull, box) : box;
    }
  }
}

double PieceCounter::computed() const {
  double elements = 0;
  for (const Computed& v : values_) elements += v.elements;
  return elements;
}

double PieceCounter::whole() const {
  double elements = 0;
  for (const Computed& v : values_) elements += v.hull ? static_cast<double>(v.hull->volume()) : 0;
  return elements;
}

std::vector<RowCount> PieceCounter::Rows(const std::function<int(ValueId)>& dim_of) const {
  std::vector<RowCount> counts;
  for (uint32_t v = 0; v < values_.size(); ++v) {
    const Computed& value = values_[v];
    if (!value.hull) continue;
    const int dim = dim_of(ValueId(v));
    RowCount count{ValueId(v)};
    const int64_t hull = dim < 0 ? 1 : (*value.hull)[dim].size();
    const double row = static_cast<double>(value.hull->volume() / hull);
    count.rows = dim < 0 ? 1 : runner_.type(ValueId(v)).dims[dim];
    count.computed = static_cast<int64_t>(value.elements / row + 0.5);
    count.recomputed = std::max<int64_t>(0, count.computed - hull);
    counts.push_back(count);
  }
  return counts;
}

}  // namespace msrt
