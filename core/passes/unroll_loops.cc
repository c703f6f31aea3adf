#include "core/passes/unroll_loops.h"

#include <algorithm>

#include "core/passes/call_graph.h"
#include "core/passes/graph_edit.h"
#include "core/passes/loop_shape.h"

namespace msrt {
namespace {

// Maximum number of nodes of all iterations. If iterations select their own constants, unrolling
// saves kernels as well as calls.
constexpr int64_t kMaxNodes = 64, kMaxNodesWithTables = 256;

ConstTensor OneElement(DType dtype, const Dims& dims, int64_t value) {
  const auto byte = static_cast<uint8_t>(value);
  return dtype == DType::kBool ? ConstTensor::Of<uint8_t>(dtype, dims, std::span(&byte, 1))
                               : ConstTensor::Of<int64_t>(dtype, dims, std::span(&value, 1));
}

// Whether the body takes a slice of a constant that the iteration number selects.
bool IndexesConstants(const Graph& body) {
  return std::any_of(body.nodes.begin(), body.nodes.end(), [&](const Node& node) {
    return node.domain.empty() && node.op == "Gather" &&
           body.value(node.inputs[0]).constant != nullptr && node.inputs[1] == body.inputs[0];
  });
}

class Unrolling {
 public:
  Unrolling(CopyBudget* budget, Module* module)
      : budget_(*budget), module_(*module), calls_(*module) {}

  bool Run() {
    bool changed = false;
    for (uint32_t g : calls_.callees_first()) changed = InGraph(g) || changed;
    return changed;
  }

 private:
  bool InGraph(uint32_t g) {
    const Graph& graph = module_.graphs[g];
    return EditControl(
        &module_, g, [&](uint32_t n, Node& node, const ControlShape& shape, GraphEdit& edit) {
          const int64_t trips = shape.kind == ControlKind::kLoop
                                    ? Trips(graph, node, module_.graphs[shape.graphs[0]])
                                    : 0;
          const bool unrolled =
              trips > 0 && IsWorthwhile(trips, g, n, shape) && TryInline(trips, node, shape, &edit);
          return unrolled ? EditResult::kReplaced : EditResult::kUnchanged;
        });
  }

  // Returns the number of iterations of a Loop, or 0 if it is not known.
  static int64_t Trips(const Graph& graph, const Node& node, const Graph& body) {
    const auto trips = ConstantNumber(graph, node.inputs[0]),
               begins = ConstantNumber(graph, node.inputs[1]);
    if (node.inputs[1] != kNoValue && (!begins || *begins == 0)) return 0;
    const auto goes_on = body.outputs[0] == body.inputs[1] ? std::optional<int64_t>(1)
                                                           : ConstantNumber(body, body.outputs[0]);
    if (!goes_on || (node.inputs[0] != kNoValue && (!trips || *trips <= 0))) return 0;
    if (*goes_on == 0) return 1;
    return trips.value_or(0);
  }

  bool IsWorthwhile(int64_t trips, uint32_t g, uint32_t n, const ControlShape& shape) const {
    const Graph& body = module_.graphs[shape.graphs[0]];
    if (trips == 1 && calls_.OwnsGraphs(g, n, shape)) return true;
    if (!std::all_of(body.nodes.begin(), body.nodes.end(), IsPure)) return false;
    const auto scanned = static_cast<int64_t>(body.outputs.size() - 1 - shape.carried);
    const int64_t each = static_cast<int64_t>(body.nodes.size()) + scanned;
    const int64_t max_nodes =
        std::min<int64_t>(IndexesConstants(body) ? kMaxNodesWithTables : kMaxNodes,
                          static_cast<int64_t>(budget_.nodes));
    return each == 0 ? trips <= max_nodes : trips <= max_nodes / each;
  }

  bool TryInline(int64_t trips, const Node& node, const ControlShape& shape, GraphEdit* edit) {
    const Graph& body = module_.graphs[shape.graphs[0]];
    const size_t before = edit->appended();
    const auto give_up = [&] {
      edit->Undo(before);
      return false;
    };
    std::vector<ValueId> carried(
        node.inputs.begin() + 2,
        node.inputs.begin() + static_cast<ptrdiff_t>(shape.captured_from()));
    std::vector<std::vector<ValueId>> slices(body.outputs.size() - 1 -
                                             shape.carried);  // by scanned result
    for (int64_t i = 0; i < trips; ++i) {
      std::vector<ValueId> arguments = {LoopArgument(body, 0, DType::kI64, i, edit),
                                        LoopArgument(body, 1, DType::kBool, 1, edit)};
      arguments.insert(arguments.end(), carried.begin(), carried.end());
      arguments.insert(arguments.end(),
                       node.inputs.begin() + static_cast<ptrdiff_t>(shape.captured_from()),
                       node.inputs.end());
      const auto results = edit->Inline(body, arguments);
      if (!results) return give_up();
      carried.assign(results->begin() + 1,
                     results->begin() + 1 + static_cast<ptrdiff_t>(shape.carried));
      for (size_t s = 0; s < slices.size(); ++s)
        slices[s].push_back((*results)[1 + shape.carried + s]);
    }
    std::vector<ValueId> results = carried;
    for (size_t s = 0; s < slices.size(); ++s) {
      const size_t output = shape.carried + s;
      const bool wanted = output < node.outputs.size() && node.outputs[output] != kNoValue;
      results.push_back(wanted ? Stacked(slices[s], node.name, edit) : kNoValue);
      if (wanted && results.back() == kNoValue) return give_up();
    }
    const size_t copied = edit->appended() - before;
    if (!edit->Replace(node, results)) return give_up();
    if (trips > 1) budget_.nodes -= std::min(budget_.nodes, copied);
    return true;
  }

  // Returns a constant for the iteration or condition that a Loop passes to its body, with the dims
  // that the body declares.
  static ValueId LoopArgument(const Graph& body, size_t input, DType dtype, int64_t value,
                              GraphEdit* edit) {
    const Value& declared = body.value(body.inputs[input]);
    const Dims dims = declared.type.dims == Dims{1} ? Dims{1} : Dims{};
    return edit->graph().AddConstant(declared.name, OneElement(dtype, dims, value));
  }

  static ValueId Stacked(const std::vector<ValueId>& slices, const std::string& name,
                         GraphEdit* edit) {
    std::vector<ValueId> rows;
    for (ValueId slice : slices) {
      // The run does not scan elements that share bytes.
      if (!edit->graph().value(slice).type.is_tensor() ||
          BitsOf(edit->graph().value(slice).type.dtype) < 8)
        return kNoValue;
      rows.push_back(edit->Add("Unsqueeze", StrCat(name, "/slice"), {slice},
                               {{"axes", std::vector<int64_t>{0}}}));
      if (rows.back() == kNoValue) return kNoValue;
    }
    return rows.size() == 1 ? rows[0]
                            : edit->Add("Concat", StrCat(name, "/slices"), std::move(rows),
                                        {{"axis", int64_t{0}}});
  }

  CopyBudget& budget_;
  Module& module_;
  const CallGraph calls_;
};

}  // namespace

Result<bool> UnrollLoops(const PassContext& context, Module* module) {
  CopyBudget own;
  return Unrolling(context.copying != nullptr ? context.copying : &own, module).Run();
}

}  // namespace msrt
