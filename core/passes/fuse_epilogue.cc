#include "core/passes/fuse_epilogue.h"

#include <algorithm>

#include "core/passes/rewrite.h"
#include "core/passes/symbolic_shapes.h"
#include "ops/activation.h"
#include "ops/infer.h"
#include "ops/node_view.h"
#include "ops/registry.h"

namespace msrt {
namespace {

// The parts of one fused node that have been found so far.
struct Epilogue {
  enum class Start { kConv, kMatMul, kBatchNorm } start = Start::kConv;
  bool quantized = false;  // starts with QuantizedMatMul or QuantizedConv
  ValueId bias = kNoValue, residual = kNoValue;
  std::string activation;
  double alpha = 0, beta = 0;
  bool any = false;
};

bool HasInput(const Node& node, size_t i) {
  return i < node.inputs.size() && node.inputs[i] != kNoValue;
}

// Inputs of msrt.QuantizedMatMul and msrt.QuantizedConv.
constexpr size_t kYScale = 6, kQuantizedBias = 8, kQuantizedResidual = 9;

// Starts at a product of bytes with an f32 result, which can still take a bias and a residual.
bool QuantizedStartOf(const Graph& graph, const Node& node, Epilogue* e) {
  e->quantized = true;
  const bool matmul = node.op == "QuantizedMatMul";
  if (matmul) e->start = Epilogue::Start::kMatMul;
  if ((!matmul && node.op != "QuantizedConv") || HasInput(node, kYScale) ||
      node.attrs.Find("activation") != nullptr)
    return false;
  if (HasInput(node, kQuantizedBias)) e->bias = node.inputs[kQuantizedBias];
  if (HasInput(node, kQuantizedResidual)) e->residual = node.inputs[kQuantizedResidual];
  return !matmul || graph.value(node.inputs[0]).type.dims.rank() >= 2;
}

// Starts at a fused product that another pass has made: it may take the parts that it lacks.
bool ResumeAt(const Graph& graph, const Node& node, Epilogue* e) {
  if (!NodeView(graph, node).op().String("activation").empty()) return false;
  e->start = Epilogue::Start::kMatMul;
  if (HasInput(node, 2)) e->bias = node.inputs[2];
  if (HasInput(node, 3)) e->residual = node.inputs[3];
  return true;
}

// Starts a chain at `node`, if it can.
bool StartOf(const Graph& graph, const Node& node, Epilogue* e) {
  if (IsPiece(node)) return false;  // a part of a sum adds nothing
  if (node.domain == "msrt" && node.def != nullptr && node.op.starts_with("Quantized"))
    return QuantizedStartOf(graph, node, e);
  if (node.domain == "msrt" && node.def != nullptr && node.op == "FusedMatMul")
    return ResumeAt(graph, node, e);
  if (!node.domain.empty() || node.def == nullptr || node.inputs.empty() ||
      node.inputs[0] == kNoValue)
    return false;
  // Fused products of integers do not exist.
  if (!IsFloat(graph.value(node.inputs[0]).type.dtype)) return false;
  if (node.op == "Conv") {
    if (HasInput(node, 2)) e->bias = node.inputs[2];
    return true;
  }
  if (node.op == "BatchNormalization") {
    e->start = Epilogue::Start::kBatchNorm;
    return node.outputs.size() == 1;
  }
  e->start = Epilogue::Start::kMatMul;
  if (node.op == "MatMul") {
    return graph.value(node.inputs[0]).type.dims.rank() >= 2 &&
           graph.value(node.inputs[1]).type.dims.rank() >= 2;
  }
  if (node.op != "Gemm") return false;
  if (HasInput(node, 2)) {
    if (NodeView(graph, node).op().Float("beta") != 1) return false;
    e->bias = node.inputs[2];
  }
  return true;
}

// Returns the other operand of an Add as a bias: one number for each channel (convolution) or a
// constant that broadcasts to the result (matmul). For a convolution the result has rank 1.
ValueId AsBias(Graph* graph, const Type& result, ValueId other, bool matmul) {
  const Value value = graph->value(other);
  if (value.constant == nullptr || value.type.dtype != result.dtype) return kNoValue;
  const Dims& d = value.type.dims;
  if (matmul) {
    const int n = result.dims.rank() - 1;
    return d.rank() == 1 && IsKnown(result.dims[n]) && d[0] == result.dims[n] ? other : kNoValue;
  }
  const int channel = d.rank() - (result.dims.rank() - 1);
  if (channel < 0 || !IsKnown(result.dims[1]) || d[channel] != result.dims[1] ||
      d.elements() != result.dims[1])
    return kNoValue;
  ConstTensor flat = *value.constant;
  flat.dims = {result.dims[1]};
  return graph->AddConstant(value.name + ".flat", std::move(flat));
}

bool TakeAdd(Graph* graph, const Node& add, ValueId x, const ProvenDims& proven, Epilogue* e) {
  if (add.op != "Add" || !e->activation.empty() || add.inputs[0] == add.inputs[1]) return false;
  if (e->start == Epilogue::Start::kBatchNorm) return false;
  const bool matmul = e->start == Epilogue::Start::kMatMul;
  const ValueId other = add.inputs[0] == x ? add.inputs[1] : add.inputs[0];
  const Type result = graph->value(x).type;
  if (!result.rank_known) return false;
  if (e->bias == kNoValue && e->residual == kNoValue) {
    const ValueId bias = AsBias(graph, result, other, matmul);
    if (bias != kNoValue) {
      e->bias = bias;
      return true;
    }
  }
  if (e->residual != kNoValue || graph->value(other).constant != nullptr) return false;
  // Products with an open number of rows keep a separate residual: fused, their planned memory
  // would be a fifth above its bound.
  if (matmul ? !ProvenEqual(result, graph->value(other).type) : !proven.Equal(x, other))
    return false;
  e->residual = other;
  return true;
}

bool TakeActivation(const Graph& graph, const Node& node, Epilogue* e) {
  if (!e->activation.empty()) return false;
  const NodeView view(graph, node);
  const OpView& op = view.op();
  std::string name = node.op;
  if (name == "Gelu" && op.String("approximate") == "tanh") name = "GeluTanh";
  if (name.empty() ||
      std::find(std::begin(kActivations), std::end(kActivations), name) == std::end(kActivations))
    return false;
  if (name == "Clip") {
    if (HasInput(node, 1) || HasInput(node, 2)) return false;
    const double least = op.Has("min") ? op.Float("min") : -std::numeric_limits<double>::infinity();
    const double largest =
        op.Has("max") ? op.Float("max") : std::numeric_limits<double>::infinity();
    if (least > largest) return false;  // Clip returns `max` then, not every fused kernel does
    e->alpha = least;
    e->beta = largest;
  } else {
    e->alpha = op.Float("alpha");
    e->beta = op.Float("beta");
  }
  e->activation = name;
  return true;
}

const char* FusedName(Epilogue::Start start) {
  switch (start) {
    case Epilogue::Start::kConv:
      return "FusedConv";
    case Epilogue::Start::kMatMul:
      return "FusedMatMul";
    case Epilogue::Start::kBatchNorm:
      return "FusedBatchNormalization";
  }
  return "";
}

Node FusedNode(const Graph& graph, const Node& start, const Node& last, const Epilogue& e) {
  Node fused;
  fused.name = start.name.empty() ? last.name : start.name;
  fused.domain = "msrt";
  fused.op = e.quantized ? start.op : FusedName(e.start);
  fused.def = FindOp(fused.domain, fused.op);
  fused.version = fused.def->version;
  if (e.quantized) {
    fused.inputs = start.inputs;
    fused.inputs.resize(kYScale, kNoValue);
    fused.inputs.insert(fused.inputs.end(), {kNoValue, kNoValue, e.bias, e.residual});
  } else if (e.start == Epilogue::Start::kBatchNorm) {
    fused.inputs = start.inputs;
  } else {
    fused.inputs = {start.inputs[0], start.inputs[1], e.bias, e.residual};
  }
  while (fused.inputs.back() == kNoValue) fused.inputs.pop_back();
  fused.outputs = last.outputs;
  if (start.op == "Gemm") {
    const NodeView view(graph, start);
    for (const char* flag : {"transA", "transB"}) fused.attrs.Set(flag, view.op().Int(flag));
    fused.attrs.Set("alpha", view.op().Float("alpha"));
  } else if (e.start == Epilogue::Start::kBatchNorm) {
    fused.attrs.Set("epsilon", NodeView(graph, start).op().Float("epsilon"));
  } else {
    fused.attrs = start.attrs;
  }
  if (!e.activation.empty()) {
    fused.attrs.Set("activation", e.activation);
    fused.attrs.Set("activation_alpha", e.alpha);
    fused.attrs.Set("activation_beta", e.beta);
  }
  return fused;
}

}  // namespace

Status FuseEpilogue(const PassContext&, Graph* graph) {
  const size_t count = graph->nodes.size();
  const std::vector<uint32_t> uses = graph->UseCounts();
  // By value: its user, if it is used once and by a node.
  std::vector<int64_t> consumer(graph->value_count(), -1);
  for (size_t n = 0; n < count; ++n) {
    for (ValueId v : graph->nodes[n].inputs) {
      if (v != kNoValue)
        consumer[IndexOf(v)] = uses[IndexOf(v)] == 1 ? static_cast<int64_t>(n) : -1;
    }
  }
  std::vector<bool> gone(count);
  const ProvenDims proven(*graph);
  for (size_t n = 0; n < count; ++n) {
    Epilogue e;
    if (gone[n] || !StartOf(*graph, graph->nodes[n], &e)) continue;
    size_t last = n;
    std::vector<size_t> chain{n};
    for (;;) {
      const ValueId x = graph->nodes[last].outputs[0];
      const int64_t next = IndexOf(x) < consumer.size() ? consumer[IndexOf(x)] : -1;
      if (next < 0 || gone[static_cast<size_t>(next)]) break;
      const Node node = graph->nodes[static_cast<size_t>(next)];
      if (!node.domain.empty() || node.def == nullptr || node.outputs.size() != 1) break;
      if (!TakeAdd(graph, node, x, proven, &e) && !TakeActivation(*graph, node, &e)) break;
      last = static_cast<size_t>(next);
      chain.push_back(last);
    }
    if (last == n) continue;
    Node fused = FusedNode(*graph, graph->nodes[n], graph->nodes[last], e);
    for (size_t c : chain) gone[c] = true;
    // The fused node replaces the last node of the chain, where its residual has already been
    // computed.
    gone[last] = false;
    graph->nodes[last] = std::move(fused);
  }
  size_t index = 0;
  std::erase_if(graph->nodes, [&](const Node&) { return gone[index++]; });
  return OkStatus();
}

}  // namespace msrt
