#include "tools/msconvert/weights.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/units.h"
#include "core/graph/constants.h"
#include "ops/node_view.h"
#include "ops/registry.h"
#include "tools/msconvert/quantize.h"

namespace msrt {
namespace {

constexpr int64_t kLeastElements = 4096;
constexpr int64_t kUsualInt4Block = 32;
constexpr size_t kWorstShown = 5;

// The roles of a weight's axes in the node that uses it.
struct Role {
  int output_axis = 0, input_axis = 0;
};
using Roles = std::vector<std::optional<Role>>;  // by value

class RoleFinder {
 public:
  explicit RoleFinder(const Graph& graph) : graph_(graph), roles_(graph.value_count()) {}

  // Walks backwards, so that the uses of a Transpose's result are known before the Transpose.
  Roles Find() {
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      if (node->def != nullptr) Look(*node);
    }
    return std::move(roles_);
  }

 private:
  void Look(const Node& node) {
    const NodeView view(graph_, node);
    const OpView& op = view.op();
    const std::string_view name = node.domain == "msrt" && node.op.starts_with("Fused")
                                      ? std::string_view(node.op).substr(5)
                                      : node.op;
    if (name == "MatMul" || name == "Gemm") {
      const bool transposes = node.op != "MatMul";
      const bool trans_a = transposes && op.Int("transA") != 0,
                 trans_b = transposes && op.Int("transB") != 0;
      Claim(node, 0, trans_a ? -1 : -2, trans_a ? -2 : -1);
      Claim(node, 1, trans_b ? -2 : -1, trans_b ? -1 : -2);
    } else if (name == "Conv") {
      Claim(node, 1, 0, 1);
    } else if (name == "ConvTranspose") {
      Claim(node, 1, 1, 0);
    } else if (name == "Gather") {
      const auto axis = static_cast<int>(op.Int("axis"));
      if (axis == 0) Claim(node, 0, 0, -1);
    } else if (name == "RNN" || name == "GRU" || name == "LSTM") {
      Claim(node, 1, 1, 2);
      Claim(node, 2, 1, 2);
    } else if (name == "Transpose" && roles_[IndexOf(node.outputs[0])]) {
      const Role& role = *roles_[IndexOf(node.outputs[0])];
      const std::span<const int64_t> perm = op.Ints("perm");
      const int rank = graph_.value(node.outputs[0]).type.rank();
      const auto before = [&](int axis) {
        return perm.empty() ? rank - 1 - axis : static_cast<int>(perm[static_cast<size_t>(axis)]);
      };
      Claim(node, 0, before(role.output_axis), before(role.input_axis));
    }
  }

  // Negative axes count from the end.
  void Claim(const Node& node, size_t input, int output_axis, int input_axis) {
    const ValueId v = input < node.inputs.size() ? node.inputs[input] : kNoValue;
    if (v == kNoValue || !graph_.value(v).type.concrete()) return;
    const int rank = graph_.value(v).type.rank();
    if (rank < 2) return;
    const auto from_front = [&](int axis) { return axis < 0 ? axis + rank : axis; };
    const Role role{from_front(output_axis), from_front(input_axis)};
    if (role.output_axis < rank && role.input_axis < rank && role.output_axis != role.input_axis)
      roles_[IndexOf(v)] = role;
  }

  const Graph& graph_;
  Roles roles_;
};

// Returns the node that restores the value from the small tensor.
Node Widening(const std::string& name, SmallTensor small, const Grouping& grouping, Graph* graph) {
  Node node;
  const std::string_view stored = DTypeName(small.data.dtype);
  node.op = small.scale ? "DequantizeLinear" : "Cast";
  node.name = StrCat(name, "/", node.op);
  node.def = FindOp("", node.op);
  node.inputs.push_back(graph->AddConstant(StrCat(name, "/", stored), std::move(small.data)));
  if (!small.scale) {
    node.attrs.Set("to", DType::kF32);
    return node;
  }
  node.inputs.push_back(graph->AddConstant(StrCat(name, "/scale"), *std::move(small.scale)));
  node.attrs.Set("axis", static_cast<int64_t>(grouping.axis));
  if (grouping.block != 0) node.attrs.Set("block_size", grouping.block);
  return node;
}

Grouping GroupingFor(const WeightStorage& storage, const Dims& dims, const Role& role) {
  // Rows shorter than one block have one scale per channel, which is finer for the same bytes.
  const bool blocks = storage.block != 0 && dims[role.input_axis] >= storage.block;
  return blocks ? Grouping{role.input_axis, storage.block} : Grouping{role.output_axis, 0};
}

void StoreGraph(const WeightStorage& storage, Graph* graph, WeightReport* report) {
  const Roles roles = RoleFinder(*graph).Find();
  std::vector<Node> widenings;
  for (uint32_t v = 0; v < roles.size(); ++v) {
    const std::shared_ptr<const ConstTensor> weight = graph->value(ValueId(v)).constant;
    if (!roles[v] || weight == nullptr || weight->dtype != DType::kF32 ||
        weight->dims.elements() < kLeastElements)
      continue;
    const std::string name = graph->value(ValueId(v)).name;
    const Grouping grouping = GroupingFor(storage, weight->dims, *roles[v]);
    auto small = StoreSmall(*weight, storage.dtype, grouping);
    if (!small.ok()) {
      report->left_alone.emplace_back(name, small.status().message());
      continue;
    }
    report->stored.push_back({name, weight->type(), small->error});
    widenings.push_back(Widening(name, *std::move(small), grouping, graph));
    widenings.back().outputs = {ValueId(v)};
    graph->value(ValueId(v)).constant = nullptr;
  }
  graph->nodes.insert(graph->nodes.begin(), std::make_move_iterator(widenings.begin()),
                      std::make_move_iterator(widenings.end()));
}

}  // namespace

Result<WeightStorage> ParseWeightStorage(const std::string& name, int64_t block) {
  WeightStorage storage;
  if (name == "f16") storage.dtype = DType::kF16;
  else if (name == "bf16") storage.dtype = DType::kBF16;
  else if (name == "int8") storage.dtype = DType::kI8;
  else if (name == "int4") storage.dtype = DType::kI4;
  else return InvalidArgument("--weights ", name, ": must be f16, bf16, int8 or int4");
  if (storage.dtype != DType::kI8 && storage.dtype != DType::kI4) {
    if (block >= 0)
      return InvalidArgument("--weights-block is for int8 and int4; ", name, " has no scales");
    return storage;
  }
  storage.block = block >= 0 ? block : storage.dtype == DType::kI4 ? kUsualInt4Block : 0;
  return storage;
}

Result<WeightReport> StoreWeights(const WeightStorage& storage, Module* module) {
  WeightReport report;
  report.bytes_before = ConstantBytes(*module);
  for (Graph& graph : module->graphs) StoreGraph(storage, &graph, &report);
  report.bytes_after = ConstantBytes(*module);
  std::stable_sort(report.stored.begin(), report.stored.end(),
                   [](const auto& a, const auto& b) { return a.error > b.error; });
  return report;
}

std::string WeightReport::Text() const {
  std::string out = StrCat("weights    ", stored.size(),
                           " tensors stored small: ", BytesText(static_cast<double>(bytes_before)),
                           " become ", BytesText(static_cast<double>(bytes_after)), "\n");
  for (size_t i = 0; i < std::min(kWorstShown, stored.size()); ++i) {
    StrAppend(&out, i == 0 ? "largest errors, relative to each tensor's largest element:\n" : "");
    char error[16];
    std::snprintf(error, sizeof error, "%.2g", stored[i].error);
    StrAppend(&out, "    ", error, "  ", stored[i].name, " ", stored[i].type, "\n");
  }
  for (const auto& [name, reason] : left_alone)
    StrAppend(&out, "    ", name, " stays as it is: ", reason, "\n");
  return out;
}

std::string WeightReport::Json() const {
  nlohmann::json tensors = nlohmann::json::array(), left = nlohmann::json::array();
  for (const StoredWeight& w : stored)
    tensors.push_back({{"name", w.name}, {"type", StrCat(w.type)}, {"error", w.error}});
  for (const auto& [name, reason] : left_alone)
    left.push_back({{"name", name}, {"reason", reason}});
  const nlohmann::json all = {{"bytes_before", bytes_before},
                              {"bytes_after", bytes_after},
                              {"stored", tensors},
                              {"left_alone", left}};
  return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace msrt
