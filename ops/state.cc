// State that outlives a run: graphs read and write the slots of their module (StateSlot in
// core/graph/graph.h) with these two ops. They have no kernel: a slot belongs to the session, so
// core/run executes them.
#include "ops/families.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr AttrDef kReadAttrs[] = {
    {.name = "slot", .required = true, .min_int = 0},
    {.name = "dtype", .kind = AttrKind::kDType, .required = true},
    // -1 is a dim that may differ from run to run: a cache may grow.
    {.name = "dims",
     .kind = AttrKind::kInts,
     .required = true,
     .min_int = -1,
     .max_count = kMaxRank},
};
constexpr AttrDef kWriteAttrs[] = {{.name = "slot", .required = true, .min_int = 0}};
constexpr ParamDef kWriteInputs[] = {{.name = "value", .types = kAllTypes}};

// The node declares its type, so that inference needs no module; validation checks it against the
// slot.
Status InferStateRead(InferContext& c) {
  Dims dims;
  for (int64_t d : c.op().Ints("dims")) dims.push_back(IsKnown(d) ? d : kUnknownDim);
  const DType dtype = c.op().Dtype("dtype");
  if (dtype == DType::kNone) return InvalidModel("dtype is not a known element type");
  c.SetOutput(0, dtype, dims);
  return OkStatus();
}

Status InferStateWrite(InferContext&) { return OkStatus(); }

constexpr OpDef kStateOps[] = {
    {.name = "StateRead",
     .domain = "msrt",
     .version = 1,
     .attrs = kReadAttrs,
     .infer = InferStateRead,
     .effect = Effect::kState},
    {.name = "StateWrite",
     .domain = "msrt",
     .version = 1,
     .attrs = kWriteAttrs,
     .inputs = kWriteInputs,
     .min_outputs = 0,
     .max_outputs = 0,
     .infer = InferStateWrite,
     .effect = Effect::kState},
};

}  // namespace

std::span<const OpDef> StateOps() { return kStateOps; }

}  // namespace msrt
