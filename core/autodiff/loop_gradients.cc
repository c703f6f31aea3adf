// Gradients of Loop, Scan and While; control_gradients.h has the idea.
#include <algorithm>

#include "core/autodiff/control_gradients.h"
#include "core/autodiff/gradient_graphs.h"
#include "ops/control.h"
#include "ops/grad_builder.h"
#include "ops/registry.h"

namespace msrt {
namespace {

// For each output of a graph the inputs that it depends on through values that carry gradients.
std::vector<std::vector<bool>> DependenciesOf(const Graph& graph) {
  const size_t inputs = graph.inputs.size();
  std::vector<std::vector<bool>> depends(graph.value_count());
  for (size_t i = 0; i < inputs; ++i) {
    if (!MayCarryGradient(graph.value(graph.inputs[i]).type)) continue;
    depends[IndexOf(graph.inputs[i])].resize(inputs);
    depends[IndexOf(graph.inputs[i])][i] = true;
  }
  for (const Node& node : graph.nodes) {
    std::vector<bool> all;
    for (ValueId v : node.inputs) {
      if (v == kNoValue || depends[IndexOf(v)].empty()) continue;
      all.resize(inputs);
      for (size_t i = 0; i < inputs; ++i) all[i] = all[i] || depends[IndexOf(v)][i];
    }
    for (ValueId v : node.outputs) {
      if (v != kNoValue && MayCarryGradient(graph.value(v).type)) depends[IndexOf(v)] = all;
    }
  }
  std::vector<std::vector<bool>> of_outputs;
  for (ValueId v : graph.outputs) {
    of_outputs.push_back(depends[IndexOf(v)]);
    of_outputs.back().resize(inputs);
  }
  return of_outputs;
}

bool Intersects(const std::vector<bool>& a, const std::vector<bool>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] && b[i]) return true;
  }
  return false;
}

int64_t NumberInList(const Node& node, std::string_view attr, size_t i) {
  const AttrValue* value = node.attrs.Find(attr);
  if (value == nullptr) return 0;
  const auto& list = std::get<std::vector<int64_t>>(*value);
  return i < list.size() ? list[i] : 0;
}

template <typename T>
void InsertAt(std::vector<T>* list, size_t at, T element) {
  list->insert(list->begin() + static_cast<ptrdiff_t>(at), std::move(element));
}

Node MakeNode(std::string_view domain, std::string_view op, std::string name) {
  Node made;
  made.name = std::move(name);
  made.domain = domain;
  made.op = op;
  made.def = FindOp(domain, op, nullptr);
  made.version = made.def->version;
  return made;
}

// The Scan that runs an earlier loop backward, under construction: its body, and what it carries,
// scans and captures. `inner` is a value of the body, `outer` one of the graph.
class BackwardScan {
 public:
  // `inputs` and `outputs`: the values of the body that stand for the inputs of the gradient of the
  // loop's body, which still have no source, and for its outputs.
  Graph body;
  std::vector<ValueId> inputs, outputs;

  // A result is the gradient of an input of the loop, by its position.
  void Carry(ValueId inner, ValueId outer, ValueId next, size_t result) {
    carried_.push_back({inner, outer});
    body_outputs_.push_back(next);
    results_.push_back(result);
  }
  // Axis and direction are those of the loop.
  void Slice(ValueId inner, ValueId outer, int64_t axis, int64_t direction) {
    sliced_.push_back({inner, outer});
    axes_.push_back(axis);
    directions_.push_back(1 - direction);
  }
  void Stack(ValueId inner, int64_t axis, int64_t direction, size_t result) {
    stacked_.push_back(inner);
    stacked_results_.push_back(result);
    output_axes_.push_back(axis);
    output_directions_.push_back(1 - direction);
  }
  void Capture(ValueId inner, ValueId outer) { captured_.push_back({inner, outer}); }

  // Adds the body to the module. Returns the node, without outputs.
  Node Finish(Module* module, std::string name) {
    Node scan = MakeNode("", "Scan", std::move(name));
    for (const auto* part : {&carried_, &sliced_, &captured_}) {
      for (const auto& [inner, outer] : *part) {
        body.value(inner).name = StrCat("in", body.inputs.size());
        body.inputs.push_back(inner);
        scan.inputs.push_back(outer);
      }
    }
    body.outputs = body_outputs_;
    body.outputs.insert(body.outputs.end(), stacked_.begin(), stacked_.end());
    results_.insert(results_.end(), stacked_results_.begin(), stacked_results_.end());
    module->graphs.push_back(std::move(body));
    const auto graph = static_cast<uint32_t>(module->graphs.size() - 1);
    scan.attrs = {{"body", GraphRef{graph}},
                  {"num_scan_inputs", static_cast<int64_t>(sliced_.size())},
                  {"carried", static_cast<int64_t>(carried_.size())},
                  {"scan_input_axes", axes_},
                  {"scan_input_directions", directions_}};
    if (!stacked_.empty()) {
      scan.attrs.Set("scan_output_axes", output_axes_);
      scan.attrs.Set("scan_output_directions", output_directions_);
    }
    return scan;
  }
  // By output of the finished node.
  const std::vector<size_t>& results() const { return results_; }

 private:
  std::vector<std::pair<ValueId, ValueId>> carried_, sliced_, captured_;  // inner and outer
  std::vector<ValueId> body_outputs_, stacked_;
  std::vector<int64_t> axes_, directions_, output_axes_, output_directions_;
  std::vector<size_t> results_, stacked_results_;
};

class LoopGradient {
 public:
  LoopGradient(GradientGraphs* graphs, uint32_t g, size_t n, std::vector<ValueId> output_grads,
               std::vector<bool> wanted)
      : graphs_(graphs),
        module_(graphs->module()),
        g_(g),
        n_(n),
        output_grads_(std::move(output_grads)),
        wanted_(std::move(wanted)) {}

  Result<std::vector<ValueId>> Run() {
    const bool is_while = ShapeOfControl(node()).kind == ControlKind::kWhile;
    if (is_while) MSRT_RETURN_IF_ERROR(MakeLoopOfWhile());
    shape_ = ShapeOfControl(node());
    const Graph& body = module_.graphs[shape_.graphs[0]];
    outputs_ = body.outputs.size() - shape_.body_extra_outputs();
    output_grads_.resize(outputs_, kNoValue);
    results_.resize(node().inputs.size(), kNoValue);
    FindActive();
    MSRT_RETURN_IF_ERROR(CheckActive());
    if (std::find(wanted_of_body_.begin(), wanted_of_body_.end(), true) != wanted_of_body_.end()) {
      MSRT_ASSIGN_OR_RETURN(gradient_,
                            graphs_->Get(shape_.graphs[0], wanted_of_body_, with_gradient_));
      MSRT_RETURN_IF_ERROR(SaveIterations());
      MSRT_RETURN_IF_ERROR(AddBackward());
    }
    if (is_while) results_.erase(results_.begin(), results_.begin() + 2);
    return std::move(results_);
  }

 private:
  Graph& graph() { return module_.graphs[g_]; }
  Node& node() { return graph().nodes[n_]; }
  uint32_t AddGraph(Graph added) {
    module_.graphs.push_back(std::move(added));
    return static_cast<uint32_t>(module_.graphs.size() - 1);
  }
  // Inserts a node before the loop.
  void InsertBefore(Node inserted) { InsertAt(&graph().nodes, n_++, std::move(inserted)); }

  // While(carried, captured) is Loop(none, condition(carried, captured), carried, captured) whose
  // body ends with the condition of the next iteration.
  Status MakeLoopOfWhile() {
    const ControlShape shape = ShapeOfControl(node());
    const uint32_t condition = shape.graphs[0];
    const Graph& test = module_.graphs[condition];
    const Type flag = test.value(test.outputs[0]).type;
    Graph body = module_.graphs[shape.graphs[1]];
    body.name += "/loop";
    Node call = MakeNode("msrt", "Call", StrCat(node().name, "/condition"));
    call.attrs = {{"graph", GraphRef{condition}}};
    Node first = call;
    first.inputs = node().inputs;
    first.outputs = {graph().AddValue(first.name, flag)};
    call.inputs = body.outputs;
    call.inputs.insert(call.inputs.end(),
                       body.inputs.begin() + static_cast<ptrdiff_t>(shape.carried),
                       body.inputs.end());
    call.outputs = {body.AddValue(call.name, flag)};
    InsertAt(&body.outputs, 0, call.outputs[0]);
    body.nodes.push_back(std::move(call));
    InsertAt(&body.inputs, 0, body.AddValue("", Type::Tensor(DType::kBool, {})));
    InsertAt(&body.inputs, 0, body.AddValue("", Type::Tensor(DType::kI64, {})));

    Node loop = MakeNode("", "Loop", node().name);
    loop.attrs = {{"body", GraphRef{AddGraph(std::move(body))}},
                  {"carried", static_cast<int64_t>(shape.carried)}};
    loop.inputs = node().inputs;
    loop.outputs = node().outputs;
    InsertAt(&loop.inputs, 0, first.outputs[0]);
    InsertAt(&loop.inputs, 0, kNoValue);
    wanted_.insert(wanted_.begin(), 2, false);
    node() = std::move(loop);
    InsertBefore(std::move(first));
    return OkStatus();
  }

  // ---- which values take part -------------------------------------------------------------------

  size_t BodyInput(size_t node_input) const {
    return shape_.body_extra_inputs() + node_input - shape_.leading;
  }
  size_t BodyOutput(size_t node_output) const { return shape_.body_extra_outputs() + node_output; }

  // A carried value is active if it varies with a wanted input and a result that has a gradient
  // depends on it, in any iteration.
  void FindActive() {
    const Graph& body = module_.graphs[shape_.graphs[0]];
    const std::vector<std::vector<bool>> depends = DependenciesOf(body);
    std::vector<bool> varying(body.inputs.size()), useful(body.outputs.size());
    for (size_t i = shape_.leading; i < wanted_.size(); ++i) varying[BodyInput(i)] = wanted_[i];
    for (size_t o = 0; o < outputs_; ++o) useful[BodyOutput(o)] = output_grads_[o] != kNoValue;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t j = 0; j < shape_.carried; ++j) {
        const size_t in = BodyInput(shape_.leading + j), out = BodyOutput(j);
        const bool varies = varying[in] || Intersects(depends[out], varying);
        bool used = useful[out];
        for (size_t o = 0; o < depends.size(); ++o) used = used || (useful[o] && depends[o][in]);
        changed = changed || varies != varying[in] || used != useful[out];
        varying[in] = varies;
        useful[out] = used;
      }
    }
    wanted_of_body_.assign(body.inputs.size(), false);
    with_gradient_.assign(body.outputs.size(), false);
    for (size_t o = 0; o < outputs_; ++o) {
      const size_t out = BodyOutput(o);
      with_gradient_[out] =
          useful[out] && (o < shape_.carried ? varying[BodyInput(shape_.leading + o)]
                                             : Intersects(depends[out], varying));
    }
    for (size_t i = shape_.leading; i < wanted_.size(); ++i) {
      const size_t in = BodyInput(i);
      if (i < shape_.leading + shape_.carried) {
        wanted_of_body_[in] = with_gradient_[BodyOutput(i - shape_.leading)];
        continue;
      }
      for (size_t o = 0; o < depends.size(); ++o)
        wanted_of_body_[in] =
            wanted_of_body_[in] || (varying[in] && with_gradient_[o] && depends[o][in]);
    }
  }
  bool IsActive(size_t carried) const { return with_gradient_[BodyOutput(carried)]; }

  Status CheckActive() {
    const Graph& body = module_.graphs[shape_.graphs[0]];
    for (size_t i = 0; i < body.inputs.size(); ++i) {
      const Value& value = body.value(body.inputs[i]);
      if (!wanted_of_body_[i] || IsDifferentiable(value.type)) continue;
      return Unsupported("value '", value.name, "' of its body is ", value.type,
                         ", for which there are no gradients: carry tensors");
    }
    return OkStatus();
  }

  // ---- saving -----------------------------------------------------------------------------------

  // Whether the gradient of the body reads an input of the body.
  bool Reads(size_t body_input) const {
    return !gradient_->complete || gradient_->reads[body_input];
  }

  // Values of Scan keep their size by definition.
  bool KeepsSize(size_t carried) const {
    if (shape_.kind == ControlKind::kScan) return true;
    const Graph& body = module_.graphs[shape_.graphs[0]];
    const Type& in = body.value(body.inputs[BodyInput(shape_.leading + carried)]).type;
    const Type& out = body.value(body.outputs[BodyOutput(carried)]).type;
    if (in.concrete()) return true;
    return in.rank_known && in == out &&
           std::none_of(in.dims.begin(), in.dims.end(), [](int64_t d) { return d == kUnknownDim; });
  }

  // Adds scanned outputs with what iterations begin with, as far as the gradient reads it.
  Status SaveIterations() {
    Graph body = module_.graphs[shape_.graphs[0]];
    const size_t outputs_before = body.outputs.size();
    std::vector<size_t> stacked, listed;
    saved_.assign(body.inputs.size(), kNoValue);
    if (shape_.kind == ControlKind::kLoop) stacked.push_back(0);  // also counts the iterations
    for (size_t j = 0; j < shape_.carried; ++j) {
      const size_t in = BodyInput(shape_.leading + j);
      if (!Reads(in)) continue;
      const Value& value = body.value(body.inputs[in]);
      if (!value.type.is_tensor()) {
        return Unsupported("its gradient needs carried value ", j, " '", value.name,
                           "' of every iteration, which is ", value.type,
                           ": only tensors can be saved");
      }
      (KeepsSize(j) ? stacked : listed).push_back(in);
    }
    node().outputs.resize(outputs_, kNoValue);
    std::vector<size_t> positions;  // of `stacked` among the outputs of the node
    for (size_t in : stacked) positions.push_back(ScannedOutput(&body, body.inputs[in]));
    bool changed = body.outputs.size() != outputs_before;
    for (size_t i = 0; i < listed.size(); ++i) SaveInList(&body, listed[i], i);
    changed = changed || !listed.empty();
    if (changed) {
      body.name += "/saving";
      const uint32_t saving = AddGraph(std::move(body));
      node().attrs.Set("body", GraphRef{saving});
      node().attrs.Set("carried", static_cast<int64_t>(shape_.carried + listed.size()));
    }
    MSRT_ASSIGN_OR_RETURN(const std::vector<Type> types, ResultsOf(module_, graph(), node()));
    node().outputs.resize(types.size(), kNoValue);
    for (size_t i = 0; i < stacked.size(); ++i)
      saved_[stacked[i]] = Output(positions[i] + listed.size(), types);
    for (size_t i = 0; i < listed.size(); ++i)
      saved_[listed[i]] = Output(shape_.carried + i, types);
    return OkStatus();
  }

  // Returns the output of the node that stacks a value of the body, before lists are inserted.
  size_t ScannedOutput(Graph* body, ValueId v) {
    for (size_t o = shape_.carried; o < body->outputs.size() - shape_.body_extra_outputs(); ++o) {
      const size_t k = o - shape_.carried;
      if (body->outputs[BodyOutput(o)] == v && NumberInList(node(), "scan_output_axes", k) == 0 &&
          NumberInList(node(), "scan_output_directions", k) == 0) {
        return o;
      }
    }
    body->outputs.push_back(v);
    return body->outputs.size() - 1 - shape_.body_extra_outputs();
  }

  // Carries a list to which every iteration appends the value; the i-th of such lists.
  void SaveInList(Graph* body, size_t body_input, size_t i) {
    const ValueId v = body->inputs[body_input];
    const DType dtype = body->value(v).type.dtype;
    const Type type = Type::ListOf(Type::UnrankedTensor(dtype));
    Node empty = MakeNode("", "SequenceEmpty", StrCat(node().name, "/saved"));
    empty.attrs = {{"dtype", dtype}};
    empty.outputs = {graph().AddValue(empty.name, type)};
    const size_t at = shape_.carried + i;
    InsertAt(&node().inputs, shape_.leading + at, empty.outputs[0]);
    InsertAt(&node().outputs, at, kNoValue);
    InsertBefore(std::move(empty));
    Node append = MakeNode("", "SequenceInsert", "save");
    const ValueId list = body->AddValue("", type);
    InsertAt(&body->inputs, shape_.body_extra_inputs() + at, list);
    append.inputs = {list, v};
    append.outputs = {body->AddValue("saved", type)};
    InsertAt(&body->outputs, shape_.body_extra_outputs() + at, append.outputs[0]);
    body->nodes.push_back(std::move(append));
    ++lists_;
  }

  ValueId Output(size_t o, const std::vector<Type>& types) {
    if (node().outputs[o] == kNoValue)
      node().outputs[o] = graph().AddValue(StrCat(node().name, ":", o), types[o]);
    return node().outputs[o];
  }

  // ---- the backward loop ------------------------------------------------------------------------

  // The body begins as a copy of the gradient of the loop's body; a call of it if it is not
  // complete.
  BackwardScan BeginBackward() {
    const Graph& gradient = module_.graphs[gradient_->graph];
    BackwardScan b;
    if (gradient_->complete) {
      b.body = gradient;
      b.inputs = std::exchange(b.body.inputs, {});
      b.outputs = std::exchange(b.body.outputs, {});
    } else {
      Node call = MakeNode("msrt", "Call", StrCat(gradient.name, "/call"));
      call.attrs = {{"graph", GraphRef{gradient_->graph}}};
      for (ValueId v : gradient.inputs)
        b.inputs.push_back(b.body.AddValue("", gradient.value(v).type));
      for (size_t i = 0; i < wanted_of_body_.size(); ++i) {
        if (wanted_of_body_[i])
          b.outputs.push_back(b.body.AddValue("", gradient.value(gradient.inputs[i]).type));
      }
      call.inputs = b.inputs;
      call.outputs = b.outputs;
      b.body.nodes.push_back(std::move(call));
    }
    b.body.name = StrCat(module_.graphs[shape_.graphs[0]].name, "/backward");
    return b;
  }

  Result<ValueId> ZerosLike(ValueId like) {
    Node none;
    none.name = graph().value(like).name;
    GradBuilder builder(&graph(), none, {}, {}, graphs_->ops());
    const ValueId zeros = builder.Zeros(like);
    if (!builder.ok()) return builder.status();
    return zeros;
  }

  // Node inputs after the lists that saving inserted.
  ValueId NodeInput(size_t i) {
    return node().inputs[i < shape_.leading + shape_.carried ? i : i + lists_];
  }

  Status AddBackward() {
    BackwardScan b = BeginBackward();
    gradient_in_.assign(with_gradient_.size(), kNoValue);
    gradient_out_.assign(wanted_of_body_.size(), kNoValue);
    for (size_t o = 0, next = wanted_of_body_.size(); o < with_gradient_.size(); ++o) {
      if (with_gradient_[o]) gradient_in_[o] = b.inputs[next++];
    }
    for (size_t i = 0, next = 0; i < wanted_of_body_.size(); ++i) {
      if (wanted_of_body_[i]) gradient_out_[i] = b.outputs[next++];
    }
    MSRT_RETURN_IF_ERROR(PassCarried(&b));
    MSRT_RETURN_IF_ERROR(PassCaptured(&b));
    PassScanned(&b);
    PassSaved(&b);
    Node scan = b.Finish(&module_, StrCat(node().name, "/grad"));
    MSRT_ASSIGN_OR_RETURN(const std::vector<Type> types, ResultsOf(module_, graph(), scan));
    for (size_t o = 0; o < b.results().size(); ++o) {
      const size_t input = b.results()[o];
      const auto merged = MergeTypes(types[o], graph().value(NodeInput(input)).type);
      scan.outputs.push_back(
          graph().AddValue(StrCat(scan.name, ":", o), merged.ok() ? *merged : types[o]));
      results_[input] = scan.outputs.back();
    }
    graph().nodes.push_back(std::move(scan));
    return OkStatus();
  }

  // The gradients of carried values go from iteration to iteration.
  Status PassCarried(BackwardScan* b) {
    for (size_t j = 0; j < shape_.carried; ++j) {
      if (!IsActive(j)) continue;
      const size_t in = BodyInput(shape_.leading + j);
      const ValueId v = gradient_in_[BodyOutput(j)];
      MSRT_RETURN_IF_ERROR(Widen(&b->body, v, b->inputs[in]));
      MSRT_ASSIGN_OR_RETURN(const ValueId first, GradientOfOutput(j));
      b->Carry(v, first, gradient_out_[in], shape_.leading + j);
    }
    return OkStatus();
  }

  // The gradients of captured values are summed.
  Status PassCaptured(BackwardScan* b) {
    for (size_t i = shape_.captured_from(); i < results_.size(); ++i) {
      const size_t in = BodyInput(i);
      if (Reads(in)) b->Capture(b->inputs[in], NodeInput(i));
      if (!wanted_of_body_[in]) continue;
      const Type type = b->body.value(b->inputs[in]).type;
      const ValueId sum = b->body.AddValue("", type);
      MSRT_ASSIGN_OR_RETURN(const ValueId zeros, ZerosLike(NodeInput(i)));
      MSRT_ASSIGN_OR_RETURN(const ValueId next, GraphBuilder(&b->body, graphs_->ops())
                                                    .Add("Add", StrCat(node().name, "/grad"),
                                                         {sum, gradient_out_[in]}));
      b->Carry(sum, zeros, next, i);
    }
    return OkStatus();
  }

  // Scanned inputs are scanned again, and their gradients are stacked; the gradients of scanned
  // outputs are scanned.
  void PassScanned(BackwardScan* b) {
    for (size_t s = 0; s < shape_.scan_inputs; ++s) {
      const size_t i = shape_.carried + s, in = BodyInput(i);
      const int64_t axis = NumberInList(node(), "scan_input_axes", s),
                    direction = NumberInList(node(), "scan_input_directions", s);
      // The first one also counts the iterations.
      if (Reads(in) || s == 0) b->Slice(b->inputs[in], NodeInput(i), axis, direction);
      if (wanted_of_body_[in]) b->Stack(gradient_out_[in], axis, direction, i);
    }
    for (size_t o = shape_.carried; o < outputs_; ++o) {
      if (!with_gradient_[BodyOutput(o)]) continue;
      const size_t k = o - shape_.carried;
      b->Slice(gradient_in_[BodyOutput(o)], output_grads_[o],
               NumberInList(node(), "scan_output_axes", k),
               NumberInList(node(), "scan_output_directions", k));
    }
  }

  void PassSaved(BackwardScan* b) {
    if (shape_.kind == ControlKind::kLoop) {
      b->Slice(b->inputs[0], saved_[0], 0, 0);
      // An iteration begins with a condition that holds.
      Value& condition = b->body.value(b->inputs[1]);
      const uint8_t yes = 1;
      const Dims dims = condition.type.dims;
      condition.constant = std::make_shared<const ConstTensor>(
          ConstTensor::Of<uint8_t>(DType::kBool, dims, std::span(&yes, 1)));
    }
    for (size_t j = 0; j < shape_.carried; ++j) {
      const size_t in = BodyInput(shape_.leading + j);
      if (!Reads(in)) continue;
      if (graph().value(saved_[in]).type.is_tensor()) {
        b->Slice(b->inputs[in], saved_[in], 0, 0);
        continue;
      }
      Node at = MakeNode("", "SequenceAt", "saved");
      const ValueId list = b->body.AddValue("", graph().value(saved_[in]).type);
      b->Capture(list, saved_[in]);
      at.inputs = {list, b->inputs[0]};
      at.outputs = {b->inputs[in]};
      InsertAt(&b->body.nodes, 0, std::move(at));
    }
  }

  // A gradient that is carried has the size that the value has at the end of an iteration, and then
  // that which it has at the beginning.
  static Status Widen(Graph* backward, ValueId gradient, ValueId value) {
    MSRT_ASSIGN_OR_RETURN(Type type,
                          JoinTypes(backward->value(gradient).type, backward->value(value).type));
    backward->value(gradient).type = std::move(type);
    return OkStatus();
  }

  Result<ValueId> GradientOfOutput(size_t carried) {
    if (output_grads_[carried] != kNoValue) return output_grads_[carried];
    if (node().outputs[carried] == kNoValue) {
      MSRT_ASSIGN_OR_RETURN(const std::vector<Type> types, ResultsOf(module_, graph(), node()));
      Output(carried, types);
    }
    return ZerosLike(node().outputs[carried]);
  }

  GradientGraphs* const graphs_;
  Module& module_;
  const uint32_t g_;
  size_t n_;
  std::vector<ValueId> output_grads_;  // by output of the node
  std::vector<bool> wanted_;           // by input of the node
  ControlShape shape_;                 // before saving
  size_t outputs_ = 0;                 // of the node, before saving
  size_t lists_ = 0;
  std::vector<bool> wanted_of_body_, with_gradient_;  // by input and output of the body
  const GradientGraph* gradient_ = nullptr;           // of the body
  std::vector<ValueId> saved_;                        // by input of the body
  // In the backward body: gradients of outputs and inputs of the body.
  std::vector<ValueId> gradient_in_, gradient_out_;
  std::vector<ValueId> results_;  // by input of the node
};

}  // namespace

Result<std::vector<ValueId>> AddLoopGradients(GradientGraphs* graphs, uint32_t graph, size_t n,
                                              const std::vector<ValueId>& output_grads,
                                              const std::vector<bool>& wanted) {
  return LoopGradient(graphs, graph, n, output_grads, wanted).Run();
}

}  // namespace msrt
