#include "core/parallel/batch_values.h"

#include <algorithm>

namespace msrt {
namespace {

constexpr int64_t kMoreSamples = 7;

Status Propagate(const Graph& graph, std::span<const Dims> typical, int64_t samples,
                 const Evaluator& evaluator, GraphFacts* facts) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    Type& type = facts->types[IndexOf(graph.inputs[i])];
    if (type.concrete()) continue;
    if (!type.rank_known || type.rank() == 0 || i >= typical.size() ||
        typical[i].rank() != type.rank())
      return InvalidArgument("input '", graph.value(graph.inputs[i]).name, "' is ", type,
                             "; its typical dims must be given");
    const bool has_samples = !IsKnown(type.dims[0]);
    type.dims = typical[i];
    if (has_samples) type.dims[0] = samples;
  }
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    MSRT_RETURN_IF_ERROR(PropagateNode(graph, n, evaluator, facts));
  return OkStatus();
}

bool IsSameData(const ConstTensor& a, const ConstTensor& b) {
  return a.bytes.size() == b.bytes.size() &&
         std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin());
}

}  // namespace

Result<BatchValues> BatchValues::Find(const Graph& graph, std::span<const Dims> typical,
                                      const Evaluator& evaluator) {
  BatchValues values(graph);
  MSRT_RETURN_IF_ERROR(Propagate(graph, typical, kSamples, evaluator, &values.facts_));
  MSRT_RETURN_IF_ERROR(Propagate(graph, typical, kMoreSamples, evaluator, &values.more_));
  MSRT_RETURN_IF_ERROR(values.Compare(graph));
  return values;
}

Status BatchValues::Compare(const Graph& graph) {
  dims_.resize(graph.value_count());
  counts_.resize(graph.value_count());
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const Type &a = facts_.types[i], &b = more_.types[i];
    const std::string& name = graph.value(ValueId(i)).name;
    if (!a.is_tensor()) continue;
    if (!a.concrete() || !b.concrete() || a.rank() != b.rank())
      return Unsupported("the size of '", name, "' (", graph.value(ValueId(i)).type,
                         ") depends on data, so its batch cannot be divided");
    // Floats are computed from counts of all samples (BatchSplitter::AddCount).
    if (!IsFloat(a.dtype) && facts_.known[i] != nullptr && more_.known[i] != nullptr)
      counts_[i] = !IsSameData(*facts_.known[i], *more_.known[i]);
    for (int d = 0; d < a.rank(); ++d) {
      if (a.dims[d] == b.dims[d]) continue;
      const int64_t multiple = a.dims[d] / kSamples;
      if (a.dims[d] % kSamples != 0 || b.dims[d] != multiple * kMoreSamples || dims_[i].follows())
        return Unsupported("'", name, "' is ", a, " for ", kSamples, " samples and ", b, " for ",
                           kMoreSamples, ": not one dim that grows with the batch");
      dims_[i] = {d, multiple};
    }
  }
  return OkStatus();
}

Result<std::vector<int64_t>> BatchValues::PerSample(ValueId v) const {
  const ConstTensor &a = *facts_.known[IndexOf(v)], &b = *more_.known[IndexOf(v)];
  if (a.dtype != DType::kI64) return Unsupported("a count of type ", a.dtype, ", not i64");
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < a.dims.elements(); ++i) {
    const int64_t x = a.As<int64_t>()[static_cast<size_t>(i)],
                  y = b.As<int64_t>()[static_cast<size_t>(i)], each = x / kSamples;
    if (x % kSamples != 0 || y != each * kMoreSamples)
      return Unsupported("a number that is ", x, " for ", kSamples, " samples and ", y, " for ",
                         kMoreSamples, " does not follow the batch");
    counts.push_back(each);
  }
  return counts;
}

}  // namespace msrt
