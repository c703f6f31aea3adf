// NonMaxSuppression: keeps the best of boxes that overlap too much.
#include <algorithm>
#include <numeric>

#include "ops/families.h"
#include "ops/filter.h"
#include "ops/infer.h"

namespace msrt {
namespace {

struct Corners {
  double top, left, bottom, right;
};

Corners CornersOf(const float* box, bool centers) {
  const double a = box[0], b = box[1], c = box[2], d = box[3];
  if (centers) return {b - d / 2, a - c / 2, b + d / 2, a + c / 2};
  return {std::min(a, c), std::min(b, d), std::max(a, c), std::max(b, d)};
}

double AreaOf(const Corners& box) { return (box.bottom - box.top) * (box.right - box.left); }

// A box without area overlaps nothing.
bool Overlap(const Corners& a, const Corners& b, double limit) {
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (!(height > 0 && width > 0 && AreaOf(a) > 0 && AreaOf(b) > 0)) return false;
  const double common = height * width;
  return common > limit * (AreaOf(a) + AreaOf(b) - common);
}

// Returns the candidate boxes of one class of one image, best first, equal ones in order. Boxes
// with a score of NaN are ignored.
std::vector<int64_t> Ranked(std::span<const float> scores, const SuppressionLimits& limits) {
  std::vector<int64_t> ranked;
  for (int64_t i = 0; i < std::ssize(scores); ++i) {
    const double score = scores[static_cast<size_t>(i)];
    if (limits.has_score ? score > limits.score : score == score) ranked.push_back(i);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  return ranked;
}

}  // namespace

std::vector<std::array<int64_t, 3>> SelectBoxes(const TensorView& boxes, const TensorView& scores,
                                                const SuppressionLimits& limits) {
  const int64_t batches = scores.dims[0], classes = scores.dims[1], count = scores.dims[2];
  std::vector<std::array<int64_t, 3>> selected;
  for (int64_t batch = 0; batch < batches; ++batch) {
    const float* of_batch = boxes.As<const float>() + batch * count * 4;
    for (int64_t c = 0; c < classes; ++c) {
      const float* of_class = scores.As<const float>() + (batch * classes + c) * count;
      std::vector<Corners> kept;
      for (int64_t i : Ranked({of_class, static_cast<size_t>(count)}, limits)) {
        if (std::ssize(kept) >= limits.boxes_per_class) break;
        const Corners box = CornersOf(of_batch + i * 4, limits.centers);
        if (std::any_of(kept.begin(), kept.end(),
                        [&](const Corners& k) { return Overlap(box, k, limits.overlap); }))
          continue;
        kept.push_back(box);
        selected.push_back({batch, c, i});
      }
    }
  }
  return selected;
}

Result<SuppressionLimits> SuppressionLimitsOf(const OpView& op, std::span<const TensorView> views) {
  const auto given = [&](size_t i) { return i < views.size() && views[i].present(); };
  SuppressionLimits limits;
  limits.boxes_per_class =
      given(2) ? *views[2].As<const int64_t>() : op.Int("max_output_boxes_per_class");
  limits.overlap = given(3) ? double{*views[3].As<const float>()} : op.Float("iou_threshold");
  if (!(limits.overlap >= 0 && limits.overlap <= 1))
    return InvalidArgument("iou_threshold = ", limits.overlap, ", must be in [0, 1]");
  limits.has_score = given(4) || op.Has("score_threshold");
  limits.score = given(4) ? double{*views[4].As<const float>()} : op.Float("score_threshold");
  limits.centers = op.Int("center_point_box") != 0;
  return limits;
}

namespace {

Status InferSuppression(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckRank(c, 0, 3));
  MSRT_RETURN_IF_ERROR(CheckRank(c, 1, 3));
  constexpr std::string_view kLimits[] = {"max_output_boxes_per_class", "iou_threshold",
                                          "score_threshold"};
  for (size_t i = 0; i < std::size(kLimits); ++i) {
    MSRT_RETURN_IF_ERROR(RefuseAttrAndInput(c.op(), kLimits[i], i + 2));
    if (c.has_input(i + 2) && c.input(i + 2).concrete() && c.input(i + 2).elements() != 1) {
      return InvalidModel("input ", i + 2, " '", kLimits[i], "' has shape ", c.dims(i + 2),
                          ", must have one element");
    }
  }
  if (c.input(0).rank_known) {
    MSRT_RETURN_IF_ERROR(SameDim(c.dims(0)[2], 4, "the numbers of a box").status());
    if (c.input(1).rank_known) {
      MSRT_RETURN_IF_ERROR(
          SameDim(c.dims(0)[0], c.dims(1)[0], "the batches of boxes and scores").status());
      MSRT_RETURN_IF_ERROR(
          SameDim(c.dims(0)[1], c.dims(1)[2], "the boxes and their scores").status());
    }
  }
  c.SetOutput(0, DType::kI64, {kUnknownDim, 3});
  return OkStatus();
}

Status SizeSuppression(const OpView& op, std::span<Type> outputs) {
  std::vector<TensorView> views(op.input_count());
  for (size_t i = 0; i < views.size(); ++i) {
    if (op.has_input(i)) views[i] = ViewOf(*op.constant(i));
  }
  MSRT_ASSIGN_OR_RETURN(const SuppressionLimits limits, SuppressionLimitsOf(op, views));
  outputs[0].dims[0] = static_cast<int64_t>(SelectBoxes(views[0], views[1], limits).size());
  return OkStatus();
}

constexpr DTypeSet kF32Only{DType::kF32}, kI64Only{DType::kI64};
constexpr AttrDef kSuppressionAttrs[] = {
    {.name = "center_point_box", .min_int = 0, .max_int = 1},
    {.name = "max_output_boxes_per_class"},
    {.name = "iou_threshold", .kind = AttrKind::kFloat, .min_float = 0, .max_float = 1},
    {.name = "score_threshold", .kind = AttrKind::kFloat},
};
constexpr ParamDef kSuppressionInputs[] = {
    {"boxes", kF32Only},
    {"scores", kF32Only},
    {"max_output_boxes_per_class", kI64Only, ParamDef::kOptional},
    {"iou_threshold", kF32Only, ParamDef::kOptional},
    {"score_threshold", kF32Only, ParamDef::kOptional},
};
constexpr DataSizesDef kSuppressionSizes{.inputs = 31, .fill = SizeSuppression};

constexpr OpDef kSuppressionOps[] = {
    {.name = "NonMaxSuppression",
     .attrs = kSuppressionAttrs,
     .inputs = kSuppressionInputs,
     .infer = InferSuppression,
     .sizes = &kSuppressionSizes},
};

}  // namespace

std::span<const OpDef> SuppressionOps() { return kSuppressionOps; }

}  // namespace msrt
