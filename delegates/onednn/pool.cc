// MaxPool, AveragePool and the global pools.
#include "delegates/onednn/cost.h"
#include "delegates/onednn/plan.h"
#include "delegates/onednn/recipe.h"
#include "ops/window.h"

namespace msrt::onednn {
namespace {

using Primitive = dnnl::pooling_forward;

bool IsGlobal(const OpView& op) { return op.op().starts_with("Global"); }
bool IsMax(const OpView& op) { return op.op().ends_with("MaxPool"); }

// Nanoseconds a window element on one core: plain space runs through scalar loops.
double Nanoseconds(const OpView& op, Layout layout) {
  if (layout != Layout::kPlain) return 0.06;
  return IsGlobal(op) ? 1 : IsMax(op) ? 8 : 2;
}

// The library's fast loops know neither dilation nor windows that lie in the padding altogether.
std::string WindowRefusal(const OpView& op) {
  const auto windows = WindowsOf(op, op.input(0).dims, op.Ints("kernel_shape"), op.Int("ceil_mode") != 0);
  if (!windows.ok()) return windows.status().message();
  for (int i = 0; i < windows->rank; ++i) {
    const WindowAxis& axis = windows->axis[static_cast<size_t>(i)];
    if (axis.dilation != 1 && axis.kernel != 1) return "a dilated pool";
    if (axis.pad_begin >= axis.kernel || axis.pad_end >= axis.kernel) return "padding not smaller than the window";
  }
  return {};
}

std::string QueryPool(const NodeInfo& node, std::vector<Candidate>* candidates) {
  const OpView& op = *node.op;
  if (op.output_count() > 1 && op.has_output(1)) return "the indices of a MaxPool";
  if (IsGlobal(op) && (!op.input(0).rank_known || op.input(0).rank() < 3)) return "a pool that may have no space to go over";
  if (op.op() == "AveragePool" && op.Int("ceil_mode") != 0 && op.Int("count_include_pad") != 0) {
    return "an average that counts padding but not what ceil_mode adds to it";
  }
  if (std::string reason = IsGlobal(op) ? std::string() : WindowRefusal(*node.typical); !reason.empty()) return reason;
  const double input = static_cast<double>(node.typical->input(0).elements()),
               output = static_cast<double>(node.typical->output(0).elements());
  double taps = IsGlobal(op) || output == 0 ? input : output;
  if (!IsGlobal(op)) {
    for (int64_t k : op.Ints("kernel_shape")) taps *= static_cast<double>(k);
  }
  for (const Layout layout : kAllLayouts) {
    if (!Admits(op.input(0), layout) || (layout != Layout::kPlain && !HasLayout(node, 0))) continue;
    candidates->push_back(MakeCandidate(node, layout, layout, PerElement(node.machine, taps, Nanoseconds(op, layout), node.bytes),
                                        layout == Layout::kPlain ? "loops" : "jit"));
  }
  return {};
}

class PoolRecipe final : public Recipe {
 public:
  using Recipe::Recipe;

  Status Build(const OpView& op, bool, Plan* plan) const override {
    const Dims& x = op.input(0).dims;
    memory::dims kernel, strides, dilations, begin, end;
    if (IsGlobal(op)) {
      kernel.assign(x.begin() + 2, x.end());
      strides.assign(kernel.size(), 1);
      dilations.assign(kernel.size(), 0), begin.assign(kernel.size(), 0), end.assign(kernel.size(), 0);
    } else {
      MSRT_ASSIGN_OR_RETURN(const Windows windows, WindowsOf(op, x, op.Ints("kernel_shape"), op.Int("ceil_mode") != 0));
      for (int i = 0; i < windows.rank; ++i) {
        const WindowAxis& axis = windows.axis[static_cast<size_t>(i)];
        kernel.push_back(axis.kernel), strides.push_back(axis.stride), dilations.push_back(axis.dilation - 1),
            begin.push_back(axis.pad_begin);
        // In ceil mode the last window reaches beyond the padding.
        const int64_t reached = axis.start(axis.out - 1) + axis.span() - axis.in;
        end.push_back(std::max(axis.pad_end, reached));
      }
    }
    const bool counts_padding = op.op() == "AveragePool" && op.Int("count_include_pad") != 0;
    const auto algorithm = IsMax(op)        ? dnnl::algorithm::pooling_max
                           : counts_padding ? dnnl::algorithm::pooling_avg_include_padding
                                            : dnnl::algorithm::pooling_avg_exclude_padding;
    const memory::desc src = Describe(op.input(0), input_layout(0)), dst = Describe(op.output(0), output_layout(0));
    const Primitive::primitive_desc descriptor(Engine(), dnnl::prop_kind::forward_inference, algorithm, src, dst, strides, kernel,
                                               dilations, begin, end, UserScratchpad());
    plan->Add<Primitive::primitive_desc, Primitive>(descriptor,
                                                    {{DNNL_ARG_SRC, Place::Input(0), src}, {DNNL_ARG_DST, Place::Output(0), dst}});
    return OkStatus();
  }
  bool drops_nan() const override { return IsMax(op()); }
  bool begins_finite() const override { return IsMax(op()); }
};

constexpr Rule kPoolRules[] = {
    {"", "MaxPool", QueryPool, CompileAs<PoolRecipe>},
    {"", "AveragePool", QueryPool, CompileAs<PoolRecipe>},
    {"", "GlobalMaxPool", QueryPool, CompileAs<PoolRecipe>},
    {"", "GlobalAveragePool", QueryPool, CompileAs<PoolRecipe>},
};

}  // namespace

std::span<const Rule> PoolRules() { return kPoolRules; }

}  // namespace msrt::onednn
