// A graph while a pass rewrites it: who makes and who uses each value, kept up to date by every
// change. Nodes keep their numbers until Finish, whatever is added or goes away, so a pass may walk
// over them while it works. Passes that look for patterns share it.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/passes/pass.h"

namespace msrt {

// Dims that are known to be equal: numbers or the same symbol.
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

  // Nodes: those of the graph in order, then those that were added.
  size_t node_count() const { return graph_->nodes.size(); }
  const Node& node(size_t n) const { return graph_->nodes[n]; }
  // Whether it is still there.
  bool IsHere(size_t n) const { return !gone_[n]; }
  // The same, and an op of ONNX's domain that this build knows.
  bool IsLive(size_t n) const {
    return !gone_[n] && node(n).def != nullptr && node(n).domain.empty();
  }
  bool Is(size_t n, std::string_view op) const { return IsLive(n) && node(n).op == op; }

  // The node that makes a value, or nullopt for inputs and constants.
  std::optional<size_t> Producer(ValueId v) const;
  // The same, where it is a live node with one output and this op.
  std::optional<size_t> Producer(ValueId v, std::string_view op) const;
  // How many node inputs and graph outputs use it.
  size_t uses(ValueId v) const { return uses_[IndexOf(v)]; }
  bool IsOutput(ValueId v) const { return is_output_[IndexOf(v)]; }
  // The node that alone uses a value, once; nullopt where there are more or none, or it is an
  // output of the graph.
  std::optional<size_t> SoleUser(ValueId v) const;
  // Whether everything that `inner` nodes make is used by them and by `root` only: then they go
  // when `root` is replaced.
  bool OnlyFeed(std::span<const size_t> inner, size_t root) const;

  // A new node before node `before`, which is one of the graph's own; its output, or kNoValue if
  // inference refuses it.
  ValueId Add(size_t before, std::string_view op, std::vector<ValueId> inputs, AttrList attrs,
              std::string_view domain = {});
  // Makes node `n` another op with the same first output, and drops what nobody uses any more.
  // False, and nothing happens, if inference refuses it or gives another type.
  bool Replace(size_t n, std::string_view op, std::vector<ValueId> inputs, AttrList attrs,
               std::string_view domain = {});
  // Uses `to` for the first and only output of `n`. False, and nothing happens, where an output of
  // the graph would lose its name.
  bool Forward(size_t n, ValueId to);
  // Makes the only output of `n` a constant. False, and nothing happens, if the type differs.
  bool SetConstant(size_t n, ConstTensor data);
  // Gives a value a type that says more. The outputs of the graph are declared to its users and
  // stay as they are.
  void Refine(ValueId v, Type type);
  // Infers all types again, so that what has become known is known to the passes that follow.
  void InferAgain();

  // Puts nodes in order and removes those that are gone. The object must not be used afterwards.
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
  // By value: the nodes that read it, and some that did so once. Constants have none.
  std::vector<std::vector<uint32_t>> users_;
  std::vector<uint32_t> uses_;
  std::vector<bool> is_output_;
  std::vector<bool> gone_;
  std::vector<size_t>
      place_;  // the node before which each node stands; its own number for nodes of the graph
  bool changed_ = false;
};

// The nodes of a pattern, gathered from its end upwards.
class Match {
 public:
  explicit Match(const Rewriter& rewriter) : r(rewriter) {}

  // The producer of `v` if it is this op; it joins the pattern.
  const Node* Take(ValueId v, std::string_view op);
  // An op of two operands, one of which is a scalar constant that does not add dims: {the other
  // operand, the constant}. With `ordered` the constant must be the second.
  struct Scaled {
    ValueId x;
    double constant;
  };
  std::optional<Scaled> TakeWithScalar(ValueId v, std::string_view op, bool ordered = false);
  bool OnlyFeeds(size_t root) const { return r.OnlyFeed(inner, root); }

  const Rewriter& r;
  std::vector<size_t> inner;
};

// The value of a constant with one element of type f32, f64, i32 or i64.
std::optional<double> ScalarOf(const Rewriter& r, ValueId v);
// Whether a constant of the type of `c` leaves the dims of `x` alone when the two are broadcast.
// Requires that `c` has one element.
bool KeepsDims(const Type& c, const Type& x);
std::optional<Match::Scaled> WithScalar(const Rewriter& r, const Node& node, bool ordered = false);
// Equal but for the rounding of a constant to f32.
bool NearlyEqual(double a, double b);

}  // namespace msrt
