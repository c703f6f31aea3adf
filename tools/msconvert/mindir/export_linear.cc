// Convolutions and matrix products as primitives of MindSpore.
#include "ops/window.h"
#include "tools/msconvert/mindir/export_lower.h"

namespace msrt::mindir_export {
namespace {

constexpr size_t kX = 0, kW = 1, kB = 2, kZ = 3;

// Applies the epilogue of fused ops to their product, after the bias.
Ref Epilogue(NodeLowering& n, Ref product, size_t residual) {
  if (n.Has(residual)) product = n.Op("Add", {product, n.In(residual)});
  if (!n.op().Has("activation")) return product;
  return LowerActivation(n, product, n.op().String("activation"), n.op().Float("activation_alpha"),
                         n.op().Float("activation_beta"));
}

// ---- convolutions -------------------------------------------------------------------------------

// One spatial axis becomes two for MindSpore, the first of extent 1.
Ref WithSecondAxis(NodeLowering& n, const Ref& x) { return n.Op("ExpandDims", {x, 2}); }
Ref WithoutSecondAxis(NodeLowering& n, const Ref& x) { return n.Op("Squeeze", {x, Ints{2}}); }

struct ConvForm {
  Ints kernel, strides, dilations, pads;  // pads: begin and end of an axis side by side
  int64_t groups = 1;

  void AddSecondAxis() {
    kernel.insert(kernel.begin(), 1);
    strides.insert(strides.begin(), 1);
    dilations.insert(dilations.begin(), 1);
    pads.insert(pads.begin(), {0, 0});
  }
};

Result<ConvForm> FormOf(NodeLowering& n, bool transposed) {
  MSRT_RETURN_IF_ERROR(n.NeedRank(kX));
  MSRT_RETURN_IF_ERROR(n.NeedShape(kW));
  const Dims& x = n.dims(kX);
  if (x.rank() == 5 && transposed)
    return Unsupported("MindSpore has no transposed convolution over three axes on the CPU");
  const Ints kernel(n.dims(kW).begin() + 2, n.dims(kW).end());
  MSRT_ASSIGN_OR_RETURN(const Windows windows, transposed ? TransposedWindowsOf(n.op(), x, kernel)
                                                          : WindowsOf(n.op(), x, kernel));
  ConvForm form;
  form.kernel = kernel;
  form.groups = n.op().Int("group");
  const bool computed = n.op().String("auto_pad") == "SAME_UPPER" ||
                        n.op().String("auto_pad") == "SAME_LOWER" || transposed;
  for (int i = 0; i < windows.rank; ++i) {
    const WindowAxis& axis = windows.axis[static_cast<size_t>(i)];
    if (computed && !IsKnown(axis.in))
      return Unsupported("its padding depends on dim ", i + 2, " of the input, which is not known");
    form.strides.push_back(axis.stride);
    form.dilations.push_back(axis.dilation);
    form.pads.insert(form.pads.end(), {axis.pad_begin, axis.pad_end});
  }
  return form;
}

Ints Prefixed(const Ints& values) {
  Ints all{1, 1};
  all.insert(all.end(), values.begin(), values.end());
  return all;
}

PrimAttrs ConvAttrs(const ConvForm& form, int64_t outputs, const char* pad_mode) {
  return {{"kernel_size", form.kernel},
          {"mode", 1},
          {"out_channel", outputs},
          {"pad", form.pads},
          {"pad_mode", pad_mode},
          {"format", "NCHW"},
          {"pad_list", form.pads},
          {"groups", form.groups},
          {"stride", Prefixed(form.strides)},
          {"group", form.groups},
          {"dilation", Prefixed(form.dilations)}};
}

PrimAttrs Conv3dAttrs(const ConvForm& form, int64_t outputs) {
  return {{"kernel_size", form.kernel},
          {"mode", 1},
          {"out_channel", outputs},
          {"pad", form.pads},
          {"offset_x", 0},
          {"pad_mode", "pad"},
          {"format", "NCDHW"},
          {"pad_list", form.pads},
          {"groups", form.groups},
          {"strides", Prefixed(form.strides)},
          {"group", form.groups},
          {"dilations", Prefixed(form.dilations)}};
}

Ref WithBias(NodeLowering& n, const Ref& product) {
  return n.Has(kB) ? n.Op("BiasAdd", {product, n.In(kB), 0}) : product;
}

Status LowerConv(NodeLowering& n) {
  MSRT_ASSIGN_OR_RETURN(ConvForm form, FormOf(n, false));
  const int rank = n.dims(kX).rank();
  const int64_t outputs = n.dims(kW)[0];
  Ref product;
  if (rank == 5) {
    product = n.Prim("Conv3D", Conv3dAttrs(form, outputs), {n.In(kX), n.In(kW)});
  } else if (rank == 3) {
    form.AddSecondAxis();
    product = n.Prim("Conv2D", ConvAttrs(form, outputs, "pad"),
                     {WithSecondAxis(n, n.In(kX)), WithSecondAxis(n, n.In(kW))});
  } else {
    product = n.Prim("Conv2D", ConvAttrs(form, outputs, "pad"), {n.In(kX), n.In(kW)});
  }
  product = WithBias(n, product);
  if (rank == 3) product = WithoutSecondAxis(n, product);
  n.SetOutput(Epilogue(n, product, kZ));
  return OkStatus();
}

Status LowerConvTranspose(NodeLowering& n) {
  MSRT_ASSIGN_OR_RETURN(ConvForm form, FormOf(n, true));
  if (!n.result().concrete())
    return Unsupported("the shape of the result is not known before the run");
  const bool one_axis = n.dims(kX).rank() == 3;
  if (one_axis) form.AddSecondAxis();
  Ints out_dims(n.result().dims.begin(), n.result().dims.end());
  if (one_axis) out_dims.insert(out_dims.begin() + 2, 1);
  const Ref x = one_axis ? WithSecondAxis(n, n.In(kX)) : n.In(kX),
            w = one_axis ? WithSecondAxis(n, n.In(kW)) : n.In(kW);
  Ref product = n.Prim("Conv2DTranspose", ConvAttrs(form, n.dims(kW)[1] * form.groups, "PAD"),
                       {x, w, out_dims});
  product = WithBias(n, product);
  n.SetOutput(one_axis ? WithoutSecondAxis(n, product) : product);
  return OkStatus();
}

// ---- products -----------------------------------------------------------------------------------

Ref Product(NodeLowering& n, bool trans_a, bool trans_b) {
  const int a = n.dims(0).rank(), b = n.dims(1).rank();
  if (a == 2 && b == 2) return n.Op("MatMul", {n.In(0), n.In(1), trans_a, trans_b});
  if (a == b && a > 2) return n.Op("BatchMatMul", {n.In(0), n.In(1), trans_a, trans_b});
  const auto turned = [&](size_t input, bool turn) {
    const int rank = n.dims(input).rank();
    if (!turn || rank < 2) return n.In(input);
    Ints perm;
    for (int i = 0; i < rank; ++i) perm.push_back(i);
    std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
    return n.Op("Transpose", {n.In(input), perm});
  };
  return n.Op("MatMulExt", {turned(0, trans_a), turned(1, trans_b)});
}

Ref Times(NodeLowering& n, const Ref& x, double factor) {
  if (factor == 1) return x;
  if (factor >= 0 || IsFloat(n.dtype()) || kSignedTypes.Has(n.dtype()))
    return n.Op("Mul", {x, n.Number(factor)});
  return n.Op("Sub", {n.Number(0),
                      n.Op("Mul", {x, n.Number(-factor)})});  // the type has no negative numbers
}

Status LowerMatMul(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank(0));
  MSRT_RETURN_IF_ERROR(n.NeedRank(1));
  n.SetOutput(Product(n, false, false));
  return OkStatus();
}

Status LowerGemm(NodeLowering& n) {
  Ref product = Times(n, Product(n, n.op().Int("transA") != 0, n.op().Int("transB") != 0),
                      n.op().Float("alpha"));
  if (n.Has(2)) product = n.Op("Add", {product, Times(n, n.In(2), n.op().Float("beta"))});
  n.SetOutput(product);
  return OkStatus();
}

Status LowerFusedMatMul(NodeLowering& n) {
  MSRT_RETURN_IF_ERROR(n.NeedRank(0));
  MSRT_RETURN_IF_ERROR(n.NeedRank(1));
  Ref product = Times(n, Product(n, n.op().Int("transA") != 0, n.op().Int("transB") != 0),
                      n.op().Float("alpha"));
  if (n.Has(kB)) product = n.Op("Add", {product, n.In(kB)});
  n.SetOutput(Epilogue(n, product, kZ));
  return OkStatus();
}

constexpr Lowerer kLinearLowerers[] = {
    {"Conv", LowerConv},     {"msrt.FusedConv", LowerConv}, {"ConvTranspose", LowerConvTranspose},
    {"MatMul", LowerMatMul}, {"Gemm", LowerGemm},           {"msrt.FusedMatMul", LowerFusedMatMul},
};

}  // namespace

std::span<const Lowerer> LinearLowerers() { return kLinearLowerers; }

}  // namespace msrt::mindir_export
