// Images and boxes: resizing, padding, regions of interest, suppression.
#include "tools/msconvert/mindir/import_rule.h"

namespace msrt::mindir_import {
namespace {

// Returns the mode that maps positions of the result to those of the image.
std::string CoordinatesOf(bool align_corners, bool half_pixel) {
  return align_corners ? "align_corners" : half_pixel ? "half_pixel" : "asymmetric";
}

// Resizes to given sizes, or by given factors, of the dims after the channels.
Status SetResized(PrimitiveCall& call, ValueId x, AttrList attrs) {
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  std::vector<int64_t> axes;
  for (int i = 2; i < rank; ++i) axes.push_back(i);
  const std::string_view argument = call.Has("size") ? "size" : "output_size";
  if (call.Has(argument)) {
    MSRT_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, call.Ints(argument));
    if (sizes.size() != axes.size())
      return InvalidModel("argument '", argument, "' has ", sizes.size(), " numbers, ", axes.size(),
                          " are needed");
    attrs.Set("sizes", std::move(sizes));
  } else {
    MSRT_ASSIGN_OR_RETURN(const Item scales, call.Get("scales"));
    std::vector<double> factors;
    for (size_t i = 0; i < scales.part_count(); ++i) {
      if (!scales.part(i).is(ItemKind::kNumber))
        return Unsupported("argument 'scales' must be constant");
      factors.push_back(scales.part(i).real);
    }
    attrs.Set("scales", std::move(factors));
  }
  attrs.Set("axes", std::move(axes));
  return call.SetResult(call.Add("Resize", {x}, std::move(attrs)));
}

Status ResizeNearest(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const bool corners, call.Bool("align_corners", false));
  MSRT_ASSIGN_OR_RETURN(const bool half, call.Bool("half_pixel_centers", false));
  const std::string rounding = corners || half ? "round_prefer_ceil" : "floor";
  return SetResized(call, x,
                    {{"mode", std::string("nearest")},
                     {"coordinate_transformation_mode", CoordinatesOf(corners, half)},
                     {"nearest_mode", rounding}});
}

Status ResizeLinear(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  constexpr std::string_view kWays[] = {"ASYMMETRIC", "ALIGN_CORNERS", "HALF_PIXEL"};
  // Without the argument, the centres of pixels are at a half.
  MSRT_ASSIGN_OR_RETURN(const std::string way,
                        call.Choice("coordinate_transformation_mode", kWays,
                                    call.target() == "half_pixel" ? "HALF_PIXEL" : "ASYMMETRIC"));
  MSRT_ASSIGN_OR_RETURN(const bool corners, call.Bool("align_corners", way == "ALIGN_CORNERS"));
  MSRT_ASSIGN_OR_RETURN(const bool half, call.Bool("half_pixel_centers", way == "HALF_PIXEL"));
  return SetResized(call, x,
                    {{"mode", std::string("linear")},
                     {"coordinate_transformation_mode", CoordinatesOf(corners, half)}});
}

// Begin and end of each axis: ((0, 0), (1, 2)).
Status PadAll(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const Item paddings, call.Get("paddings"));
  std::vector<int64_t> begins, ends;
  if (paddings.is(ItemKind::kTuple)) {
    for (const Item& p : *paddings.parts) {
      const auto pair = call.KnownInts(p);
      if (!pair || pair->size() != 2)
        return Unsupported("argument 'paddings' must be constant pairs");
      begins.push_back((*pair)[0]);
      ends.push_back((*pair)[1]);
    }
  } else {
    MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> flat, call.Ints("paddings"));
    for (size_t i = 0; i + 1 < flat.size(); i += 2) {
      begins.push_back(flat[i]);
      ends.push_back(flat[i + 1]);
    }
  }
  constexpr std::string_view kModes[] = {"CONSTANT"};
  MSRT_ASSIGN_OR_RETURN(const std::string mode, call.Choice("mode", kModes, "CONSTANT"));
  if (mode != "CONSTANT" && mode != "REFLECT")
    return Unsupported("argument 'mode' = ", mode, " is not supported");
  begins.insert(begins.end(), ends.begin(), ends.end());
  return call.SetResult(
      call.Add("Pad", {x},
               {{"pads", std::move(begins)},
                {"mode", std::string(mode == "REFLECT" ? "reflect" : "constant")}}));
}

// Begin and end of the last axis, then of the one before it, and so on.
Status PadLast(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> pairs, call.Ints("padding"));
  if (pairs.size() % 2 != 0 || pairs.size() / 2 > static_cast<size_t>(rank))
    return InvalidModel("argument 'padding' has ", pairs.size(), " numbers");
  const auto axes = static_cast<size_t>(rank);
  std::vector<int64_t> pads(2 * axes);
  for (size_t i = 0; i < pairs.size() / 2; ++i) {
    pads[axes - 1 - i] = pairs[2 * i];
    pads[2 * axes - 1 - i] = pairs[2 * i + 1];
  }
  AttrList attrs{{"pads", std::move(pads)}, {"mode", std::string(call.target())}};
  if (call.target() == "constant") {
    MSRT_ASSIGN_OR_RETURN(const double value, call.Float("value", 0));
    attrs.Set("value", value);
  }
  return call.SetResult(call.Add("Pad", {x}, std::move(attrs)));
}

// Pads with begins and ends of each axis as a tensor.
Status PadV3(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId x, call.Tensor("input"));
  MSRT_ASSIGN_OR_RETURN(const int rank, call.Rank(x));
  MSRT_ASSIGN_OR_RETURN(const std::vector<int64_t> pairs, call.Ints("paddings"));
  MSRT_ASSIGN_OR_RETURN(const bool by_axis, call.Bool("paddings_contiguous", true));
  constexpr std::string_view kModes[] = {"CONSTANT"};
  MSRT_ASSIGN_OR_RETURN(const std::string mode, call.Choice("mode", kModes, "CONSTANT"));
  const std::string_view ours = mode == "CONSTANT"  ? "constant"
                                : mode == "REFLECT" ? "reflect"
                                : mode == "EDGE"    ? "edge"
                                                    : "wrap";
  const size_t axes = pairs.size() / 2;
  if (pairs.size() % 2 != 0 || axes > static_cast<size_t>(rank) || !by_axis)
    return Unsupported("argument 'paddings' has ", pairs.size(), " numbers");
  std::vector<int64_t> pads(2 * static_cast<size_t>(rank));
  for (size_t i = 0; i < axes; ++i) {  // the last axis comes first
    pads[static_cast<size_t>(rank) - 1 - i] = pairs[2 * i];
    pads[2 * static_cast<size_t>(rank) - 1 - i] = pairs[2 * i + 1];
  }
  std::vector<ValueId> inputs{x};
  if (ours == "constant" && call.Has("constant_value")) {
    MSRT_ASSIGN_OR_RETURN(ValueId value, call.Tensor("constant_value"));
    MSRT_ASSIGN_OR_RETURN(value, call.Cast(value, call.type(x).dtype));
    inputs = {x, kNoValue, value};
  }
  return call.SetResult(
      call.Add("Pad", std::move(inputs), {{"pads", std::move(pads)}, {"mode", std::string(ours)}}));
}

// Regions are (image, x1, y1, x2, y2) and extend `roi_end_mode` pixels further.
Status RoiAlign(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId features, call.Tensor("features"));
  MSRT_ASSIGN_OR_RETURN(const ValueId rois, call.Tensor("rois"));
  MSRT_ASSIGN_OR_RETURN(const int64_t height, call.Int("pooled_height"));
  MSRT_ASSIGN_OR_RETURN(const int64_t width, call.Int("pooled_width"));
  MSRT_ASSIGN_OR_RETURN(const double scale, call.Float("spatial_scale"));
  MSRT_ASSIGN_OR_RETURN(const int64_t samples, call.Int("sample_num", 2));
  MSRT_ASSIGN_OR_RETURN(const int64_t end_mode, call.Int("roi_end_mode", 1));
  const auto columns = [&](int64_t from, int64_t to) {
    return call.Add("Slice", {rois},
                    {{"starts", std::vector<int64_t>{from}},
                     {"ends", std::vector<int64_t>{to}},
                     {"axes", std::vector<int64_t>{1}}});
  };
  MSRT_ASSIGN_OR_RETURN(ValueId images, columns(0, 1));
  MSRT_ASSIGN_OR_RETURN(ValueId boxes, columns(1, 5));
  MSRT_ASSIGN_OR_RETURN(images, call.Add("Squeeze", {images}, {{"axes", std::vector<int64_t>{1}}}));
  MSRT_ASSIGN_OR_RETURN(images, call.Cast(images, DType::kI64));
  // MindSpore's regions are not shifted by half a pixel and may be smaller than a pixel. In ONNX
  // only the mode with the shift has no minimum size, so that mode is used and the shift undone.
  if (!(scale > 0)) return InvalidModel("argument 'spatial_scale' = ", scale);
  const auto half = static_cast<float>(0.5 / scale), end = static_cast<float>(end_mode) + half;
  const float further[] = {half, half, end, end};
  MSRT_ASSIGN_OR_RETURN(
      const ValueId shift,
      call.Cast(call.Constant(ConstTensor::Floats({4}, further)), call.type(boxes).dtype));
  MSRT_ASSIGN_OR_RETURN(boxes, call.Add("Add", {boxes, shift}));
  return call.SetResult(call.Add("RoiAlign", {features, boxes, images},
                                 {{"coordinate_transformation_mode", std::string("half_pixel")},
                                  {"output_height", height},
                                  {"output_width", width},
                                  {"sampling_ratio", samples},
                                  {"spatial_scale", scale}}));
}

// Takes boxes with scores, (x1, y1, x2, y2, score). Returns the boxes in descending order of score,
// their former indices, and which of them are kept.
Status SuppressWithMask(PrimitiveCall& call) {
  MSRT_ASSIGN_OR_RETURN(const ValueId boxes, call.Tensor("bboxes"));
  MSRT_ASSIGN_OR_RETURN(const double threshold, call.Float("iou_threshold", 0.5));
  MSRT_ASSIGN_OR_RETURN(const int64_t count, call.KnownDim(boxes, 0));
  const auto columns = [&](ValueId from, int64_t begin, int64_t end) {
    return call.Add("Slice", {from},
                    {{"starts", std::vector<int64_t>{begin}},
                     {"ends", std::vector<int64_t>{end}},
                     {"axes", std::vector<int64_t>{1}}});
  };
  MSRT_ASSIGN_OR_RETURN(ValueId scores, columns(boxes, 4, 5));
  MSRT_ASSIGN_OR_RETURN(scores,
                        call.Add("Reshape", {scores}, {{"shape", std::vector<int64_t>{-1}}}));
  MSRT_ASSIGN_OR_RETURN(
      const std::vector<ValueId> order,
      call.AddMany("", "TopK", {scores}, {{"k", count}, {"axis", int64_t{0}}}, 2));
  MSRT_ASSIGN_OR_RETURN(const ValueId sorted,
                        call.Add("Gather", {boxes, order[1]}, {{"axis", int64_t{0}}}));
  MSRT_ASSIGN_OR_RETURN(ValueId corners, columns(sorted, 0, 4));
  MSRT_ASSIGN_OR_RETURN(corners,
                        call.Add("Unsqueeze", {corners}, {{"axes", std::vector<int64_t>{0}}}));
  MSRT_ASSIGN_OR_RETURN(
      const ValueId ranked,
      call.Add("Reshape", {order[0]}, {{"shape", std::vector<int64_t>{1, 1, -1}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId kept, call.Add("NonMaxSuppression", {corners, ranked},
                                                     {{"max_output_boxes_per_class", count},
                                                      {"iou_threshold", threshold}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId places,
                        columns(kept, 2, 3));  // one index per row, as ScatterND needs
  MSRT_ASSIGN_OR_RETURN(const ValueId nothing, call.Add("Expand", {call.Number(DType::kBool, 0)},
                                                        {{"shape", std::vector<int64_t>{count}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId flat,
                        call.Add("Reshape", {places}, {{"shape", std::vector<int64_t>{-1}}}));
  MSRT_ASSIGN_OR_RETURN(const ValueId all,
                        call.Add("GreaterOrEqual", {flat, call.Number(DType::kI64, 0)}));
  MSRT_ASSIGN_OR_RETURN(const ValueId mask, call.Add("ScatterND", {nothing, places, all}));
  MSRT_ASSIGN_OR_RETURN(const ValueId index, call.Cast(order[1], DType::kI32));
  return call.SetTupleResult({sorted, index, mask});
}

constexpr Rule kImageRules[] = {
    {"ResizeNearestNeighbor", "input size align_corners half_pixel_centers", ResizeNearest},
    {"ResizeNearestNeighborV2", "input size align_corners half_pixel_centers", ResizeNearest},
    {"UpsampleNearest1D", "input output_size scales", ResizeNearest},
    {"UpsampleNearest2D", "input output_size scales", ResizeNearest},
    {"UpsampleNearest3D", "input output_size scales", ResizeNearest},
    {"ResizeBilinear", "input size align_corners half_pixel_centers", ResizeLinear},
    {"ResizeBilinearV2", "input size align_corners half_pixel_centers", ResizeLinear},
    {"ResizeLinear1D", "input size coordinate_transformation_mode", ResizeLinear, "half_pixel"},
    {"UpsampleLinear1D", "input output_size scales align_corners", ResizeLinear, "half_pixel"},
    {"UpsampleBilinear2D", "input output_size scales align_corners", ResizeLinear, "half_pixel"},
    {"UpsampleTrilinear3D", "input output_size scales align_corners", ResizeLinear, "half_pixel"},
    {"Pad", "input paddings", PadAll},
    {"MirrorPad", "input paddings", PadAll},
    {"ConstantPadND", "input padding value", PadLast, "constant"},
    {"ReflectionPad1D", "input padding", PadLast, "reflect"},
    {"ReflectionPad2D", "input padding", PadLast, "reflect"},
    {"ReplicationPad1D", "input padding", PadLast, "edge"},
    {"ReplicationPad2D", "input padding", PadLast, "edge"},
    {"PadV3", "input paddings constant_value", PadV3},
    {"ROIAlign", "features rois", RoiAlign},
    {"NMSWithMask", "bboxes", SuppressWithMask},
};

}  // namespace

std::span<const Rule> ImageRules() { return kImageRules; }

}  // namespace msrt::mindir_import
