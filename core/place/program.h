// A Program: what is decided once for a model. Which delegate runs each node in which layout, where layouts change, which values are
// only views of others, and the compiled kernels with their packed weights. Sizes and offsets come later, with a binding.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/place/delegate.h"
#include "ops/node_view.h"
#include "ops/propagate.h"

namespace msrt {

// A graph as delegates see it, with typical shapes beside the declared ones. Owns what its views point to, so it lives as long as
// the kernels compiled from it. The graph must outlive it and not change.
class PlacedGraph final : public GraphView {
 public:
  // `typical_dims[i]` replaces unknown dims of input i; where it says nothing, 1 stands for the first dim and `kTypicalExtent` for others.
  static Result<std::unique_ptr<PlacedGraph>> Make(const Graph& graph, const Evaluator& evaluator, std::span<const Dims> typical_dims);

  size_t node_count() const override { return rows_.size(); }
  NodeInfo node(size_t index) const override;
  const GraphFacts& typical() const { return typical_; }

  static constexpr int64_t kTypicalExtent = 128;

 private:
  explicit PlacedGraph(const Graph& graph) : declared_(graph), typical_(graph) {}
  struct Row {
    const OpView* declared;
    const OpView* typical;
    double flops = 0, bytes = 0;
    std::vector<int64_t> inputs, outputs;
  };
  GraphFacts declared_, typical_;
  std::deque<NodeView> views_;
  std::vector<Row> rows_;
};

// A value in one layout. Views share the memory of their root.
using BufferId = uint32_t;
inline constexpr BufferId kNoBuffer = UINT32_MAX;
struct Buffer {
  ValueId value;
  Layout layout = Layout::kPlain;
  BufferId root;  // itself, unless it is a view
};

enum class StepKind : uint8_t {
  kKernel,
  kConvert,  // the same value in another layout, or a plain copy
  kView,     // other dims, no data moved
  kStateRead,
  kStateWrite,
};

struct Step {
  StepKind kind;
  uint32_t node;  // the graph's node; for conversions the one they were made for
  std::unique_ptr<Kernel> kernel;
  std::string_view delegate;  // kernels: its name
  std::string algorithm;
  std::vector<BufferId> inputs, outputs;
  std::vector<std::pair<uint32_t, uint32_t>> in_place;
};

// Why a node is where it is: for --explain.
struct NodeExplanation {
  std::string_view delegate;  // empty: the host (views, state)
  std::string algorithm;
  double seconds = 0;
  std::vector<std::pair<std::string_view, std::string>> others;  // delegate, its reason or its cost
};

struct Program {
  const Graph* graph = nullptr;  // of the model that owns this program
  std::unique_ptr<PlacedGraph> placed;
  std::vector<Buffer> buffers;
  std::vector<Step> steps;
  std::vector<BufferId> input_buffers, output_buffers;  // for the graph's inputs and outputs
  std::vector<NodeExplanation> explanations;            // by node
  size_t packed_bytes = 0;
  double flops = 0;  // of one run at the typical shapes
};

std::string Print(const Program& program);
// The placement as a table: node, op, delegate, algorithm, layouts, why not the others.
std::string Explain(const Program& program);

}  // namespace msrt
