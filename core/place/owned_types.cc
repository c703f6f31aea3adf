#include "core/place/owned_types.h"

#include <algorithm>
#include <map>

#include "core/delegate/callee_types.h"
#include "ops/control.h"

namespace msrt {
namespace {

using Types = std::vector<Type>;

// Symbols from here on are open dims of the node's inputs. The module's symbols have a different
// meaning in each graph.
constexpr uint32_t kFirstOwnSymbol = 1u << 30;

bool IsDefinite(const Type& t) {
  return t.is_tensor() && t.rank_known && std::all_of(t.dims.begin(), t.dims.end(), [](int64_t d) {
           return IsKnown(d) || (IsSymbol(d) && SymbolOf(d) >= kFirstOwnSymbol);
         });
}

// Gives each open dim a symbol: equal symbols of the graph get the same one.
class OwnSymbols {
 public:
  Type Named(Type t) {
    for (int64_t& d : t.dims) {
      if (IsKnown(d)) continue;
      const uint32_t fresh = kFirstOwnSymbol + count_;
      const auto [it, added] =
          IsSymbol(d) ? known_.try_emplace(d, fresh) : std::make_pair(known_.end(), true);
      count_ += added ? 1 : 0;
      d = SymbolDim(added ? fresh : it->second);
    }
    return t;
  }

 private:
  uint32_t count_ = 0;
  std::map<int64_t, uint32_t> known_;  // by symbol of the module
};

class OwnedTypeInference {
 public:
  std::optional<Types> ResultsOf(const OfferedGraph& graph, const Node& node,
                                 FunctionRef<Type(ValueId)> type_of, int level) {
    const auto calls = CallsOf(node, type_of);
    if (!calls.ok() || calls->empty() || level == kMaxOwnedLevels) return std::nullopt;
    std::vector<Types> given;
    for (const GraphCall& call : *calls) {
      auto types = ResultsOf(graph, call, level);
      if (!types) return std::nullopt;
      given.push_back(*std::move(types));
    }
    const ControlShape shape = ShapeOfControl(node);
    if (shape.kind == ControlKind::kPartial) return std::nullopt;
    if (shape.carried + shape.scan_inputs == 0 && shape.kind != ControlKind::kLoop) {
      const bool same =
          std::all_of(given.begin(), given.end(), [&](const Types& t) { return t == given[0]; });
      return same ? std::optional(std::move(given[0])) : std::nullopt;
    }
    return Carried(node, shape, given.back(), type_of);
  }

 private:
  // The body must return carried values of the same types.
  static std::optional<Types> Carried(const Node& node, const ControlShape& shape,
                                      const Types& given, FunctionRef<Type(ValueId)> type_of) {
    if (given.size() != shape.body_extra_outputs() + shape.carried) return std::nullopt;
    Types carried;
    for (size_t i = 0; i < shape.carried; ++i) {
      carried.push_back(type_of(node.inputs[shape.leading + i]));
      if (!(carried.back() == given[shape.body_extra_outputs() + i])) return std::nullopt;
    }
    return carried;
  }

  std::optional<Types> ResultsOf(const OfferedGraph& caller, const GraphCall& call, int level) {
    const OfferedGraph* callee = caller.callee(call.graph);
    if (callee == nullptr || callee->graph().inputs.size() != call.arguments.size())
      return std::nullopt;
    GraphFacts facts(callee->graph());
    for (size_t i = 0; i < call.arguments.size(); ++i) {
      Type& type = facts.types[IndexOf(callee->graph().inputs[i])];
      if (!type.concrete()) type = call.arguments[i];
    }
    const auto infer_control = [&](const Node& node, const GraphFacts& now) {
      return ResultsOf(
                 *callee, node, [&](ValueId v) { return now.types[IndexOf(v)]; }, level + 1)
          .value_or(Types());
    };
    Types types = InferOutputTypes(callee->graph(), std::move(facts), callee->evaluator(),
                                   &nodes_left_, infer_control);
    if (types.size() != callee->graph().outputs.size() ||
        !std::all_of(types.begin(), types.end(), IsDefinite))
      return std::nullopt;
    return types;
  }

  size_t nodes_left_ = 100'000;  // nested double calls make the walk exponential
};

}  // namespace

std::optional<Types> OwnedResults(const OfferedGraph& graph, const Node& node,
                                  FunctionRef<Type(ValueId)> type_of) {
  return OwnedTypeInference().ResultsOf(graph, node, type_of, 0);
}

bool SizesFollow(const OfferedGraph& graph, const Node& node) {
  OwnSymbols symbols;
  std::map<ValueId, Type> types;
  for (ValueId v : node.inputs) {
    if (v != kNoValue && types.count(v) == 0)
      types.emplace(v, symbols.Named(graph.graph().value(v).type));
  }
  return OwnedResults(graph, node, [&](ValueId v) { return types.at(v); }).has_value();
}

}  // namespace msrt
