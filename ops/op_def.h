// What an op means, all of it, in one entry. Passes, placement, splitting, autodiff, verification
// and tests read entries and nothing else; kernels live in delegates. Entries stand in
// ops/<family>.cc and are listed once in ops/registry.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/graph/graph.h"
#include "core/region/space.h"

namespace msrt {

class InferContext;  // ops/infer.h
class CustomOp;      // ops/custom_op.h

// Inputs. All parameters with the same non-zero `group` must have one element type.
struct ParamDef {
  // Variadic: the last one only, one or more. Rest: the last one only, any number; values of every
  // kind, not only tensors.
  enum Kind : uint8_t { kRequired, kOptional, kVariadic, kRest };
  std::string_view name;
  DTypeSet types;
  Kind kind = kRequired;
  uint8_t group = 0;
  bool list = false;  // a list instead of a tensor
};

// Types and shapes of the outputs from those of the inputs, with unknown dims wherever they depend
// on unknown ones. Attribute ranges, the number of inputs and their element types have been checked
// before; everything else that is wrong is refused here, with a message that names it. Runs at load
// with symbolic dims and at each binding with numbers: must not allocate much.
using InferFn = Status (*)(InferContext&);

// Outputs whose size depends on data (NonZero, Unique). `infer` leaves such dims unknown, and a
// binding stops there; when the data exists, `fill` is handed it and makes the types in `outputs`,
// which `infer` filled before, concrete. Runs on the host.
struct DataSizesDef {
  uint32_t inputs =
      0;  // bit i: needs the data of input i, in OpView::constant(i), wherever that input is given
  Status (*fill)(const OpView&, std::span<Type> outputs) = nullptr;
};

// The iteration space. All functions require concrete types and return kUnsupported where this
// particular node cannot be cut.
struct SpaceDef {
  Status (*axes)(const OpView&, IterationSpace*) = nullptr;
  // For a box of the space, the box of every input it reads (rank of that input; omitted inputs:
  // rank 0) and of every output it writes. The vectors arrive with one default Box for each input
  // or output.
  Status (*operands)(const OpView&, const Box&, std::span<Box> inputs) = nullptr;
  Status (*results)(const OpView&, const Box&, std::span<Box> outputs) = nullptr;
  // Turns a copy of the node's attributes into those of the piece: local pads, global sizes,
  // offsets. Null: nothing changes.
  Status (*localize)(const OpView&, const Box&, std::span<const Box> inputs,
                     std::span<const Box> outputs, AttrList*) = nullptr;
};

struct Cost {
  double flops = 0;  // a multiply-add counts two
  double bytes_read = 0, bytes_written = 0;
};
using CostFn = Cost (*)(const OpView&);  // requires concrete types
Cost CostOfTraffic(const OpView&);  // reads every input and writes every output once, one operation
                                    // an output element

// kControl: calls graphs that may do anything.
enum class Effect : uint8_t {
  kNone,
  kRandom,
  kState,
  kComm,
  kControl
};  // passes neither merge, drop nor reorder what has effects

// Gradients are graph rewrites (core/autodiff). Null: the op is not differentiable. GradPending: it
// is, but nobody wrote it yet.
struct GradBuilder;
using GradFn = Status (*)(GradBuilder&);
Status GradPending(GradBuilder&);

enum OpTrait : uint32_t {
  kElementwise =
      1,  // output element i depends on input elements i only (inputs broadcast): may run in place
  kView = 2,       // output 0 is input 0 with other dims: no data moves when the layout is plain
  kShapeOnly = 4,  // reads types, never data (Shape, Size)
  kRunByExecutor = 8,  // no kernel: core/run carries it out (control flow, lists, functions)
};

struct OpDef {
  std::string_view name;
  std::string_view domain = {};
  int32_t version = 23;  // ONNX opset whose meaning this is; for domain msrt counted from 1
  std::span<const AttrDef> attrs = {};
  std::span<const ParamDef> inputs = {};
  int min_outputs = 1, max_outputs = 1;
  InferFn infer = nullptr;
  const DataSizesDef* sizes =
      nullptr;  // null: the types of the inputs (and small integers among them) say all
  GradFn grad = nullptr;
  const SpaceDef* space = nullptr;  // null: needs the whole of its inputs
  CostFn cost = CostOfTraffic;
  Effect effect = Effect::kNone;
  uint32_t traits = 0;
  const CustomOp* custom =
      nullptr;  // of an op that an application defines: what infer, cost and space ask
};

}  // namespace msrt
