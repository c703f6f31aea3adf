#include "ops/registry.h"

#include <span>
#include <string>
#include <unordered_map>

#include "ops/families.h"

namespace msrt {
namespace {

// The one list of families.
constexpr std::span<const OpDef> (*kFamilies[])() = {
    UnaryOps,
    UnaryGradOps,
    BinaryOps,
    MatMulOps,
    ConvOps,
    ConvGradOps,
    PoolOps,
    PoolGradOps,
    ResizeOps,
    ResizeGradOps,
    NormalizationOps,
    NormalizationGradOps,
    SoftmaxOps,
    SoftmaxGradOps,
    ReduceOps,
    ReduceGradOps,
    SelectOps,
    AttentionOps,
    ShapeOps,
    GenerateOps,
    MovementOps,
    PadOps,
    GatherOps,
    StateOps,
    ExchangeOps,
    CollectiveOps,
    QuantizationOps,
    QuantizedProductOps,
    RecurrentOps,
    FilterOps,
    SuppressionOps,
    LossOps,
    LossGradOps,
    SamplingOps,
    UnpoolOps,
    DeformConvOps,
    LocalResponseOps,
    SignalOps,
    SignalTableOps,
    EinsumOps,
    DeterminantOps,
    DeterminantGradOps,
    RotaryOps,
    RandomOps,
    MomentsOps,
    OptimizerOps,
    TrainingOptimizerOps,
    NgramOps,
    TreeEnsembleOps,
    ControlOps,
    ListOps,
};

std::string Key(std::string_view domain, std::string_view name) {
  std::string key(domain);
  key += '.';
  key += name;
  return key;
}

using Table = std::unordered_map<std::string, const OpDef*>;
Table BuildTable() {
  Table table;
  for (auto family : kFamilies) {
    for (const OpDef& def : family()) {
      const bool is_new = table.emplace(Key(def.domain, def.name), &def).second;
      MSRT_CHECK(is_new && def.infer != nullptr);
    }
  }
  return table;
}

}  // namespace

const OpDef* FindOp(std::string_view domain, std::string_view name) {
  static const Table table = BuildTable();
  const auto it = table.find(Key(domain, name));
  return it == table.end() ? nullptr : it->second;
}

Status OpSet::Add(std::shared_ptr<const OpDef> def) {
  std::string key = Key(def->domain, def->name);
  if (FindOp(def->domain, def->name) != nullptr)
    return InvalidArgument("op ", key, " is the library's own and cannot be defined again");
  const bool is_new = ops_.emplace(std::move(key), def).second;
  if (!is_new)
    return InvalidArgument("op ", Key(def->domain, def->name),
                           " is defined already; a further kernel for it leaves its meaning null");
  return OkStatus();
}

const OpDef* OpSet::Find(std::string_view domain, std::string_view name) const {
  const auto it = ops_.find(Key(domain, name));
  return it == ops_.end() ? nullptr : it->second.get();
}

const OpDef* FindOp(std::string_view domain, std::string_view name, const OpSet* ops) {
  const OpDef* def = FindOp(domain, name);
  return def == nullptr && ops != nullptr ? ops->Find(domain, name) : def;
}

void ForEachOp(const std::function<void(const OpDef&)>& visit) {
  for (auto family : kFamilies) {
    for (const OpDef& def : family()) visit(def);
  }
}

}  // namespace msrt
