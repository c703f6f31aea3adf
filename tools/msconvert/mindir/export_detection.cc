// Ops of detectors, RoiAlign and NonMaxSuppression, as primitives of MindSpore.
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

// ---- RoiAlign -----------------------------------------------------------------------------------

// MindSpore's regions begin with their image index and are not shifted by half a pixel. Only in the
// mode that adds a pixel at their end may they be smaller than one pixel, so this mode is used, and
// the pixel is subtracted before.
Status LowerRoiAlign(NodeLowering& n) {
  constexpr size_t kX = 0, kRois = 1, kImages = 2;
  if (n.op().String("mode") != "avg")
    return Unsupported("attribute 'mode' = ", n.op().String("mode"),
                       ": MindSpore's ROIAlign has averages");
  if (n.dtype() != DType::kF32)
    return Unsupported("its input has element type ", n.dtype(), ", only f32 is exported");
  if (n.op().Int("sampling_ratio") == 0)
    return Unsupported("attribute 'sampling_ratio' = 0: MindSpore's ROIAlign takes a fixed number");
  const double scale = n.op().Float("spatial_scale");
  const auto part = [&](int64_t begin, int64_t end) {
    return n.Op("StridedSlice",
                {n.In(kRois), Ints{0, begin}, Ints{0, end}, Ints{1, 1}, 1, 1, 0, 0, 0});
  };
  Ref first = part(0, 2), last = part(2, 4);
  if (n.op().String("coordinate_transformation_mode") == "half_pixel") {
    first = n.Op("Sub", {first, n.Number(0.5 / scale)});
    last = n.Op("Sub", {last, n.Number(0.5 / scale)});
  } else {
    last = n.Op("Maximum", {last, n.Op("Add", {first, n.Number(1 / scale)})});
  }
  last = n.Op("Sub", {last, n.Number(1)});
  const Ref images = n.Op("ExpandDims", {n.Op("Cast", {n.In(kImages), TypeIdOf(DType::kF32)}), 1});
  const Ref rois = n.Op("Concat", {n.out().Tuple({images, first, last}), 1});
  n.SetOutput(n.Prim("ROIAlign",
                     {{"pooled_height", n.op().Int("output_height")},
                      {"pooled_width", n.op().Int("output_width")},
                      {"spatial_scale", scale},
                      {"sample_num", n.op().Int("sampling_ratio")},
                      {"roi_end_mode", 1}},
                     {n.In(kX), rois}));
  return OkStatus();
}

// ---- NonMaxSuppression --------------------------------------------------------------------------

constexpr size_t kBoxes = 0, kScores = 1, kMaxPerClass = 2, kOverlap = 3, kMinScore = 4;

struct Suppression {
  int64_t batch, classes, boxes, max_per_class;
  double overlap;
  std::optional<double> least;
};

Result<Suppression> SuppressionOf(const NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedShape(kBoxes));
  MSRT_RETURN_IF_ERROR(n.NeedShape(kScores));
  const auto number = [&](std::string_view attr, size_t input) -> Result<double> {
    if (!n.Has(input)) return n.op().Float(attr);
    const ConstTensor* known = n.op().constant(input);
    if (known == nullptr) return Unsupported("input ", input, " is not known before the run");
    return static_cast<double>(known->As<float>()[0]);
  };
  Suppression s{.batch = n.dims(kScores)[0],
                .classes = n.dims(kScores)[1],
                .boxes = n.dims(kScores)[2],
                .max_per_class = 0,
                .overlap = 0,
                .least = {}};
  MSRT_ASSIGN_OR_RETURN(s.overlap, number("iou_threshold", kOverlap));
  if (n.Has(kMinScore) || n.op().Has("score_threshold")) {
    MSRT_ASSIGN_OR_RETURN(s.least, number("score_threshold", kMinScore));
  }
  s.max_per_class = n.op().Int("max_output_boxes_per_class");
  if (n.Has(kMaxPerClass)) {
    if (n.op().constant(kMaxPerClass) == nullptr)
      return Unsupported("input ", kMaxPerClass, " is not known before the run");
    s.max_per_class = IntValues(*n.op().constant(kMaxPerClass))[0];
  }
  constexpr int64_t kMaxPairs = 256;
  if (s.batch * s.classes > kMaxPairs)
    return Unsupported(s.batch * s.classes,
                       " pairs of image and class are too many to be written out");
  if (s.batch * s.classes * s.boxes == 0 || s.max_per_class <= 0)
    return Unsupported("nothing can be selected");
  return s;
}

// Converts corners in any order, or a centre and a size, to two ordered corners: [boxes, 4].
Ref CornersOf(NodeLowering& n, const Ref& boxes) {
  const auto part = [&](int64_t begin) {
    return n.Op("StridedSlice",
                {boxes, Ints{0, begin}, Ints{0, begin + 2}, Ints{1, 1}, 1, 1, 0, 0, 0});
  };
  const Ref a = part(0), b = part(2);
  if (n.op().Int("center_point_box") != 0) {
    const Ref half = n.Op("Mul", {b, n.Number(0.5)});
    return n.Op("Concat", {n.out().Tuple({n.Op("Sub", {a, half}), n.Op("Add", {a, half})}), 1});
  }
  return n.Op("Concat", {n.out().Tuple({n.Op("Minimum", {a, b}), n.Op("Maximum", {a, b})}), 1});
}

// Returns rows (image, class, box) of one image and class, the highest score first.
Ref SelectedOf(NodeLowering& n, const Suppression& s, const Ref& corners, int64_t image,
               int64_t of_class) {
  const auto index = [&](int64_t value) {
    return n.out().Constant(ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&value, 1)));
  };
  const Ref classes = n.Op("Gather", {n.In(kScores), index(image), 0, 0});
  const Ref scores = n.Op("Gather", {classes, index(of_class), 0, 0});
  const Ref sorted = n.Prim("TopK", {{"sorted", true}}, {scores, s.boxes});
  const Ref ranked = n.out().Item(sorted, 0),
            order = n.Op("Cast", {n.out().Item(sorted, 1), TypeIdOf(DType::kI64)});
  const Ref boxes = n.Op(
      "Concat",
      {n.out().Tuple({n.Op("Gather", {corners, order, 0, 0}), n.Op("ExpandDims", {ranked, 1})}),
       1});
  Ref kept = n.out().Item(n.Prim("NMSWithMask", {{"iou_threshold", s.overlap}}, {boxes}), 2);
  if (s.least) kept = n.Op("LogicalAnd", {kept, n.Op("Greater", {ranked, n.Number(*s.least)})});
  if (s.max_per_class < s.boxes) {
    const Ref count =
        n.Op("CumSum", {n.Op("Cast", {kept, TypeIdOf(DType::kF32)}), 0, false, false});
    kept = n.Op("LogicalAnd",
                {kept, n.Op("LessEqual", {count, n.Number(static_cast<double>(s.max_per_class))})});
  }
  const Ref places = n.Op("Reshape", {n.Op("NonZero", {kept}), Ints{-1}});
  const Ref chosen = n.Op("ExpandDims", {n.Op("Gather", {order, places, 0, 0}), 1});
  const Ref nothing = n.Op("Mul", {chosen, index(0)});
  return n.Op("Concat", {n.out().Tuple({n.Op("Add", {nothing, index(image)}),
                                        n.Op("Add", {nothing, index(of_class)}), chosen}),
                         1});
}

Status LowerSuppression(NodeLowering& n) {
  MSRT_ASSIGN_OR_RETURN(const Suppression s, SuppressionOf(n));
  std::vector<Ref> rows;
  for (int64_t b = 0; b < s.batch; ++b) {
    const Ref index = n.out().Constant(ConstTensor::Of<int64_t>(DType::kI64, {}, std::span(&b, 1)));
    const Ref corners = CornersOf(n, n.Op("Gather", {n.In(kBoxes), index, 0, 0}));
    for (int64_t c = 0; c < s.classes; ++c) rows.push_back(SelectedOf(n, s, corners, b, c));
  }
  n.SetOutput(rows.size() == 1 ? rows[0] : n.Op("Concat", {n.out().Tuple(rows), 0}));
  return OkStatus();
}

constexpr Lowerer kDetectionLowerers[] = {{"RoiAlign", LowerRoiAlign},
                                          {"NonMaxSuppression", LowerSuppression}};

}  // namespace

std::span<const Lowerer> DetectionLowerers() { return kDetectionLowerers; }

}  // namespace msrt::mindir_export
