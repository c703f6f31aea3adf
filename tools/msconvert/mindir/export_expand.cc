#include "tools/msconvert/mindir/export_expand.h"

#include <algorithm>

#include "ops/builder.h"
#include "ops/node_view.h"
#include "ops/validate.h"

namespace msrt::mindir_export {
namespace {

constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kInitialH = 5;
using Ints = std::vector<int64_t>;

// Writes nodes without a check in every line: the first error sticks.
class Writer {
 public:
  Writer(Graph* graph, std::string prefix)
      : builder_(graph), graph_(graph), prefix_(std::move(prefix)) {}

  ValueId Op(std::string_view op, std::vector<ValueId> inputs, AttrList attrs = {}) {
    if (!status_.ok()) return kNoValue;
    auto value =
        builder_.Add(op, StrCat(prefix_, "/", op, count_++), std::move(inputs), std::move(attrs));
    if (value.ok()) return *value;
    status_ = std::move(value).status();
    return kNoValue;
  }
  std::vector<ValueId> Scan(std::vector<ValueId> inputs, AttrList attrs,
                            std::vector<Type> results) {
    const size_t count = results.size();
    if (!status_.ok()) return std::vector<ValueId>(count, kNoValue);
    auto values = builder_.Add("", "Scan", StrCat(prefix_, "/Scan"), std::move(inputs),
                               std::move(attrs), count, std::move(results));
    if (values.ok()) return *values;
    status_ = std::move(values).status();
    return std::vector<ValueId>(count, kNoValue);
  }
  ValueId Part(ValueId x, int64_t axis, int64_t begin, int64_t end) {
    return Op("Slice", {x}, {{"starts", Ints{begin}}, {"ends", Ints{end}}, {"axes", Ints{axis}}});
  }
  ValueId Number(float value) {
    return graph_->AddConstant(prefix_, ConstTensor::Floats({}, std::span(&value, 1)));
  }
  Status status() const { return status_; }

 private:
  GraphBuilder builder_;
  Graph* graph_;
  std::string prefix_;
  int count_ = 0;
  Status status_;
};

struct Layer {
  int64_t gates, hidden, directions, steps, batch;
  bool gru, linear_before_reset, batch_first, backwards;
};

// Returns whether the layer has only the features that the loop below computes.
bool IsUsual(const OpView& op) {
  const bool gru = op.op() == "GRU";
  if ((!gru && op.op() != "RNN") || op.input(kX).dtype != DType::kF32 || op.has_input(kLengths) ||
      op.Has("clip"))
    return false;
  if (const AttrValue* given = op.attrs().Find("activations")) {
    for (size_t i = 0; const std::string& name : std::get<std::vector<std::string>>(*given)) {
      const std::string_view usual = gru && i++ % 2 == 0 ? "Sigmoid" : "Tanh";
      if (name != usual) return false;
    }
  }
  return op.input(kX).concrete() && op.input(kW).concrete() && op.input(kR).concrete();
}

Layer LayerOf(const OpView& op) {
  const bool batch_first = op.Int("layout") == 1, gru = op.op() == "GRU";
  const Dims& x = op.input(kX).dims;
  return {.gates = gru ? 3 : 1,
          .hidden = op.input(kR).dims[2],
          .directions = op.input(kR).dims[0],
          .steps = x[batch_first ? 1 : 0],
          .batch = x[batch_first ? 0 : 1],
          .gru = gru,
          .linear_before_reset = gru && op.Int("linear_before_reset") != 0,
          .batch_first = batch_first,
          .backwards = op.String("direction") == "reverse"};
}

// Returns the graph of one step. Its inputs are the state, the input's contribution to each gate,
// then the state's transposed weights and its biases.
Result<Graph> Step(const Layer& l, const std::string& name) {
  const int64_t h = l.hidden, all = l.gates * h;
  Graph body;
  body.name = name;
  const auto tensor = [](Dims dims) { return Type::Tensor(DType::kF32, dims); };
  const ValueId state = body.AddInput("state", tensor({l.batch, h})),
                given = body.AddInput("given", tensor({l.batch, all}));
  const ValueId weights = body.AddInput("weights", tensor({h, all})),
                bias = body.AddInput("bias", tensor({all}));
  Writer w(&body, name);
  ValueId next;
  if (l.gru) {
    // The order of gates is update, reset, hidden.
    const ValueId both = w.Op(
        "Add", {w.Op("MatMul", {state, w.Part(weights, 1, 0, 2 * h)}), w.Part(bias, 0, 0, 2 * h)});
    const ValueId open = w.Op("Sigmoid", {w.Op("Add", {both, w.Part(given, 1, 0, 2 * h)})});
    const ValueId update = w.Part(open, 1, 0, h), reset = w.Part(open, 1, h, 2 * h);
    const ValueId own = w.Part(weights, 1, 2 * h, all), shift = w.Part(bias, 0, 2 * h, all);
    const ValueId memory =
        l.linear_before_reset
            ? w.Op("Mul", {reset, w.Op("Add", {w.Op("MatMul", {state, own}), shift})})
            : w.Op("Add", {w.Op("MatMul", {w.Op("Mul", {reset, state}), own}), shift});
    const ValueId fresh = w.Op("Tanh", {w.Op("Add", {memory, w.Part(given, 1, 2 * h, all)})});
    const ValueId kept = w.Op("Mul", {update, state}),
                  taken = w.Op("Mul", {w.Op("Sub", {w.Number(1), update}), fresh});
    next = w.Op("Add", {taken, kept});
  } else {
    next =
        w.Op("Tanh", {w.Op("Add", {w.Op("Add", {w.Op("MatMul", {state, weights}), bias}), given})});
  }
  MSRT_RETURN_IF_ERROR(w.status());
  body.outputs = {next, next};
  return body;
}

class Expansion {
 public:
  Expansion(Module* module, uint32_t graph) : module_(*module), graph_(graph) {}

  // Rewrites the nodes of the graph with the layers expanded.
  Status Run(std::vector<ExpandedNode>* expanded) {
    std::vector<Node> nodes = std::move(graph().nodes);
    graph().nodes.clear();
    for (Node& node : nodes) {
      const NodeView view(graph(), node);
      if (node.def == nullptr || !node.domain.empty() || !IsUsual(view.op())) {
        graph().nodes.push_back(std::move(node));
        continue;
      }
      const size_t first = graph().nodes.size();
      MSRT_RETURN_IF_ERROR(Expand(node, LayerOf(view.op())));
      expanded->push_back({graph_, first, graph().nodes.size(), std::move(node)});
    }
    return OkStatus();
  }

 private:
  Graph& graph() { return module_.graphs[graph_]; }

  static bool Given(const Node& node, size_t i) {
    return i < node.inputs.size() && node.inputs[i] != kNoValue;
  }
  static ValueId Turned(Writer& w, ValueId x, Ints perm) {
    return w.Op("Transpose", {x}, {{"perm", std::move(perm)}});
  }
  // Returns the part of one direction of a tensor whose first axis is that of directions.
  static ValueId Own(Writer& w, ValueId x, int64_t direction) {
    return w.Op("Squeeze", {w.Part(x, 0, direction, direction + 1)}, {{"axes", Ints{0}}});
  }
  ValueId Zeros(const Dims& dims) {
    const std::vector<float> zeros(static_cast<size_t>(dims.elements()));
    return graph().AddConstant("zeros", ConstTensor::Floats(dims, zeros));
  }

  struct Scanned {
    ValueId last, all;  // with an axis of directions
  };
  Scanned Direction(Writer& w, const Node& node, const Layer& l, ValueId x, GraphRef step,
                    int64_t d) {
    const int64_t rows = l.gates * l.hidden, backwards = l.backwards || d == 1 ? 1 : 0;
    const ValueId biases = Given(node, kB) ? Own(w, node.inputs[kB], d) : Zeros({2 * rows});
    ValueId state = Zeros({l.batch, l.hidden});
    if (Given(node, kInitialH)) {
      state = Own(
          w, l.batch_first ? Turned(w, node.inputs[kInitialH], {1, 0, 2}) : node.inputs[kInitialH],
          d);
    }
    const ValueId product = w.Op("MatMul", {x, Turned(w, Own(w, node.inputs[kW], d), {1, 0})});
    const ValueId given = w.Op("Add", {product, w.Part(biases, 0, 0, rows)});
    const ValueId weights = Turned(w, Own(w, node.inputs[kR], d), {1, 0});
    const auto scanned = w.Scan({state, given, weights, w.Part(biases, 0, rows, 2 * rows)},
                                {{"body", step},
                                 {"num_scan_inputs", int64_t{1}},
                                 {"carried", int64_t{1}},
                                 {"scan_input_directions", Ints{backwards}},
                                 {"scan_output_directions", Ints{backwards}}},
                                {Type::Tensor(DType::kF32, {l.batch, l.hidden}),
                                 Type::Tensor(DType::kF32, {l.steps, l.batch, l.hidden})});
    return {w.Op("Unsqueeze", {scanned[0]}, {{"axes", Ints{0}}}),
            w.Op("Unsqueeze", {scanned[1]}, {{"axes", Ints{1}}})};
  }

  Status Expand(const Node& node, const Layer& l) {
    const std::string name = node.name.empty() ? node.op : node.name;
    MSRT_ASSIGN_OR_RETURN(Graph body, Step(l, name + "_step"));
    module_.graphs.push_back(std::move(body));
    const GraphRef step{static_cast<uint32_t>(module_.graphs.size() - 1)};
    Writer w(&graph(), name);
    const ValueId x = l.batch_first ? Turned(w, node.inputs[kX], {1, 0, 2}) : node.inputs[kX];
    std::vector<ValueId> all, last;
    for (int64_t d = 0; d < l.directions; ++d) {
      const Scanned scanned = Direction(w, node, l, x, step, d);
      all.push_back(scanned.all);
      last.push_back(scanned.last);
    }
    std::vector<ValueId> results{w.Op("Concat", all, {{"axis", int64_t{1}}}),
                                 w.Op("Concat", last, {{"axis", int64_t{0}}})};
    if (l.batch_first)
      results = {Turned(w, results[0], {2, 0, 1, 3}), Turned(w, results[1], {1, 0, 2})};
    MSRT_RETURN_IF_ERROR(w.status());
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      Node same;
      same.name = StrCat(name, "/output", i);
      same.op = "Identity";
      same.inputs = {results[i]};
      same.outputs = {node.outputs[i]};
      graph().nodes.push_back(std::move(same));
    }
    return OkStatus();
  }

  Module& module_;
  const uint32_t graph_;
};

}  // namespace

Result<std::vector<ExpandedNode>> ExpandRecurrent(Module* module) {
  std::vector<ExpandedNode> expanded;
  const auto graphs = static_cast<uint32_t>(module->graphs.size());
  for (uint32_t g = 0; g < graphs; ++g) MSRT_RETURN_IF_ERROR(Expansion(module, g).Run(&expanded));
  if (!expanded.empty()) MSRT_RETURN_IF_ERROR(Validate(module));
  return expanded;
}

}  // namespace msrt::mindir_export
