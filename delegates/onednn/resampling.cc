// Resize where the library's coordinates are those of the node. It knows one rule for each mode:
// half pixels rounded to the nearest, and half pixels with linear weights. Many other attributes
// come to the same for many shapes (asymmetric with floor for whole factors), so the coordinates
// themselves are compared instead of names.
#include <algorithm>
#include <cmath>

#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"
#include "ops/resample.h"

namespace msrt::onednn {
namespace {

using Primitive = dnnl::resampling_forward;

bool AxisAgrees(const Resample& r, const ResizeAxis& a) {
  const double last = static_cast<double>(a.in - 1);
  for (int64_t y = 0; y < a.out; ++y) {
    const double source = SourceOf(r, a, y);
    if (IsExtrapolated(r, a, source)) return false;
    const double theirs =
        (static_cast<double>(y) + 0.5) * static_cast<double>(a.in) / static_cast<double>(a.out) -
        0.5;
    if (r.mode == ResizeMode::kNearest) {
      // The library computes in floats: near a tie it may fall on either side.
      if (std::abs(theirs - std::floor(theirs) - 0.5) < 1e-4) return false;
      const int64_t tap = std::clamp(TapsOf(r, a, source).begin, int64_t{0}, a.in - 1);
      if (static_cast<double>(tap) != std::round(std::clamp(theirs, 0.0, last))) return false;
    } else if (std::abs(std::clamp(source, 0.0, last) - std::clamp(theirs, 0.0, last)) >
               1e-9 * static_cast<double>(a.in)) {
      return false;
    }
  }
  return true;
}

// Empty where the library computes the same. Requires concrete types.
std::string Disagreement(const OpView& op) {
  const ResizeLists lists = ResizeListsOf(op);
  const auto r = ResampleOf(op, op.input(0).dims, lists);
  if (!r.ok()) return r.status().message();
  if (r->rank < 3 || r->rank > 5) return StrCat("a Resize of rank ", r->rank);
  if (r->mode == ResizeMode::kCubic) return "cubic interpolation";
  if (r->antialias) return "antialiasing";
  for (int i = 0; i < r->rank; ++i) {
    const ResizeAxis& a = r->axis[static_cast<size_t>(i)];
    if (i < 2 && !r->Unchanged(a)) return "a Resize of batch or channels";
    if (i >= 2 && a.in > 0 && !AxisAgrees(*r, a))
      return "coordinates other than oneDNN's half pixels";
  }
  return {};
}

std::string QueryResize(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  for (size_t i = 1; i < op.input_count(); ++i) {
    if (op.has_input(i) && op.constant(i) == nullptr)
      return "roi, scales or sizes that are not constant";
  }
  if (std::string reason = Disagreement(*node.typical); !reason.empty()) return reason;
  const bool nearest = op.String("mode") == "nearest";
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast, BlockedLayout()}) {
    if (!Admits(op.input(0), layout) || !HasLayout(node, 0)) continue;
    const double channels_last = nearest ? 0.1 : 0.21, plain = nearest ? 0.5 : 3.3;
    const double nanoseconds = layout == Layout::kPlain          ? plain
                               : layout == Layout::kChannelsLast ? channels_last
                                                                 : 1.7 * channels_last;
    candidates->push_back(MakeCandidate(
        node, layout, layout,
        PerElement(node.machine, static_cast<double>(node.typical->output(0).elements()),
                   nanoseconds, node.bytes),
        "jit"));
  }
  return {};
}

class ResizeRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    if (std::string reason = Disagreement(op); !reason.empty()) return Unsupported(reason);
    const memory::desc src = Describe(op.input(0), input_layout(0)),
                       dst = Describe(op.output(0), output_layout(0));
    const auto algorithm = op.String("mode") == "nearest" ? dnnl::algorithm::resampling_nearest
                                                          : dnnl::algorithm::resampling_linear;
    const Primitive::primitive_desc descriptor(Engine(), dnnl::prop_kind::forward_inference,
                                               algorithm, src, dst, UserScratchpad());
    plan->Add<Primitive::primitive_desc, Primitive>(
        descriptor, {{DNNL_ARG_SRC, Place::Input(0), src}, {DNNL_ARG_DST, Place::Output(0), dst}});
    return OkStatus();
  }
};

constexpr Rule kResamplingRules[] = {{"", "Resize", QueryResize, CompileAs<ResizeRecipe>}};

}  // namespace

std::span<const Rule> ResamplingRules() { return kResamplingRules; }

}  // namespace msrt::onednn
