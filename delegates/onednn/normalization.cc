// BatchNormalization with given statistics, and LayerNormalization. oneDNN 3.2 has no group or instance normalization.
#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"

namespace msrt::onednn {
namespace {

using Flags = dnnl::normalization_flags;

// ---- BatchNormalization ----------------------------------------------------------------------------------------------------------

constexpr size_t kScale = 1, kShift = 2, kMean = 3, kVariance = 4;

std::string QueryBatch(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.input(0).rank() < 2 || op.input(0).rank() > 5) return StrCat("an input of rank ", op.input(0).rank());
  const double elements = static_cast<double>(node.typical->output(0).elements());
  for (const Layout layout : kAllLayouts) {
    if (!Admits(op.input(0), layout) || (layout != Layout::kPlain && !HasLayout(node, 0))) continue;
    Candidate c =
        MakeCandidate(node, layout, layout, PerElement(node.machine, elements, layout == Layout::kPlain ? 1.2 : 0.15, node.bytes), "jit");
    c.in_place = {{0u, 0u}};
    candidates->push_back(std::move(c));
  }
  return {};
}

class BatchRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    using Primitive = dnnl::batch_normalization_forward;
    const memory::desc data = Describe(op.input(0), input_layout(0)), channel = DescribePlain({op.input(0).dims[1]});
    const auto flags = Flags::use_global_stats | Flags::use_scale | Flags::use_shift;
    const Primitive::primitive_desc descriptor(Engine(), dnnl::prop_kind::forward_inference, data, data,
                                               static_cast<float>(op.Float("epsilon")), flags, UserScratchpad());
    plan->Add<Primitive::primitive_desc, Primitive>(descriptor, {{DNNL_ARG_SRC, Place::Input(0), data},
                                                                 {DNNL_ARG_SCALE, Place::Input(kScale), channel},
                                                                 {DNNL_ARG_SHIFT, Place::Input(kShift), channel},
                                                                 {DNNL_ARG_MEAN, Place::Input(kMean), channel},
                                                                 {DNNL_ARG_VARIANCE, Place::Input(kVariance), channel},
                                                                 {DNNL_ARG_DST, Place::Output(0), data}});
    return OkStatus();
  }
};

// ---- LayerNormalization ----------------------------------------------------------------------------------------------------------

int AxisOf(const OpView& op) {
  const auto axis = static_cast<int>(op.Int("axis"));
  return axis < 0 ? axis + op.input(0).rank() : axis;
}

// The normalised dims are the last ones, so the tensor is rows of `row` elements.
int64_t RowOf(const OpView& op) { return op.input(0).dims.product(AxisOf(op), op.input(0).rank()); }

std::string QueryLayer(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.typical;
  for (size_t o = 1; o < node.op->output_count(); ++o) {
    if (node.op->has_output(o)) return "the mean or deviation of a LayerNormalization";
  }
  for (size_t i = 1; i < op.input_count(); ++i) {
    if (op.has_input(i) && op.input(i).elements() != RowOf(op)) return "a scale or bias that is broadcast";
  }
  Candidate c = MakeCandidate(node, Layout::kPlain, Layout::kPlain,
                              PerElement(node.machine, static_cast<double>(op.output(0).elements()), 0.25, node.bytes), "jit");
  c.in_place = {{0u, 0u}};
  candidates->push_back(std::move(c));
  return {};
}

class LayerRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    using Primitive = dnnl::layer_normalization_forward;
    const int64_t row = RowOf(op);
    for (size_t i = 1; i < op.input_count(); ++i) {
      if (op.has_input(i) && op.input(i).elements() != row) return Unsupported("scale or bias is broadcast");
    }
    const memory::desc data = DescribePlain({op.input(0).elements() / row, row}), factors = DescribePlain({row});
    const bool has_shift = op.has_input(kShift);
    const auto flags = has_shift ? Flags::use_scale | Flags::use_shift : Flags::use_scale;
    const Primitive::primitive_desc descriptor(Engine(), dnnl::prop_kind::forward_inference, data, data,
                                               static_cast<float>(op.Float("epsilon")), flags, UserScratchpad());
    std::vector<Argument> arguments{
        {DNNL_ARG_SRC, Place::Input(0), data}, {DNNL_ARG_SCALE, Place::Input(kScale), factors}, {DNNL_ARG_DST, Place::Output(0), data}};
    if (has_shift) arguments.push_back({DNNL_ARG_SHIFT, Place::Input(kShift), factors});
    plan->Add<Primitive::primitive_desc, Primitive>(descriptor, std::move(arguments));
    return OkStatus();
  }
};

std::string RefuseNormalization(const NodeInfo& node, std::vector<Candidate>*) {
  return StrCat(node.op->op(), ": oneDNN 3.2 has no such primitive");
}

constexpr Rule kNormalizationRules[] = {
    {"", "BatchNormalization", QueryBatch, CompileAs<BatchRecipe>},
    {"", "LayerNormalization", QueryLayer, CompileAs<LayerRecipe>},
    {"", "GroupNormalization", RefuseNormalization, nullptr},
    {"", "InstanceNormalization", RefuseNormalization, nullptr},
};

}  // namespace

std::span<const Rule> NormalizationRules() { return kNormalizationRules; }

}  // namespace msrt::onednn
