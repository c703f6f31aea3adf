// Resampling as primitives of MindSpore: its own interpolation if that computes the same, else
// constant indices and weights for each axis.
#include <algorithm>

#include "core/graph/constants.h"
#include "ops/resample.h"
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

// MindSpore's modes of mapping coordinates. kNone: it has no such mode.
enum class Native { kNone, kAsymmetric, kHalfPixel, kAlignCorners };

// MindSpore resizes two trailing axes of an f32 image, by exactly the ratio of their sizes.
Native NativeForm(const NodeLowering& n, const Resample& r) {
  if (r.rank != 4 || n.dtype() != DType::kF32 || r.antialias || r.mode == ResizeMode::kCubic)
    return Native::kNone;
  for (int i = 0; i < 4; ++i) {
    const ResizeAxis& a = r.axis[static_cast<size_t>(i)];
    if (i < 2 ? !r.Unchanged(a) : !a.scale_is_ratio) return Native::kNone;
  }
  if (r.mode == ResizeMode::kNearest) {
    const bool floors =
        r.coordinates == ResizeCoordinates::kAsymmetric && r.nearest == ResizeNearest::kFloor;
    return floors ? Native::kAsymmetric : Native::kNone;
  }
  switch (r.coordinates) {
    case ResizeCoordinates::kHalfPixel:
      return Native::kHalfPixel;
    case ResizeCoordinates::kAlignCorners:
      return Native::kAlignCorners;
    case ResizeCoordinates::kAsymmetric:
      return Native::kAsymmetric;
    default:
      return Native::kNone;
  }
}

// Resizes one axis by nearest neighbours: an index for each element of the result.
Ref Picked(NodeLowering& n, const Resample& r, const ResizeAxis& a, const Ref& x, int64_t axis) {
  Ints indices;
  for (int64_t y = 0; y < a.out; ++y)
    indices.push_back(std::clamp<int64_t>(TapsOf(r, a, SourceOf(r, a, y)).begin, 0, a.in - 1));
  return n.Op("Gather", {x, n.IntTensor(indices), axis, 0});
}

// Returns the weights [in, out] of each element of the input in each of the result.
Result<ConstTensor> WeightMatrix(const Resample& r, const ResizeAxis& a) {
  MSRT_ASSIGN_OR_RETURN(const NewConstant made, MakeConstant(DType::kF32, {a.in, a.out}));
  float* matrix = reinterpret_cast<float*>(made.bytes.data());
  std::vector<double> column(static_cast<size_t>(a.in));
  for (int64_t y = 0; y < a.out; ++y) {
    const double source = SourceOf(r, a, y);
    const Interval taps = TapsOf(r, a, source);
    std::vector<double> weights(static_cast<size_t>(taps.size()));
    WeightsOf(r, a, source, taps, weights);
    std::fill(column.begin(), column.end(), 0.0);
    for (int64_t t = taps.begin; t < taps.end; ++t) {
      column[static_cast<size_t>(std::clamp<int64_t>(t, 0, a.in - 1))] +=
          weights[static_cast<size_t>(t - taps.begin)];
    }
    for (int64_t x = 0; x < a.in; ++x)
      matrix[x * a.out + y] = static_cast<float>(column[static_cast<size_t>(x)]);
  }
  return made.tensor;
}

// Resizes one axis as a product with a matrix, over the last axis.
Result<Ref> Weighed(NodeLowering& n, const Resample& r, const ResizeAxis& a, const Ref& x,
                    int64_t axis) {
  MSRT_ASSIGN_OR_RETURN(const ConstTensor matrix, WeightMatrix(r, a));
  Ints perm;
  for (int64_t i = 0; i < r.rank; ++i) perm.push_back(i);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());
  const bool last = axis == r.rank - 1;
  const Ref product =
      n.Op("MatMulExt", {last ? x : n.Op("Transpose", {x, perm}), n.out().Constant(matrix)});
  return last ? product : n.Op("Transpose", {product, perm});
}

Status LowerByAxes(NodeLowering& n, const Resample& r) {
  Ref x = n.In(0);
  const DType dtype = n.dtype();
  const bool nearest = r.mode == ResizeMode::kNearest;
  if (!nearest && !IsFloat(dtype))
    return Unsupported("interpolation of ", dtype,
                       " elements rounds in a way that MindSpore lacks");
  if (!nearest && dtype != DType::kF32) x = n.Op("Cast", {x, TypeIdOf(DType::kF32)});
  for (int i = 0; i < r.rank; ++i) {
    const ResizeAxis& a = r.axis[static_cast<size_t>(i)];
    if (r.Unchanged(a)) continue;
    if (nearest) {
      x = Picked(n, r, a, x, i);
    } else {
      MSRT_ASSIGN_OR_RETURN(x, Weighed(n, r, a, x, i));
    }
  }
  n.SetOutput(nearest || dtype == DType::kF32 ? x : n.Op("Cast", {x, TypeIdOf(dtype)}));
  return OkStatus();
}

Status LowerResize(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedShape());
  if (!n.result().concrete())
    return Unsupported("the shape of the result is not known before the run");
  const ResizeLists lists = ResizeListsOf(n.op());
  MSRT_ASSIGN_OR_RETURN(const Resample r, ResampleOf(n.op(), n.dims(0), lists));
  if (r.coordinates == ResizeCoordinates::kTfCropAndResize) {
    return Unsupported(
        "attribute 'coordinate_transformation_mode' = tf_crop_and_resize is not exported");
  }
  const Native native = NativeForm(n, r);
  if (native == Native::kNone) return LowerByAxes(n, r);
  const Ints size{r.axis[2].out, r.axis[3].out};
  const char* primitive =
      r.mode == ResizeMode::kNearest ? "ResizeNearestNeighborV2" : "ResizeBilinearV2";
  n.SetOutput(n.Op(primitive,
                   {n.In(0), size, native == Native::kAlignCorners, native == Native::kHalfPixel}));
  return OkStatus();
}

// DepthToSpace and SpaceToDepth, by a transpose between two reshapes.
Status LowerBlocks(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedShape());
  const Dims& x = n.dims(0);
  const int64_t b = n.op().Int("blocksize");
  Ints split, perm;
  if (n.node().op == "SpaceToDepth") {
    split = {x[0], x[1], x[2] / b, b, x[3] / b, b};
    perm = {0, 3, 5, 1, 2, 4};
  } else if (n.op().String("mode") == "DCR") {
    split = {x[0], b, b, x[1] / (b * b), x[2], x[3]};
    perm = {0, 3, 4, 1, 5, 2};
  } else {
    split = {x[0], x[1] / (b * b), b, b, x[2], x[3]};
    perm = {0, 1, 4, 2, 5, 3};
  }
  const Ref turned = n.Op("Transpose", {n.Op("Reshape", {n.In(0), split}), perm});
  n.SetOutput(LowerReshape(n, turned, n.result().dims));
  return OkStatus();
}

constexpr Lowerer kResizeLowerers[] = {
    {"Resize", LowerResize},
    {"DepthToSpace", LowerBlocks},
    {"SpaceToDepth", LowerBlocks},
};

}  // namespace

std::span<const Lowerer> ResizeLowerers() { return kResizeLowerers; }

}  // namespace msrt::mindir_export
