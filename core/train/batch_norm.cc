#include "core/train/batch_norm.h"

#include <algorithm>

#include "core/train/optimizer_node.h"
#include "ops/registry.h"

namespace msrt {
namespace {

constexpr std::string_view kTrainingForm = "BatchNormTraining";
constexpr size_t kScale = 1, kMean = 3, kVariance = 4;

Status AddStatistic(Module* module, ValueId constant, std::string_view what, Statistic* statistic) {
  const Value& value = module->main().value(constant);
  std::string name = value.name;
  const auto is_taken = [&](const StateSlot& slot) { return slot.name == name; };
  for (int i = 1; name.empty() || std::any_of(module->states.begin(), module->states.end(),
                                              is_taken);
       ++i) {
    name = StrCat(value.name.empty() ? what : value.name, ".", i);
  }
  statistic->constant = constant;
  statistic->slot = AddSlot(module, std::move(name), *value.constant, StateRole::kStatistic);
  return OkStatus();
}

double FloatOf(const Node& node, std::string_view name, double usual) {
  const AttrValue* value = node.attrs.Find(name);
  return value == nullptr ? usual : std::get<double>(*value);
}

}  // namespace

Result<std::vector<TrainedNorm>> AddStatistics(Module* module,
                                               const std::vector<Parameter>& parameters) {
  std::vector<TrainedNorm> norms;
  const Graph& graph = module->main();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!node.domain.empty() || node.op != "BatchNormalization") continue;
    const bool trained =
        std::any_of(parameters.begin(), parameters.end(),
                    [&](const Parameter& p) { return p.constant == node.inputs[kScale]; });
    if (!trained || graph.value(node.inputs[kMean]).constant == nullptr ||
        graph.value(node.inputs[kVariance]).constant == nullptr) {
      continue;
    }
    TrainedNorm norm;
    norm.node = n;
    norm.keep = FloatOf(node, "momentum", 0.9);
    MSRT_RETURN_IF_ERROR(AddStatistic(module, node.inputs[kMean], "mean", &norm.mean));
    MSRT_RETURN_IF_ERROR(AddStatistic(module, node.inputs[kVariance], "variance", &norm.variance));
    norms.push_back(norm);
  }
  return norms;
}

Result<BatchStatistics> SwitchToBatchStatistics(const std::vector<TrainedNorm>& norms, size_t first,
                                                Graph* graph) {
  BatchStatistics batch;
  for (const TrainedNorm& norm : norms) {
    Node& node = graph->nodes[first + norm.node];
    const Type type = Type::Tensor(graph->value(node.inputs[kScale]).type.dtype,
                                   graph->value(node.inputs[kScale]).type.dims);
    const std::string name = node.name;
    node.domain = "msrt";
    node.op = kTrainingForm;
    node.def = FindOp(node.domain, node.op);
    if (node.def == nullptr)
      return InternalError("node '", name, "': this build has no msrt.", kTrainingForm);
    node.version = node.def->version;
    node.inputs.resize(kMean);
    node.attrs = {{"epsilon", FloatOf(node, "epsilon", 1e-5)}};
    node.outputs.resize(1);
    node.outputs.push_back(graph->AddValue(StrCat(name, ".mean"), type));
    node.outputs.push_back(graph->AddValue(StrCat(name, ".variance"), type));
    batch.inputs.push_back(node.inputs[0]);
    batch.means.push_back(node.outputs[1]);
    batch.variances.push_back(node.outputs[2]);
  }
  return batch;
}

void UpdateStatistics(const Module& module, const std::vector<TrainedNorm>& norms,
                      const BatchStatistics& batch, ValueId skip, GradBuilder* builder) {
  GradBuilder& b = *builder;
  // Norms that keep the same part share a node.
  std::vector<bool> done(norms.size());
  for (size_t first = 0; first < norms.size(); ++first) {
    if (done[first]) continue;
    std::vector<ValueId> running, values;
    std::vector<int64_t> slots;
    for (size_t i = first; i < norms.size(); ++i) {
      if (norms[i].keep != norms[first].keep) continue;
      done[i] = true;
      // Elements of a channel in the batch, n, and n / (n - 1).
      const ValueId variance = batch.variances[i];
      const ValueId channels = b.Scalar(
          static_cast<double>(std::max<int64_t>(1, b.type(variance).dims[0])), variance);
      const ValueId count =
          b.Over(b.CastTo(b.Add("Size", {batch.inputs[i]}), variance), channels);
      const ValueId one = b.Scalar(1, variance);
      const ValueId unbiased = b.Over(count, b.Add("Max", {b.Minus(count, one), one}));
      for (const auto& [statistic, value] :
           {std::pair(norms[i].mean, batch.means[i]),
            std::pair(norms[i].variance, b.Times(variance, unbiased))}) {
        slots.push_back(statistic.slot);
        running.push_back(ReadSlot(module, statistic.slot, &b));
        values.push_back(value);
      }
    }
    std::vector<ValueId> inputs{skip};
    inputs.insert(inputs.end(), running.begin(), running.end());
    inputs.insert(inputs.end(), values.begin(), values.end());
    const std::vector<ValueId> updated = b.AddNode("msrt", "MovingAverage", std::move(inputs),
                                                   {{"decay", norms[first].keep}}, slots.size());
    for (size_t i = 0; i < slots.size(); ++i) WriteSlot(slots[i], updated[i], &b);
  }
}

}  // namespace msrt
