// OpDef: the complete meaning of an op in one entry. Passes, placement, splitting, autodiff,
// verification and tests read entries and nothing else; kernels are in delegates. Entries are in
// ops/<family>.cc and are listed once in ops/registry.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/graph/graph.h"
#include "core/region/space.h"

namespace msrt {

class InferContext;    // ops/infer.h
class CustomOp;        // ops/custom_op.h
struct ResolvedSpace;  // core/region/resolved_space.h

// An input. All parameters with the same non-zero `group` must have one element type.
struct ParamDef {
  // kVariadic: the last parameter only, one or more values. kRest: the last parameter only, any
  // number of values of every kind, not only tensors.
  enum Kind : uint8_t { kRequired, kOptional, kVariadic, kRest };
  std::string_view name;
  DTypeSet types;
  Kind kind = kRequired;
  uint8_t group = 0;
  bool list = false;  // a list instead of a tensor
};

// Infers the types and shapes of the outputs from those of the inputs, with unknown dims where they
// depend on unknown ones. Attribute ranges, the number of inputs and their element types have been
// checked before; every other error is reported here, with a message that names it. Runs at load
// with symbolic dims and at each binding with numbers: must not allocate much.
using InferFn = Status (*)(InferContext&);

// Outputs whose size depends on data (NonZero, Unique). `infer` leaves such dims unknown, and a
// binding stops there; when the data exists, `fill` makes the types in `outputs`, which `infer`
// filled before, concrete. Runs on the host.
struct DataSizesDef {
  // Bit i: needs the data of input i, if that input is present, in OpView::constant(i).
  uint32_t inputs = 0;
  Status (*fill)(const OpView&, std::span<Type> outputs) = nullptr;
};

// The iteration space. All functions require concrete types and return kUnsupported if this
// particular node cannot be cut. An entry states its space either as data, with `resolve`, or with
// `axes`, `operands` and `results`. Readers call ResolveSpace (ops/resolve_space.h), which makes
// one form of both.
struct SpaceDef {
  Status (*axes)(const OpView&, IterationSpace*) = nullptr;
  // For a box of the space, set the box of every input it reads (rank of that input; omitted
  // inputs: rank 0) and of every output it writes. The spans have one default Box for each input or
  // output.
  Status (*operands)(const OpView&, const Box&, std::span<Box> inputs) = nullptr;
  Status (*results)(const OpView&, const Box&, std::span<Box> outputs) = nullptr;
  // Turns a copy of the node's attributes into those of the piece: local pads, global sizes,
  // offsets. Null: the attributes do not change.
  Status (*localize)(const OpView&, const Box&, std::span<const Box> inputs,
                     std::span<const Box> outputs, AttrList*) = nullptr;
  // Sets the axes and replaces the maps of the tensors that pieces touch in part. On entry each
  // tensor is touched whole.
  Status (*resolve)(const OpView&, ResolvedSpace*) = nullptr;
};

// Returns a graph from the node's inputs to its outputs that computes the same with ops that can be
// cut along axes which the node itself must keep whole (the space of a normalisation: moments, then
// their application). Its values have concrete types, as the node must have. kUnsupported if this
// particular node has none.
using ExpandFn = Result<Graph> (*)(const OpView&);

struct Cost {
  double flops = 0;  // a multiply-add counts two
  double bytes_read = 0, bytes_written = 0;
};
using CostFn = Cost (*)(const OpView&);  // requires concrete types
// Reads every input and writes every output once, with one operation for each output element.
Cost CostOfTraffic(const OpView&);

// Passes do not merge, drop or reorder nodes with effects. kControl: calls graphs that may have any
// effect.
enum class Effect : uint8_t { kNone, kRandom, kState, kComm, kControl };
// Whether the outputs of the node are a function of its inputs and attributes, and computing them
// has no other consequence: passes may merge, drop, copy and reorder it. True for a random op that
// has a step.
bool IsPure(const Node& node);

// Gradients are graph rewrites (core/autodiff). Null: the op is not differentiable. GradPending: it
// is differentiable, but its gradient is not implemented yet.
struct GradBuilder;
using GradFn = Status (*)(GradBuilder&);
Status GradPending(GradBuilder&);

enum OpTrait : uint32_t {
  // Output element i depends on input elements i only (inputs broadcast): may run in place.
  kElementwise = 1,
  // Output 0 is input 0 with other dims: no data moves if the layout is plain.
  kView = 2,
  // Reads types, never data (Shape, Size).
  kShapeOnly = 4,
  // Has no kernel: core/run executes it (control flow, lists, functions).
  kRunByExecutor = 8,
};

struct OpDef {
  std::string_view name;
  std::string_view domain = {};
  int32_t version = 23;  // ONNX opset whose meaning this is; for domain msrt counted from 1
  std::span<const AttrDef> attrs = {};
  std::span<const ParamDef> inputs = {};
  int min_outputs = 1, max_outputs = 1;
  InferFn infer = nullptr;
  // Null: the types of the inputs, and small integers among them, determine all sizes.
  const DataSizesDef* sizes = nullptr;
  GradFn grad = nullptr;
  const SpaceDef* space = nullptr;  // null: needs the whole of its inputs
  ExpandFn expand = nullptr;        // null: there is no finer form
  CostFn cost = CostOfTraffic;
  Effect effect = Effect::kNone;
  uint32_t traits = 0;
  const CustomOp* custom = nullptr;  // user-defined op: called by infer, cost and space
};

}  // namespace msrt
