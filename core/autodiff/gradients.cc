#include "core/autodiff/gradients.h"

#include <algorithm>

#include "core/autodiff/control_gradients.h"
#include "core/autodiff/gradient_graphs.h"
#include "ops/control.h"
#include "ops/grad_builder.h"

namespace msrt {
namespace {

// Walks the nodes of one graph backward and adds the gradients of their inputs.
class Differentiator {
 public:
  Differentiator(GradientGraphs* graphs, uint32_t graph, const GradientRequest& request)
      : graphs_(graphs),
        graph_(graph),
        request_(request),
        ops_(graphs->ops()),
        forward_nodes_(this->graph().nodes.size()) {}

  Result<std::vector<ValueId>> Run() {
    FindDependents();
    gradients_.resize(graph().value_count());
    MSRT_RETURN_IF_ERROR(Seed());
    for (size_t n = graph().nodes.size(); n-- > 0;) {
      if (n >= forward_nodes_ || n < request_.first_node) continue;
      MSRT_RETURN_IF_ERROR(Differentiate(n));
    }
    std::vector<ValueId> results;
    for (ValueId v : request_.with_respect_to) {
      MSRT_ASSIGN_OR_RETURN(ValueId gradient, Gradient(v));
      if (gradient == kNoValue) {
        MSRT_ASSIGN_OR_RETURN(gradient, Filled(v, 0));
      }
      results.push_back(gradient);
    }
    return results;
  }

 private:
  Graph& graph() { return graphs_->module().graphs[graph_]; }

  // Marks every value that depends on one of `with_respect_to` through numbers that vary smoothly.
  void FindDependents() {
    depends_.assign(graph().value_count(), false);
    std::vector<bool> constant(graph().value_count());
    for (ValueId v : request_.constants) constant[IndexOf(v)] = true;
    for (ValueId v : request_.with_respect_to) depends_[IndexOf(v)] = true;
    for (size_t n = request_.first_node; n < forward_nodes_; ++n) {
      const Node& node = graph().nodes[n];
      if (std::none_of(node.inputs.begin(), node.inputs.end(),
                       [&](ValueId v) { return Depends(v); })) {
        continue;
      }
      for (ValueId v : node.outputs) {
        if (v != kNoValue && !constant[IndexOf(v)] && MayCarryGradient(graph().value(v).type))
          depends_[IndexOf(v)] = true;
      }
    }
  }
  bool Depends(ValueId v) const {
    return v != kNoValue && IndexOf(v) < depends_.size() && depends_[IndexOf(v)];
  }

  // A builder for nodes that belong to no node of the graph.
  Result<ValueId> Filled(ValueId like, double number) {
    Node none;
    none.name = graph().value(like).name;
    GradBuilder builder(&graph(), none, {}, {}, ops_);
    const ValueId filled = builder.Fill(number, like);
    if (!builder.ok()) return builder.status();
    return filled;
  }

  Status Seed() {
    for (size_t i = 0; i < request_.of.size(); ++i) {
      const ValueId v = request_.of[i];
      if (!IsDifferentiable(graph().value(v).type)) {
        return InvalidArgument("value '", graph().value(v).name, "' is ", graph().value(v).type,
                               "; only tensors of float types can be differentiated");
      }
      ValueId seed = i < request_.seeds.size() ? request_.seeds[i] : kNoValue;
      if (seed == kNoValue) {
        MSRT_ASSIGN_OR_RETURN(seed, Filled(v, 1));
      }
      if (Depends(v)) gradients_[IndexOf(v)].push_back(seed);
    }
    return OkStatus();
  }

  // The sum of all that was added for a value; kNoValue if that is nothing. The order of addition
  // is that of the walk, so equal graphs have gradients with equal bits.
  Result<ValueId> Gradient(ValueId v) {
    if (v == kNoValue || IndexOf(v) >= gradients_.size()) return kNoValue;
    std::vector<ValueId>& parts = gradients_[IndexOf(v)];
    for (; parts.size() > 1; parts.erase(parts.begin() + 1)) {
      MSRT_ASSIGN_OR_RETURN(
          parts[0], GraphBuilder(&graph(), ops_)
                        .Add("Add", StrCat(graph().value(v).name, "/grad"), {parts[0], parts[1]}));
    }
    return parts.empty() ? kNoValue : parts[0];
  }

  Status Differentiate(size_t n) {
    const Node node = graph().nodes[n];  // a copy: the rule appends nodes
    std::vector<ValueId> output_grads;
    for (ValueId v : node.outputs) {
      MSRT_ASSIGN_OR_RETURN(const ValueId gradient, Gradient(v));
      output_grads.push_back(gradient);
    }
    if (std::all_of(output_grads.begin(), output_grads.end(),
                    [](ValueId v) { return v == kNoValue; })) {
      return OkStatus();
    }
    std::vector<bool> wanted;
    for (ValueId v : node.inputs) wanted.push_back(Depends(v));
    if (std::none_of(wanted.begin(), wanted.end(), [](bool w) { return w; })) return OkStatus();
    const std::string what = Describe(graph(), n);
    auto input_grads = InputGradients(n, node, std::move(output_grads), std::move(wanted));
    if (!input_grads.ok()) return std::move(input_grads).status().Within(what);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if ((*input_grads)[i] != kNoValue && Depends(node.inputs[i]))
        gradients_[IndexOf(node.inputs[i])].push_back((*input_grads)[i]);
    }
    return OkStatus();
  }

  Result<std::vector<ValueId>> InputGradients(size_t n, const Node& node,
                                              std::vector<ValueId> output_grads,
                                              std::vector<bool> wanted) {
    if (IsControl(node)) {
      MSRT_RETURN_IF_ERROR(CheckWanted(n, node, wanted));
      return AddControlGradients(graphs_, graph_, n, output_grads, wanted);
    }
    if (node.def == nullptr || node.def->grad == nullptr)
      return Unsupported("the op has no gradient, and the result depends on it through ", Path(n));
    const auto nested = [this](size_t first_node, const std::vector<ValueId>& of,
                               const std::vector<ValueId>& seeds,
                               const std::vector<ValueId>& with_respect_to) {
      return AddGradientsIn(graphs_, graph_, {of, seeds, with_respect_to, first_node});
    };
    GradBuilder builder(&graph(), node, std::move(output_grads), std::move(wanted), ops_, nested);
    MSRT_RETURN_IF_ERROR(node.def->grad(builder));
    MSRT_RETURN_IF_ERROR(builder.status());
    return builder.input_grads();
  }

  // Graphs are differentiated with respect to tensors only.
  Status CheckWanted(size_t n, const Node& node, const std::vector<bool>& wanted) {
    for (size_t i = ShapeOfControl(node).leading; i < node.inputs.size(); ++i) {
      if (!wanted[i] || IsDifferentiable(graph().value(node.inputs[i]).type)) continue;
      return Unsupported("its input '", graph().value(node.inputs[i]).name, "' is ",
                         graph().value(node.inputs[i]).type,
                         ", for which there are no gradients: pass the tensors themselves. The "
                         "result depends on it through ",
                         Path(n));
    }
    return OkStatus();
  }

  // The nodes from a value of `with_respect_to` to node `n`.
  std::string Path(size_t n) {
    const std::vector<int32_t> producers = graph().Producers();
    std::string path;
    for (constexpr size_t kMaxLength = 1000; path.size() < kMaxLength;) {
      const Node& node = graph().nodes[n];
      const auto via = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](ValueId v) { return Depends(v); });
      path = StrCat("'", graph().value(*via).name, "'", path.empty() ? "" : " -> ", path);
      if (producers[IndexOf(*via)] < 0) break;
      n = static_cast<size_t>(producers[IndexOf(*via)]);
      if (std::none_of(graph().nodes[n].inputs.begin(), graph().nodes[n].inputs.end(),
                       [&](ValueId v) { return Depends(v); })) {
        break;
      }
    }
    return path;
  }

  GradientGraphs* const graphs_;
  const uint32_t graph_;
  const GradientRequest& request_;
  const OpSet* const ops_;
  const size_t forward_nodes_;
  std::vector<bool> depends_;                    // by value
  std::vector<std::vector<ValueId>> gradients_;  // by value: parts to be summed
};

}  // namespace

Result<std::vector<ValueId>> AddGradients(Module* module, uint32_t graph,
                                          const GradientRequest& request, const OpSet* ops) {
  GradientGraphs graphs(module, graph, ops);
  return AddGradientsIn(&graphs, graph, request);
}

Result<std::vector<ValueId>> AddGradientsIn(GradientGraphs* graphs, uint32_t graph,
                                            const GradientRequest& request) {
  return Differentiator(graphs, graph, request).Run();
}

}  // namespace msrt
