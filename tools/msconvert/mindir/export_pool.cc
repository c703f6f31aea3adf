// Pools as primitives of MindSpore. Its pools pad in their own ways, so the padding is a separate
// node.
#include <algorithm>
#include <limits>

#include "core/base/checked_math.h"
#include "core/graph/constants.h"
#include "ops/window.h"
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

// The windows of two or three axes, and the end of the last window: the part that a window of ceil
// mode overhangs is padding too.
struct PoolForm {
  bool one_axis = false;
  std::vector<WindowAxis> axes;

  bool three() const { return axes.size() == 3; }

  bool padded() const {
    for (const WindowAxis& a : axes) {
      if (a.pad_begin != 0 || End(a) > 0) return true;
    }
    return false;
  }
  static int64_t End(const WindowAxis& a) {
    return a.stride * (a.out - 1) + a.span() - a.in - a.pad_begin;
  }
  Ints Kernel() const { return List(&WindowAxis::kernel); }
  Ints Strides() const { return List(&WindowAxis::stride); }
  // In the order of PadV3: the last axis first. A negative end crops what no window reads.
  Ints Pads() const {
    Ints pads;
    for (size_t i = axes.size(); i-- > 0;)
      pads.insert(pads.end(), {axes[i].pad_begin, End(axes[i])});
    return pads;
  }

 private:
  Ints List(int64_t WindowAxis::*member) const {
    Ints values;
    for (const WindowAxis& a : axes) values.push_back(a.*member);
    return values;
  }
};

Result<PoolForm> FormOf(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  MSRT_ASSIGN_OR_RETURN(
      const Windows windows,
      WindowsOf(n.op(), n.dims(0), n.op().Ints("kernel_shape"), n.op().Int("ceil_mode") != 0));
  PoolForm form;
  form.one_axis = windows.rank == 1;
  if (form.one_axis) form.axes.emplace_back();
  for (int i = 0; i < windows.rank; ++i) {
    const WindowAxis& axis = windows.axis[static_cast<size_t>(i)];
    if (!IsKnown(axis.in))
      return Unsupported("dim ", i + 2, " of the input is not known before the run");
    if (axis.dilation != 1)
      return Unsupported("attribute 'dilations': MindSpore's pools have none");
    form.axes.push_back(axis);
  }
  return form;
}

Ints Prefixed(Ints values) {
  values.insert(values.begin(), {1, 1});
  return values;
}

Ref Padded(NodeLowering& n, const PoolForm& form, const Ref& x, double value) {
  if (!form.padded()) return x;
  return n.Prim("PadV3", {{"mode", "constant"}, {"paddings_contiguous", true}},
                {x, form.Pads(), n.Number(value)});
}

PrimAttrs Attrs3d(const PoolForm& form) {
  return {{"kernel_size", Prefixed(form.Kernel())},
          {"strides", Prefixed(form.Strides())},
          {"ceil_mode", 0},
          {"pad_mode", "VALID"},
          {"format", "NCDHW"},
          {"pad_list", Ints(6, 0)}};
}

Status LowerMaxPool(NodeLowering& n) {
  if (n.Wants(1)) return Unsupported("the second output (indices) is not exported");
  if (!IsFloat(n.dtype()))
    return Unsupported("MindSpore's MaxPool has no element type ", n.dtype());
  MSRT_ASSIGN_OR_RETURN(const PoolForm form, FormOf(n));
  Ref x = form.one_axis ? n.Op("ExpandDims", {n.In(0), 2}) : n.In(0);
  x = Padded(n, form, x, -std::numeric_limits<double>::infinity());
  if (form.three()) {
    n.SetOutput(n.Prim("MaxPool3D", Attrs3d(form), {x}));
    return OkStatus();
  }
  x = n.Prim("MaxPool",
             {{"pad_mode", "VALID"},
              {"kernel_size", Prefixed(form.Kernel())},
              {"format", "NCHW"},
              {"strides", Prefixed(form.Strides())}},
             {x});
  n.SetOutput(form.one_axis ? n.Op("Squeeze", {x, Ints{2}}) : x);
  return OkStatus();
}

// Returns the factor by which MindSpore's divisor is too large for each element of the result: it
// counts the padding too.
Result<ConstTensor> Corrections(const PoolForm& form, bool count_padding) {
  Dims dims{1, 1};
  for (const WindowAxis& a : form.axes) dims.push_back(a.out);
  MSRT_ASSIGN_OR_RETURN(const NewConstant made, MakeConstant(DType::kF32, dims));
  const std::span<float> factors(reinterpret_cast<float*>(made.bytes.data()),
                                 static_cast<size_t>(dims.elements()));
  const auto factor = [&](const WindowAxis& a, int64_t y) {
    const Interval taps =
        count_padding ? a.Taps(y, -a.pad_begin, a.in + a.pad_end) : a.TapsInside(y);
    return static_cast<double>(a.kernel) / static_cast<double>(taps.end - taps.begin);
  };
  for (size_t place = 0; place < factors.size(); ++place) {
    double product = 1;
    auto rest = static_cast<int64_t>(place);
    for (size_t i = form.axes.size(); i-- > 0; rest /= form.axes[i].out)
      product *= factor(form.axes[i], rest % form.axes[i].out);
    factors[place] = static_cast<float>(product);
  }
  return made.tensor;
}

Status LowerAveragePool(NodeLowering& n) {
  if (n.dtype() != DType::kF32)
    return Unsupported("MindSpore's AvgPool has no element type ", n.dtype(), " on the CPU");
  MSRT_ASSIGN_OR_RETURN(const PoolForm form, FormOf(n));
  Ref x = form.one_axis ? n.Op("ExpandDims", {n.In(0), 2}) : n.In(0);
  constexpr int kValid = 2, kNchw = 0;  // MindSpore's numbers
  x = Padded(n, form, x, 0);
  if (form.three()) {
    PrimAttrs attrs = Attrs3d(form);
    attrs.insert(attrs.end(), {{"pad", 0}, {"divisor_override", 0}, {"count_include_pad", true}});
    x = n.Prim("AvgPool3D", attrs, {x});
    n.out().Describe(x, {&n.result(), 1});  // MindSpore does not infer it
  } else {
    x = n.Op("AvgPool", {x, form.Kernel(), form.Strides(), kValid, kNchw});
  }
  if (form.padded()) {
    MSRT_ASSIGN_OR_RETURN(const ConstTensor factors,
                          Corrections(form, n.op().Int("count_include_pad") != 0));
    const auto f = factors.As<float>();
    if (std::any_of(f.begin(), f.end(), [](float factor) { return factor != 1; }))
      x = n.Op("Mul", {x, n.out().Constant(factors)});
  }
  n.SetOutput(form.one_axis ? n.Op("Squeeze", {x, Ints{2}}) : x);
  return OkStatus();
}

Status LowerGlobal(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank());
  Ints axes;
  for (int i = 2; i < n.dims(0).rank(); ++i) axes.push_back(i);
  // No axes would mean all of them.
  n.SetOutput(axes.empty() ? n.In(0) : n.Op(n.primitive(), {n.In(0), axes, true}));
  return OkStatus();
}

// MindSpore sums over a radius, ONNX over a number of channels, whose middle differs if that number
// is even.
Status LowerLocalResponse(NodeLowering& n) {
  const int64_t channels = n.op().Int("size");
  if (channels % 2 == 0)
    return Unsupported("attribute 'size' = ", channels,
                       ": MindSpore's LRN has odd numbers of channels only");
  n.SetOutput(n.Prim("LRN",
                     {{"norm_region", "ACROSS_CHANNELS"},
                      {"beta", n.op().Float("beta")},
                      {"depth_radius", channels / 2},
                      {"bias", n.op().Float("bias")},
                      {"alpha", n.op().Float("alpha") / static_cast<double>(channels)}},
                     {n.In(0)}));
  return OkStatus();
}

constexpr Lowerer kPoolLowerers[] = {
    {"MaxPool", LowerMaxPool},
    {"AveragePool", LowerAveragePool},
    {"GlobalAveragePool", LowerGlobal, "ReduceMean"},
    {"GlobalMaxPool", LowerGlobal, "ReduceMax"},
    {"LRN", LowerLocalResponse},
};

}  // namespace

std::span<const Lowerer> PoolLowerers() { return kPoolLowerers; }

}  // namespace msrt::mindir_export
