// Inverses of windowed ops: MaxUnpool (moves values back to where pooling found them), Col2Im (sums
// overlapping blocks).
#include <algorithm>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"
#include "ops/output_space.h"
#include "ops/window.h"

namespace msrt {
namespace {

constexpr int64_t kMaxUnpooledExtent = int64_t{1} << 40;

Status CheckExtents(std::span<const int64_t> extents, int64_t least, std::string_view what) {
  for (int64_t e : extents) {
    if (e < least || e > kMaxUnpooledExtent)
      return InvalidModel(what, " = ", extents, ": each must be at least ", least);
  }
  return OkStatus();
}

// ---- MaxUnpool ----------------------------------------------------------------------------------

// Returns the dims before pooling: the inverse of the number of windows.
Result<Dims> UnpooledDims(const OpView& op, const Dims& x) {
  MSRT_RETURN_IF_ERROR(CheckSpatialRank(x));
  MSRT_ASSIGN_OR_RETURN(const Windows windows, TransposedWindowsOf(op, x, op.Ints("kernel_shape")));
  Dims out = x;
  for (int i = 0; i < windows.rank; ++i) out[2 + i] = windows.axis[static_cast<size_t>(i)].out;
  return out;
}

Status InferMaxUnpool(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "unpooled_shape", 2));
  const Type &x = c.input(0), &indices = c.input(1);
  if (!x.rank_known) {
    c.SetOutput(0, Type::UnrankedTensor(x.dtype));
    return OkStatus();
  }
  MSRT_RETURN_IF_ERROR(CheckRank(c, 1, x.rank()));
  for (int i = 0; indices.rank_known && i < x.rank(); ++i) {
    MSRT_RETURN_IF_ERROR(
        SameDim(x.dims[i], indices.dims[i], "a dim of input and indices").status());
  }
  MSRT_ASSIGN_OR_RETURN(Dims out, UnpooledDims(c.op(), x.dims));
  if (c.op().Has("unpooled_shape") || c.has_input(2)) {
    const auto shape = IntsAttrOrInput(c.op(), "unpooled_shape", 2);
    if (!shape) {
      c.SetOutput(0, x.dtype, Dims::Filled(x.rank(), kUnknownDim));
      return OkStatus();
    }
    if (std::ssize(*shape) != x.rank())
      return InvalidModel("the output shape has ", shape->size(), " dims, must have ", x.rank());
    MSRT_RETURN_IF_ERROR(CheckExtents(*shape, 0, "the output shape"));
    for (int i = 0; i < out.rank(); ++i) {
      const int64_t wanted = (*shape)[static_cast<size_t>(i)];
      const bool fits = i < 2 ? wanted == out[i] : wanted >= out[i];
      if (IsKnown(out[i]) && !fits)
        return InvalidModel("the output shape ", Dims(*shape), " does not hold the unpooled ", out);
      out[i] = wanted;
    }
  }
  c.SetOutput(0, x.dtype, out);
  return OkStatus();
}

// ---- Col2Im: [N, C * block, blocks] -> [N, C, image...] -----------------------------------------

// Checks the number of blocks of an image of `out` against `blocks`.
Status CheckBlocks(const OpView& op, const Dims& out, std::span<const int64_t> block,
                   int64_t blocks) {
  MSRT_ASSIGN_OR_RETURN(const Windows windows, WindowsOf(op, out, block));
  int64_t expected = 1;
  for (int i = 0; i < windows.rank; ++i) {
    if (!CheckedMul(expected, windows.axis[static_cast<size_t>(i)].out, &expected))
      return InvalidModel("the image has too many blocks");
  }
  return SameDim(expected, blocks, "the blocks of the image and the last dim of input 0").status();
}

Status InferCol2Im(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "image_shape", 1, true));
  MSRT_RETURN_IF_ERROR(CheckListAttrOrInput(c.op(), "block_shape", 2, true));
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 3));
  const Type& x = c.input(0);
  const auto image = IntsAttrOrInput(c.op(), "image_shape", 1),
             block = IntsAttrOrInput(c.op(), "block_shape", 2);
  if (!image) {
    c.SetOutput(0, Type::UnrankedTensor(x.dtype));
    return OkStatus();
  }
  MSRT_RETURN_IF_ERROR(CheckExtents(*image, 0, "image_shape"));
  if (image->empty() || image->size() > kMaxSpace)
    return InvalidModel("image_shape has ", image->size(), " dims, must have 1 to ", kMaxSpace);
  Dims out{x.rank_known ? x.dims[0] : kUnknownDim, kUnknownDim};
  for (int64_t e : *image) out.push_back(e);
  if (block) {
    MSRT_RETURN_IF_ERROR(CheckExtents(*block, 1, "block_shape"));
    int64_t elements;
    if (!CheckedProduct(*block, &elements))
      return InvalidModel("block_shape = ", *block, " is too large");
    if (x.rank_known && IsKnown(x.dims[1])) {
      if (x.dims[1] % elements != 0)
        return InvalidModel("dim 1 of input 0, ", x.dims, ", must be a multiple of ", elements,
                            ", a block");
      out[1] = x.dims[1] / elements;
    }
    MSRT_RETURN_IF_ERROR(CheckBlocks(c.op(), out, *block, x.rank_known ? x.dims[2] : kUnknownDim));
  }
  c.SetOutput(0, x.dtype, out);
  return OkStatus();
}

// Axes: batch and channels; blocks overlap in space, which stays whole.
Status ResolveCol2Im(const OpView& op, ResolvedSpace* space) {
  const auto block = IntsAttrOrInput(op, "block_shape", 2);
  if (!block) return Unsupported("cannot be cut before its block_shape is known");
  int64_t elements = 1;
  for (int64_t e : *block) elements *= e;
  const Dims &x = op.input(0).dims, &out = op.output(0).dims;
  for (int d : {0, 1}) {
    space->axes.Add(AxisKind::kParallel, out[d]);
    space->outputs[0].dims[static_cast<size_t>(d)] = DimMap::Same(d, out[d]);
  }
  space->inputs[0].dims[0] = DimMap::Same(0, x[0]);
  space->inputs[0].dims[1] = DimMap::Block(1, elements, x[1]);
  return OkStatus();
}

Cost CostCol2Im(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  cost.flops = static_cast<double>(op.input(0).elements());
  return cost;
}

// ---- entries ------------------------------------------------------------------------------------

constexpr SpaceDef kCol2ImSpace{.resolve = ResolveCol2Im};

constexpr AttrDef kMaxUnpoolAttrs[] = {
    {.name = "kernel_shape",
     .kind = AttrKind::kInts,
     .required = true,
     .min_int = 1,
     .max_int = kMaxWindow,
     .max_count = kMaxSpace},
    kStridesAttr,
    kPadsAttr,
    // Includes batch and channels, unlike the output_shape of a transposed convolution.
    {.name = "unpooled_shape",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxUnpooledExtent,
     .max_count = 2 + kMaxSpace},
};
constexpr AttrDef kCol2ImAttrs[] = {
    kStridesAttr,
    kPadsAttr,
    kDilationsAttr,
    {.name = "image_shape",
     .kind = AttrKind::kInts,
     .min_int = 0,
     .max_int = kMaxUnpooledExtent,
     .max_count = kMaxSpace},
    {.name = "block_shape",
     .kind = AttrKind::kInts,
     .min_int = 1,
     .max_int = kMaxWindow,
     .max_count = kMaxSpace},
};
constexpr ParamDef kMaxUnpoolInputs[] = {
    {"X", kFloatTypes}, {"I", kIndexTypes}, {"unpooled_shape", kIndexTypes, ParamDef::kOptional}};
constexpr ParamDef kCol2ImInputs[] = {{"input", kNumberTypes},
                                      {"image_shape", kIndexTypes, ParamDef::kOptional},
                                      {"block_shape", kIndexTypes, ParamDef::kOptional}};

constexpr OpDef kUnpoolOps[] = {
    // An index may point anywhere in the whole output, so nothing can be cut.
    {.name = "MaxUnpool",
     .attrs = kMaxUnpoolAttrs,
     .inputs = kMaxUnpoolInputs,
     .infer = InferMaxUnpool,
     .grad = GradMaxUnpool},
    {.name = "Col2Im",
     .attrs = kCol2ImAttrs,
     .inputs = kCol2ImInputs,
     .infer = InferCol2Im,
     .grad = GradCol2Im,
     .space = &kCol2ImSpace,
     .cost = CostCol2Im},
};

}  // namespace

std::span<const OpDef> UnpoolOps() { return kUnpoolOps; }

}  // namespace msrt
