#include "tests/examples/accelerator/owned_plan.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "delegates/sdk/graph_image.h"
#include "tests/examples/accelerator/chain.h"
#include "tests/examples/accelerator/inner.h"

namespace accelerator {
namespace {

constexpr int kMaxLevels = 8;
constexpr size_t kOffsetAlignment = 64;

const msrt_attr_view* FindAttr(const msrt_node_view& node, const char* name) {
  const auto* end = node.attrs + node.attr_count;
  const auto* found = std::find_if(
      node.attrs, end, [&](const msrt_attr_view& a) { return std::strcmp(a.name, name) == 0; });
  return found == end ? nullptr : found;
}

bool HasFixedShape(const msrt_value_view& v) {
  const msrt_shape& s = v.declared;
  return s.dtype != 0 && s.rank >= 0 &&
         std::all_of(s.dims, s.dims + s.rank, [](int64_t d) { return d >= 0; });
}

std::string Named(const msrt_node_view& node) {
  return std::string(node.op) + " '" + node.name + "'";
}

class Planner {
 public:
  Planner(const Accelerator& a, const msrt_host_api* host) : a_(a), host_(host) {}

  OwnedPlan Run(const msrt_graph_view& graph, uint32_t node) {
    // Constants of the node that the host uploads are arguments like the others.
    Values values;
    const msrt_node_view& view = NodeAt(graph, node);
    for (size_t i = 0; i < view.input_count; ++i)
      values.try_emplace(view.inputs[i].id, New(view.inputs[i]));
    plan_.step = StepOf(graph, node, {}, &values, 0, &plan_.seconds);
    return std::move(plan_);
  }

 private:
  using Values = std::map<int64_t, Slot>;  // of one graph, by id

  void Refuse(std::string why) {
    if (plan_.refused.empty()) plan_.refused = std::move(why);
  }

  static Slot Take(size_t bytes, Slot::Where where, size_t* end) {
    const Slot slot{where, *end, bytes};
    *end += (bytes + kOffsetAlignment - 1) / kOffsetAlignment * kOffsetAlignment;
    return slot;
  }

  Slot New(const msrt_value_view& v) {
    if (v.id < 0) return {};
    if (!HasFixedShape(v)) Refuse("a tensor of it, or inside of it, has no fixed shape");
    if (!plan_.refused.empty()) return {};
    return Take(msrt::sdk::TypeOf(v.declared).bytes(), Slot::kArena, &plan_.arena_bytes);
  }

  Slot SlotOf(const msrt_value_view& v, Values* values) {
    const auto known = values->find(v.id);
    if (v.id < 0 || known != values->end()) return v.id < 0 ? Slot{} : known->second;
    Slot slot;
    if (v.constant == nullptr) {
      slot = New(v);
    } else {
      slot = Take(msrt::sdk::TypeOf(v.declared).bytes(), Slot::kConstant, &plan_.constant_bytes);
      plan_.constants.emplace_back(slot, v.constant);
    }
    return values->emplace(v.id, slot).first->second;
  }

  // `inner`: the offers of the inner delegate for the nodes of the graph. Adds the time of the
  // step to `seconds`.
  OwnedStep StepOf(const msrt_graph_view& graph, uint32_t n, const std::vector<InnerOffer>& inner,
                   Values* values, int level, double* seconds) {
    const msrt_node_view& node = NodeAt(graph, n);
    OwnedStep step;
    step.graph = &graph;
    step.node = n;
    for (size_t i = 0; i < node.input_count; ++i)
      step.inputs.push_back(SlotOf(node.inputs[i], values));
    for (size_t i = 0; i < node.output_count; ++i)
      step.outputs.push_back(SlotOf(node.outputs[i], values));
    if (IsOwned(a_.options, node)) {
      *seconds += AddControl(node, level, &step);
    } else if (inner[n].seconds < 0) {
      Refuse("the accelerator has no kernel for " + Named(node) + " inside");
    } else {
      step.kernel = plan_.kernels++;
      *seconds += inner[n].seconds;
    }
    return step;
  }

  double AddControl(const msrt_node_view& node, int level, OwnedStep* step) {
    const std::string op = node.op;
    if (level == kMaxLevels) Refuse("it is nested too deeply");
    if (!plan_.refused.empty()) return 0;
    if (const msrt_attr_view* carried = FindAttr(node, "carried"))
      step->carried = static_cast<size_t>(carried->ints[0]);
    if (op == "If") {
      step->kind = OwnedStep::kIf;
      step->leading = 1;
      CheckOne(step->inputs[0]);
      return (AddCall(node, "then_branch", 0, level, step) +
              AddCall(node, "else_branch", 0, level, step)) /
             2;
    }
    if (op == "While") {
      step->kind = OwnedStep::kWhile;
      const double condition = AddCall(node, "condition", 0, level, step),
                   body = AddCall(node, "body", 0, level, step);
      if (plan_.refused.empty()) CheckOne(step->graphs[0].outputs[0]);
      AddCarried(step, 0);
      return MSRT_TYPICAL_TRIPS * (condition + body) + condition;
    }
    step->kind = OwnedStep::kLoop;
    step->leading = 2;
    for (size_t i = 0; i < 2; ++i) {
      if (step->inputs[i].where != Slot::kNowhere) CheckOne(step->inputs[i]);
    }
    const double body = AddCall(node, "body", 2, level, step);
    if (plan_.refused.empty()) CheckOne(step->graphs[0].outputs[0]);
    if (plan_.refused.empty() && step->graphs[0].outputs.size() != 1 + step->carried)
      Refuse("it scans results");
    AddCarried(step, 1);
    return body * TripsOf(node.inputs[0]);
  }

  // Without a trip count, the condition ends the loop.
  static double TripsOf(const msrt_value_view& count) {
    const auto* trips = static_cast<const int64_t*>(count.constant);
    return trips == nullptr || *trips < 0 || *trips > 1'000'000'000 ? MSRT_TYPICAL_TRIPS
                                                                    : static_cast<double>(*trips);
  }

  // Carried values are in the memory of the node's results between iterations, also if a result is
  // unused.
  void AddCarried(OwnedStep* step, size_t answered) {
    if (!plan_.refused.empty()) return;
    const OwnedGraph& body = step->graphs.back();
    if (step->outputs.size() < step->carried) step->outputs.resize(step->carried);
    for (size_t i = 0; i < step->carried; ++i) {
      const size_t bytes = body.outputs[answered + i].bytes;
      if (step->outputs[i].where == Slot::kNowhere)
        step->outputs[i] = Take(bytes, Slot::kArena, &plan_.arena_bytes);
      CheckSame(step->outputs[i].bytes, bytes);
      CheckSame(step->outputs[i].bytes, step->inputs[step->leading + i].bytes);
    }
  }

  // Plans the graph that an attribute names. Its inputs are `told` numbers of the loop and then the
  // node's inputs without the leading ones.
  double AddCall(const msrt_node_view& node, const char* attr, size_t told, int level,
                 OwnedStep* step) {
    const msrt_graph_view* callee =
        step->graph->callee(step->graph->graph, FindAttr(node, attr)->ints[0]);
    if (callee == nullptr) Refuse("a graph that it calls is not known");
    if (!plan_.refused.empty()) return 0;
    OwnedGraph& graph = step->graphs.emplace_back();
    double seconds = 0;
    Values values;
    for (size_t i = 0; i < callee->input_count; ++i) {
      graph.inputs.push_back(SlotOf(callee->inputs[i], &values));
      if (i >= told) CheckSame(graph.inputs[i].bytes, step->inputs[step->leading + i - told].bytes);
    }
    const std::vector<InnerOffer> inner = AskInner(a_, host_, *callee, nullptr);
    for (uint32_t n = 0; n < callee->node_count && plan_.refused.empty(); ++n) {
      graph.steps.push_back(StepOf(*callee, n, inner, &values, level + 1, &seconds));
    }
    for (size_t i = 0; i < callee->output_count; ++i)
      graph.outputs.push_back(SlotOf(callee->outputs[i], &values));
    for (size_t i = 0; step->kind == OwnedStep::kIf && i < step->outputs.size(); ++i) {
      if (step->outputs[i].where != Slot::kNowhere)
        CheckSame(graph.outputs[i].bytes, step->outputs[i].bytes);
    }
    return seconds;
  }

  void CheckOne(const Slot& number) {
    if (number.bytes > sizeof(int64_t))
      Refuse("a condition or count inside has more than one element");
  }
  void CheckSame(size_t a, size_t b) {
    if (a != b) Refuse("a graph inside is called with tensors of another size than it declares");
  }

  const Accelerator& a_;
  const msrt_host_api* host_;
  OwnedPlan plan_;
};

}  // namespace

bool IsOwned(const Options& options, const msrt_node_view& node) {
  const bool control =
      (*node.domain == '\0' &&
       (std::strcmp(node.op, "If") == 0 || std::strcmp(node.op, "Loop") == 0)) ||
      (std::strcmp(node.domain, "msrt") == 0 && std::strcmp(node.op, "While") == 0);
  return control &&
         std::find(options.owns.begin(), options.owns.end(), node.op) != options.owns.end();
}

OwnedPlan PlanOwned(const Accelerator& a, const msrt_host_api* host, const msrt_graph_view& graph,
                    uint32_t node) {
  return Planner(a, host).Run(graph, node);
}

}  // namespace accelerator
