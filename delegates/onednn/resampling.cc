// Resize where the library's coordinates are those of the node. It knows one rule for each mode:
// half pixels rounded to the nearest, and half pixels with linear weights. Many other attributes
// come to the same for many shapes (asymmetric with floor for whole factors), so the coordinates
// themselves are compared instead of names. The same comparison serves pieces.
#include <algorithm>
#include <cmath>
#include <optional>

#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"
#include "ops/resample.h"

namespace msrt::onednn {
namespace {

using Primitive = dnnl::resampling_forward;

// Whether the library, asked to resample `in` of the input axis to outputs `computed`, computes the
// outputs of the node's piece. It takes what it is given for the whole.
bool AxisAgrees(const Resample& r, const ResizeAxis& a, Interval in, Interval computed) {
  const double last = static_cast<double>(a.in - 1), own_last = static_cast<double>(in.size() - 1),
               ratio = static_cast<double>(in.size()) / static_cast<double>(computed.size());
  for (int64_t y = a.out_piece.begin; y < a.out_piece.end; ++y) {
    const double source = SourceOf(r, a, y);
    if (IsExtrapolated(r, a, source)) return false;
    const double theirs = (static_cast<double>(y - computed.begin) + 0.5) * ratio - 0.5,
                 inside = static_cast<double>(in.begin) + std::clamp(theirs, 0.0, own_last);
    if (r.mode == ResizeMode::kNearest) {
      // The library computes in floats: near a tie it may fall on either side.
      if (std::abs(theirs - std::floor(theirs) - 0.5) < 1e-4) return false;
      const int64_t tap = std::clamp(TapsOf(r, a, source).begin, int64_t{0}, a.in - 1);
      if (static_cast<double>(tap) != std::round(inside)) return false;
    } else if (std::abs(std::clamp(source, 0.0, last) - inside) >
               1e-9 * static_cast<double>(a.in)) {
      return false;
    }
  }
  return true;
}

// The outputs that the library computes from the input of a piece: those of the piece, or, for
// whole factors, all that the input enlarges to, of which the piece is a part. nullopt if neither
// is the same.
std::optional<Interval> ComputedOutputs(const Resample& r, const ResizeAxis& a) {
  if (a.in_piece.empty() || a.out_piece.empty()) return a.out_piece;
  if (AxisAgrees(r, a, a.in_piece, a.out_piece)) return a.out_piece;
  if (a.in == 0 || a.out % a.in != 0) return std::nullopt;
  const int64_t factor = a.out / a.in;
  const Interval all{a.in_piece.begin * factor, a.in_piece.end * factor};
  if (!all.Contains(a.out_piece) || !AxisAgrees(r, a, a.in_piece, all)) return std::nullopt;
  return all;
}

// The result that the library computes, from all of the input; the node's output is a part of it.
struct Computed {
  Dims dims;    // of all that is computed
  Dims origin;  // of the node's output in it
};

// kUnsupported, with the reason, where the library computes something else. Requires concrete
// types.
Result<Computed> ComputedFor(const OpView& op) {
  const ResizeLists lists = ResizeListsOf(op);
  const auto r = ResampleOf(op, op.input(0).dims, lists);
  if (!r.ok()) return Unsupported(r.status().message());
  if (r->rank < 3 || r->rank > 5) return Unsupported("a Resize of rank ", r->rank);
  if (r->mode == ResizeMode::kCubic) return Unsupported("cubic interpolation");
  if (r->antialias) return Unsupported("antialiasing");
  Computed computed;
  for (int i = 0; i < r->rank; ++i) {
    const ResizeAxis& a = r->axis[static_cast<size_t>(i)];
    if (i < 2 && !(r->Unchanged(a) && a.in_piece == a.out_piece))
      return Unsupported("a Resize of batch or channels");
    const std::optional<Interval> outputs = i < 2 ? a.out_piece : ComputedOutputs(*r, a);
    if (!outputs) return Unsupported("coordinates other than oneDNN's half pixels");
    computed.dims.push_back(outputs->size());
    computed.origin.push_back(a.out_piece.begin - outputs->begin);
  }
  return computed;
}

std::string QueryResize(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  for (size_t i = 1; i < op.input_count(); ++i) {
    if (op.has_input(i) && op.constant(i) == nullptr)
      return "roi, scales or sizes that are not constant";
  }
  if (const auto computed = ComputedFor(*node.typical); !computed.ok())
    return computed.status().message();
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
    MSRT_ASSIGN_OR_RETURN(const Computed computed, ComputedFor(op));
    const Type all = Type::Tensor(op.output(0).dtype, computed.dims);
    const bool is_part = !(computed.dims == op.output(0).dims);
    const memory::desc src = Describe(op.input(0), input_layout(0)),
                       dst = Describe(all, output_layout(0));
    const auto algorithm = op.String("mode") == "nearest" ? dnnl::algorithm::resampling_nearest
                                                          : dnnl::algorithm::resampling_linear;
    const Primitive::primitive_desc descriptor(Engine(), dnnl::prop_kind::forward_inference,
                                               algorithm, src, dst, UserScratchpad());
    const Place to = is_part ? Place::Scratch(plan->Reserve(dst.get_size())) : Place::Output(0);
    plan->Add<Primitive::primitive_desc, Primitive>(
        descriptor, {{DNNL_ARG_SRC, Place::Input(0), src}, {DNNL_ARG_DST, to, dst}});
    if (!is_part) return OkStatus();
    const memory::desc part =
        dst.submemory_desc(ToDnnl(op.output(0).dims), ToDnnl(computed.origin));
    plan->AddReorder(to, part, Place::Output(0), Describe(op.output(0), output_layout(0)));
    return OkStatus();
  }
};

constexpr std::string_view kResizeAttrs[] = {"input_dims", "input_origin", "output_origin",
                                            "output_dims"};
constexpr Rule kResamplingRules[] = {
    {"", "Resize", QueryResize, CompileAs<ResizeRecipe>, false, {DType::kF32}, kResizeAttrs}};

}  // namespace

std::span<const Rule> ResamplingRules() { return kResamplingRules; }

}  // namespace msrt::onednn
