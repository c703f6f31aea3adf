// Rewriter: a graph that a pass rewrites, with the producer and the users of each value kept up to
// date by every change. Nodes keep their numbers until Finish, so a pass may iterate over them
// while it adds and removes nodes. Shared by the passes that match patterns.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/passes/pass.h"

namespace msrt {

// Whether dims are known to be equal: numbers or the same symbol.
bool ProvenEqual(int64_t a, int64_t b);
bool ProvenEqual(const Type& a, const Type& b);

class Rewriter {
 public:
  Rewriter(const PassContext& context, Graph* graph);
  ~Rewriter() { Finish(); }
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  const Graph& graph() const { return *graph_; }
  const Type& type(ValueId v) const { return graph_->value(v).type; }
  const ConstTensor* constant(ValueId v) const { return graph_->value(v).constant.get(); }
  ValueId AddConstant(std::string name, ConstTensor data);

  // Nodes: those of the original graph in order, then the added ones.
  size_t node_count() const { return graph_->nodes.size(); }
  const Node& node(size_t n) const { return graph_->nodes[n]; }
  // Whether the node has not been removed.
  bool IsPresent(size_t n) const { return !gone_[n]; }
  // Whether the node is present and a known op of the domain (ONNX's by default), and not a piece
  // of a larger node, whose local attributes no pattern accounts for.
  bool IsLive(size_t n, std::string_view domain = {}) const {
    return !gone_[n] && node(n).def != nullptr && node(n).domain == domain && !pieces_[n];
  }
  bool Is(size_t n, std::string_view op) const { return IsLive(n) && node(n).op == op; }

  // The node that makes a value, or nullopt for inputs and constants.
  std::optional<size_t> Producer(ValueId v) const;
  // The same, if it is a live node with one output and this op; else nullopt.
  std::optional<size_t> Producer(ValueId v, std::string_view op) const;
  // Returns the number of node inputs and graph outputs that use the value.
  size_t uses(ValueId v) const { return uses_[IndexOf(v)]; }
  bool IsOutput(ValueId v) const { return is_output_[IndexOf(v)]; }
  // The only user of a value; nullopt if there are several uses or none, or the value is an output
  // of the graph.
  std::optional<size_t> SoleUser(ValueId v) const;
  // Whether the outputs of the `inner` nodes are used only by them and by `root`: then replacing
  // `root` removes them.
  bool OnlyFeed(std::span<const size_t> inner, size_t root) const;

  // Adds a node before node `before`, which must be a node of the original graph. Returns its
  // output, or kNoValue if inference refuses it.
  ValueId Add(size_t before, std::string_view op, std::vector<ValueId> inputs, AttrList attrs,
              std::string_view domain = {});
  // Makes node `n` another op with the same first output, and removes nodes that are no longer
  // used. Returns false, and changes nothing, if inference refuses the node or returns another
  // type.
  bool Replace(size_t n, std::string_view op, std::vector<ValueId> inputs, AttrList attrs,
               std::string_view domain = {});
  // Uses `to` instead of the only output of `n`. Returns false, and changes nothing, if an output
  // of the graph would lose its name.
  bool Forward(size_t n, ValueId to);
  // Makes the only output of `n` a constant. Returns false, and changes nothing, if the type
  // differs.
  bool SetConstant(size_t n, ConstTensor data);
  // Sets a more precise type of a value. Outputs of the graph keep their declared types.
  void Refine(ValueId v, Type type);
  // Infers all types again, so that later passes see what has become known.
  void InferAgain();

  // Sorts the nodes and erases removed ones. The object must not be used afterwards.
  void Finish();
  bool changed() const { return changed_; }

 private:
  Node MakeNode(std::string_view domain, std::string_view op, std::vector<ValueId> inputs,
                AttrList attrs) const;
  std::optional<Type> TypeOf(const Node& node) const;
  std::vector<size_t> Order() const;
  void Grow();
  void AddUses(size_t n);
  void RemoveUses(size_t n);
  void DropUnused(std::vector<ValueId> released);
  void MoveUses(ValueId from, ValueId to);

  const PassContext& context_;
  Graph* graph_;
  std::vector<int32_t> producers_;
  // By value: the nodes that read it; may contain former readers. Constants have none.
  std::vector<std::vector<uint32_t>> users_;
  std::vector<uint32_t> uses_;
  std::vector<bool> is_output_;
  std::vector<bool> gone_, pieces_;
  // By node: the node before which it was added; its own number for nodes of the original graph.
  std::vector<size_t> anchor_;
  bool changed_ = false;
};

// The nodes of a matched pattern, collected from its end upwards.
class Match {
 public:
  explicit Match(const Rewriter& rewriter) : r(rewriter) {}

  // Returns the producer of `v` if it is this op, and adds it to the pattern.
  const Node* Take(ValueId v, std::string_view op);
  // Operands of a binary op with a scalar constant that does not add dims. With `ordered` the
  // constant must be the second operand.
  struct ScalarOperands {
    ValueId x;
    double constant;
  };
  std::optional<ScalarOperands> TakeWithScalar(ValueId v, std::string_view op,
                                               bool ordered = false);
  bool OnlyFeeds(size_t root) const { return r.OnlyFeed(inner, root); }

  const Rewriter& r;
  std::vector<size_t> inner;
};

// Returns the value of a constant with one element of type f32, f64, i32 or i64.
std::optional<double> ScalarOf(const Rewriter& r, ValueId v);
// Whether broadcasting a constant of type `c` with `x` keeps the dims of `x`. Requires that `c` has
// one element.
bool KeepsDims(const Type& c, const Type& x);
std::optional<Match::ScalarOperands> WithScalar(const Rewriter& r, const Node& node,
                                                bool ordered = false);
// Whether both are equal up to the rounding of a constant to f32.
bool NearlyEqual(double a, double b);

}  // namespace msrt
