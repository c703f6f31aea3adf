// Pools over [batch, channels, space...]: MaxPool, AveragePool and LpPool slide a window, the
// Global ones take the whole space. Axes of the iteration space: batch, channels, space.
#include <algorithm>
#include <vector>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"
#include "ops/window.h"

namespace msrt {
namespace {

// ---- sliding windows ----------------------------------------------------------------------------

Result<Windows> PoolWindows(const OpView& op, const Dims& x) {
  return WindowsOf(op, x, op.Ints("kernel_shape"), op.Int("ceil_mode") != 0);
}

// A piece of a MaxPool with indices has the dims of the whole input and the position of its part in
// it.
Status CheckPiecePosition(const InferContext& c) {
  const auto whole = c.op().Ints("input_dims"), origin = c.op().Ints("input_origin");
  if (whole.empty() && origin.empty()) return OkStatus();
  const Dims& x = c.dims(0);
  int64_t elements;
  bool fits =
      whole.size() == x.size() && origin.size() == x.size() && CheckedProduct(whole, &elements);
  for (size_t i = 0; fits && i < x.size(); ++i) {
    const int64_t dim = x[static_cast<int>(i)];
    fits = !IsKnown(dim) || (origin[i] <= whole[i] && dim <= whole[i] - origin[i]);
  }
  if (fits) return OkStatus();
  return InvalidModel("an input of shape ", x, " at input_origin = ", origin,
                      " is not part of input_dims = ", whole);
}

Status InferPool(InferContext& c) {
  if (!c.input(0).rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(c.dtype(0)));
    c.SetOutput(1, Type::UnrankedTensor(DType::kI64));
    return OkStatus();
  }
  const Dims& x = c.dims(0);
  MSRT_ASSIGN_OR_RETURN(const Windows windows, PoolWindows(c.op(), x));
  MSRT_RETURN_IF_ERROR(CheckPiecePosition(c));
  Dims out{x[0], x[1]};
  for (int i = 0; i < windows.rank; ++i) out.push_back(windows.axis[static_cast<size_t>(i)].out);
  c.SetOutput(0, c.dtype(0), out);
  c.SetOutput(1, DType::kI64, out);
  return OkStatus();
}

Status ResolvePool(const OpView& op, ResolvedSpace* space) {
  const Dims& x = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const Windows windows, PoolWindows(op, x));
  AddAxes(AxisKind::kParallel, Dims{x[0], x[1]}, &space->axes);
  space->inputs[0] = TensorMap::Same(x);
  for (int i = 0; i < windows.rank; ++i) {
    const WindowAxis& a = windows.axis[static_cast<size_t>(i)];
    space->axes.Add(AxisKind::kWindow, a.out);
    space->inputs[0].dims[static_cast<size_t>(i) + 2] = MapOf(a, i + 2);
  }
  for (size_t o = 0; o < op.output_count(); ++o) {
    if (op.has_output(o)) space->outputs[o] = TensorMap::Same(op.output(o).dims);
  }
  return OkStatus();
}

Status PoolLocalize(const OpView& op, const Box& box, std::span<const Box> inputs,
                    std::span<const Box>, AttrList* attrs) {
  const Dims& x = op.input(0).dims;
  MSRT_ASSIGN_OR_RETURN(const Windows windows, PoolWindows(op, x));
  std::vector<Interval> space;
  for (int i = 0; i < windows.rank; ++i) space.push_back(box[2 + i]);
  LocalizeWindows(windows, space, attrs);
  if (!op.has_output(1)) return OkStatus();
  const auto outer_dims = op.Ints("input_dims"), outer_origin = op.Ints("input_origin");
  std::vector<int64_t> dims(outer_dims.begin(), outer_dims.end()),
      origin(outer_origin.begin(), outer_origin.end());
  if (dims.empty()) dims.assign(x.begin(), x.end()), origin.assign(x.size(), 0);
  for (int i = 0; i < x.rank(); ++i) origin[static_cast<size_t>(i)] += inputs[0][i].begin;
  attrs->Set("input_dims", std::move(dims));
  attrs->Set("input_origin", std::move(origin));
  return OkStatus();
}

constexpr SpaceDef kPoolSpace{.localize = PoolLocalize, .resolve = ResolvePool};

// A window covers at most the whole axis.
Cost PoolCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = static_cast<double>(op.output(0).elements());
  const auto kernel = op.Ints("kernel_shape");
  for (size_t i = 0; i < kernel.size(); ++i) {
    cost.flops *=
        static_cast<double>(std::min(kernel[i], op.input(0).dims[static_cast<int>(i) + 2]));
  }
  return cost;
}

// ---- global pools -------------------------------------------------------------------------------

Status InferGlobalPool(InferContext& c) {
  if (!c.input(0).rank_known) {
    c.SetOutput(0, c.input(0));
    return OkStatus();
  }
  Dims out = c.dims(0);
  if (out.rank() < 2)
    return InvalidModel("the input has shape ", out, ", must be batch, channels, space...");
  for (int i = 2; i < out.rank(); ++i) out[i] = 1;
  c.SetOutput(0, c.dtype(0), out);
  return OkStatus();
}

Status ResolveGlobal(const OpView& op, AxisKind kind, Monoid monoid, ResolvedSpace* space) {
  const Dims& x = op.input(0).dims;
  space->inputs[0] = TensorMap::Same(x);
  for (int i = 0; i < x.rank(); ++i) {
    if (i >= 2) {
      space->axes.Add(kind, x[i], monoid);
      continue;
    }
    space->axes.Add(AxisKind::kParallel, x[i]);
    space->outputs[0].dims[static_cast<size_t>(i)] = DimMap::Same(i, x[i]);
  }
  return OkStatus();
}
Status ResolveGlobalSum(const OpView& op, ResolvedSpace* space) {
  return ResolveGlobal(op, AxisKind::kReduce, Monoid::kSum, space);
}
Status ResolveGlobalMax(const OpView& op, ResolvedSpace* space) {
  return ResolveGlobal(op, AxisKind::kReduce, Monoid::kMax, space);
}
Status ResolveGlobalWhole(const OpView& op, ResolvedSpace* space) {
  return ResolveGlobal(op, AxisKind::kWhole, Monoid::kNone, space);
}

// A part of the space divides by the size of the whole, so that the parts add up to the average.
Status GlobalAverageLocalize(const OpView& op, const Box& box, std::span<const Box>,
                             std::span<const Box>, AttrList* attrs) {
  const Dims& x = op.input(0).dims;
  bool whole = true;
  for (int i = 2; i < x.rank(); ++i) whole = whole && box[i].size() == x[i];
  if (!whole && !op.Has("divisor")) attrs->Set("divisor", x.product(2, x.rank()));
  return OkStatus();
}

constexpr SpaceDef kGlobalAverageSpace{.localize = GlobalAverageLocalize,
                                       .resolve = ResolveGlobalSum};
constexpr SpaceDef kGlobalMaxSpace{.resolve = ResolveGlobalMax};
constexpr SpaceDef kGlobalLpSpace{.resolve = ResolveGlobalWhole};

Cost GlobalPoolCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = static_cast<double>(op.input(0).elements());
  return cost;
}

// ---- entries ------------------------------------------------------------------------------------

constexpr AttrDef kPAttr{.name = "p", .default_int = 2, .min_int = 1, .max_int = kMaxWindow};

constexpr AttrDef kMaxPoolAttrs[] = {
    kAutoPadAttr,
    kCeilModeAttr,
    kDilationsAttr,
    kRequiredKernelAttr,
    kPadsAttr,
    {.name = "storage_order", .min_int = 0, .max_int = 1},
    kStridesAttr,
    {.name = "input_dims",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_count = 2 + kMaxSpace,
     .local = true},
    {.name = "input_origin",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_count = 2 + kMaxSpace,
     .local = true},
};
constexpr AttrDef kAveragePoolAttrs[] = {
    kAutoPadAttr,   kCeilModeAttr, {.name = "count_include_pad", .min_int = 0, .max_int = 1},
    kDilationsAttr, kRequiredKernelAttr,   kPadsAttr,
    kStridesAttr,
};
constexpr AttrDef kLpPoolAttrs[] = {
    kAutoPadAttr, kCeilModeAttr, kDilationsAttr, kRequiredKernelAttr,
    kPAttr,       kPadsAttr,     kStridesAttr,
};
constexpr AttrDef kGlobalAverageAttrs[] = {{.name = "divisor", .min_int = 0, .local = true}};
constexpr AttrDef kGlobalLpAttrs[] = {kPAttr};

constexpr ParamDef kPooledInput[] = {{.name = "X", .types = kFloatTypes}};
constexpr ParamDef kMaxPoolInput[] = {
    {.name = "X", .types = kFloatTypes | DTypeSet{DType::kI8, DType::kU8}}};

constexpr OpDef kPoolOps[] = {
    {.name = "MaxPool",
     .attrs = kMaxPoolAttrs,
     .inputs = kMaxPoolInput,
     .max_outputs = 2,
     .infer = InferPool,
     .grad = GradMaxPool,
     .space = &kPoolSpace,
     .cost = PoolCost},
    {.name = "AveragePool",
     .attrs = kAveragePoolAttrs,
     .inputs = kPooledInput,
     .infer = InferPool,
     .grad = GradAveragePool,
     .space = &kPoolSpace,
     .cost = PoolCost},
    {.name = "LpPool",
     .attrs = kLpPoolAttrs,
     .inputs = kPooledInput,
     .infer = InferPool,
     .grad = GradLpPool,
     .space = &kPoolSpace,
     .cost = PoolCost},
    {.name = "GlobalAveragePool",
     .attrs = kGlobalAverageAttrs,
     .inputs = kPooledInput,
     .infer = InferGlobalPool,
     .grad = GradGlobalAveragePool,
     .space = &kGlobalAverageSpace,
     .cost = GlobalPoolCost},
    {.name = "GlobalMaxPool",
     .inputs = kPooledInput,
     .infer = InferGlobalPool,
     .grad = GradGlobalMaxPool,
     .space = &kGlobalMaxSpace,
     .cost = GlobalPoolCost},
    {.name = "GlobalLpPool",
     .attrs = kGlobalLpAttrs,
     .inputs = kPooledInput,
     .infer = InferGlobalPool,
     .grad = GradGlobalLpPool,
     .space = &kGlobalLpSpace,
     .cost = GlobalPoolCost},
};

}  // namespace

std::span<const OpDef> PoolOps() { return kPoolOps; }

}  // namespace msrt
