// Conv and msrt.FusedConv with a kernel of our own: chains of fused multiply-adds, exact where the
// model asks for it and where cuDNN is missing.
#include "ops/conv.h"
#include "core/abi/msrt_plugin.h"
#include "core/base/checked_math.h"
#include "delegates/cuda/activation.h"
#include "delegates/cuda/launch.h"
#include "delegates/cuda/spaces.h"
#include "ops/window.h"

namespace msrt::cuda {
namespace {

constexpr size_t kX = 0, kW = 1, kBias = 2, kResidual = 3;
constexpr KernelId<ConvArgs> kChain{"conv", "conv_chain_f32"}, kChainF64{"conv", "conv_chain_f64"};
constexpr int64_t kTile = 64;

std::string QueryConv(const NodeInfo& node, const GpuProperties& gpu, std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  const DType type = op.input(kX).dtype;
  if (!kFloatTypes.Has(type)) return StrCat("elements of type ", type);
  const auto activation = ActivationOf(op);
  if (!activation) return StrCat("activation ", op.String("activation"));
  // A quarter of the arithmetic's peak; channels of a group fill a tile of 64.
  const Dims& w = node.typical->input(kW).dims;
  const double used =
      std::min(1.0, static_cast<double>(w[0]) / static_cast<double>(op.Int("group")) / kTile);
  const double flops =
      node.flops * (type == DType::kF64 ? 64 : 1) * 2 / std::max(used, 1.0 / kTile);
  Candidate c = PlainCandidate(node, PassSeconds(gpu, node.bytes, flops), "chains");
  const bool once = IsOneOperation(*activation);
  c.arithmetic = type == DType::kF32 && once ? MSRT_ARITHMETIC_FMA : StrCat(kArithmetic, " fma");
  if (op.has_input(kResidual)) c.in_place = {{uint32_t{kResidual}, 0u}};
  out->push_back(std::move(c));
  return {};
}

void FillConv(const RunArgs& run, const Stream&, ConvArgs* args) {
  args->x = run.inputs[kX].data;
  args->w = run.inputs[kW].data;
  args->y = run.outputs[0].data;
  if (run.inputs.size() > kBias) args->end.bias = run.inputs[kBias].data;
  if (run.inputs.size() > kResidual) args->end.residual = run.inputs[kResidual].data;
}

Result<std::unique_ptr<BoundKernel>> BindConv(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims &x = op.input(kX).dims, &w = op.input(kW).dims;
  MSRT_ASSIGN_OR_RETURN(const Windows windows,
                        WindowsOf(op, x, std::span<const int64_t>(w).subspan(2)));
  const ConvChannels channels = ConvChannelsOf(op, x, w, false);
  if (channels.first_output != 0 || channels.outputs != channels.groups * channels.group_outputs)
    return Unsupported("cuda: a piece that begins inside a group of channels");
  const ActivationStep activation = *ActivationOf(op);
  ConvArgs args;
  args.type = static_cast<int32_t>(op.input(kX).dtype);
  args.batch = static_cast<uint32_t>(x[0]);
  args.groups = static_cast<uint32_t>(channels.groups);
  args.in_channels = static_cast<uint32_t>(channels.group_inputs);
  args.out_channels = static_cast<uint32_t>(channels.group_outputs);
  int64_t positions = 1, taps = 1;
  for (size_t a = 0; a < kMaxSpace; ++a) {
    const WindowAxis& axis = windows.axis[a];
    for (int64_t n : {axis.in, axis.kernel, axis.stride, axis.dilation,
                      axis.stride * axis.out + axis.span() + axis.pad_begin}) {
      if (n > kMaxElementsOfKernel) return Unsupported("cuda: a window beyond 2^31 elements");
    }
    args.axis[a] = {static_cast<int32_t>(axis.in),       static_cast<int32_t>(axis.out),
                    static_cast<int32_t>(axis.kernel),   static_cast<int32_t>(axis.stride),
                    static_cast<int32_t>(axis.dilation), static_cast<int32_t>(axis.pad_begin)};
    positions *= axis.out;
    taps *= axis.kernel;
  }
  args.positions = static_cast<uint32_t>(positions);
  args.taps = static_cast<uint32_t>(taps);
  args.out_rows = DivisionBy(windows.axis[1].out);
  args.out_columns = DivisionBy(windows.axis[2].out);
  args.kernel_rows = DivisionBy(windows.axis[1].kernel);
  args.kernel_columns = DivisionBy(windows.axis[2].kernel);
  args.channels = DivisionBy(std::max<int64_t>(channels.group_inputs, 1));
  if (IsOneOperation(activation)) args.end.activation = activation.op;
  args.end.a = activation.a;
  args.end.b = activation.b;
  Grid grid;
  const int64_t images = x[0] * channels.groups, tiles = CeilDiv(channels.group_outputs, kTile);
  if (images > 65535 || tiles > 65535) return Unsupported("cuda: ", images, " images times groups");
  grid.x = static_cast<uint32_t>(CeilDiv(positions, kTile));
  grid.y = static_cast<uint32_t>(tiles);
  grid.z = static_cast<uint32_t>(images);
  return WithActivation(
      BoundLaunch<ConvArgs>::Make(gpu, op.input(kX).dtype == DType::kF64 ? kChainF64 : kChain, grid,
                                  args, FillConv),
      op, activation, gpu);
}

constexpr Rule kConvRules[] = {{"", "Conv", QueryConv, BindConv},
                               {"msrt", "FusedConv", QueryConv, BindConv}};

}  // namespace

std::span<const Rule> ConvRules() { return kConvRules; }

}  // namespace msrt::cuda
