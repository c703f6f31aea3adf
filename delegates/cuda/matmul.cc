// MatMul, Gemm and msrt.FusedMatMul with kernels of our own: chains of fused multiply-adds, exact
// where the model asks for it and where cuBLASLt is missing.
#include "core/abi/msrt_plugin.h"
#include "core/base/checked_math.h"
#include "delegates/cuda/activation.h"
#include "delegates/cuda/launch.h"
#include "delegates/cuda/product.h"
#include "delegates/cuda/spaces.h"

namespace msrt::cuda {
namespace {

constexpr KernelId<MatMulArgs> kChain{"matmul", "matmul_chain_f32"},
    kChainF64{"matmul", "matmul_chain_f64"};
constexpr int64_t kTile = 64;

std::string QueryMatMul(const NodeInfo& node, const GpuProperties& gpu,
                        std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  const DType type = op.input(0).dtype;
  if (!kFloatTypes.Has(type)) return StrCat("elements of type ", type);
  const auto activation = ActivationOf(op);
  if (!activation) return StrCat("activation ", op.String("activation"));
  // A third of the arithmetic's peak: tiles of 64x64 without tensor cores.
  const double flops = node.flops * (type == DType::kF64 ? 64 : 1) * 1.5;
  Candidate c = PlainCandidate(node, PassSeconds(gpu, node.bytes, flops), "chains");
  const bool once = IsOneOperation(*activation);
  c.arithmetic = type == DType::kF32 && once ? MSRT_ARITHMETIC_FMA : StrCat(kArithmetic, " fma");
  if (op.has_input(kProductResidual)) c.in_place = {{uint32_t{kProductResidual}, 0u}};
  out->push_back(std::move(c));
  return {};
}

void FillMatMul(const RunArgs& run, const Stream&, MatMulArgs* args) {
  args->a = run.inputs[0].data;
  args->b = run.inputs[1].data;
  args->c = run.outputs[0].data;
  // Until here, a bias that counts is marked by an address that is not null.
  if (args->end.bias != nullptr) args->end.bias = run.inputs[kProductBias].data;
  if (run.inputs.size() > kProductResidual) args->end.residual = run.inputs[kProductResidual].data;
}

Result<std::unique_ptr<BoundKernel>> BindMatMul(const OpView& op, const Candidate&, Gpu& gpu) {
  return BindChainProduct(op, gpu);
}

constexpr Rule kMatMulRules[] = {{"", "MatMul", QueryMatMul, BindMatMul},
                                 {"", "Gemm", QueryMatMul, BindMatMul},
                                 {"msrt", "FusedMatMul", QueryMatMul, BindMatMul}};

}  // namespace

Result<std::unique_ptr<BoundKernel>> BindChainProduct(const OpView& op, Gpu& gpu) {
  const Product p = ProductOf(op);
  const ActivationStep activation = *ActivationOf(op);
  MatMulArgs args;
  args.type = static_cast<int32_t>(op.input(0).dtype);
  args.rows = static_cast<uint32_t>(p.rows);
  args.columns = static_cast<uint32_t>(p.columns);
  args.depth = static_cast<uint32_t>(p.depth);
  args.a_row = p.a_row;
  args.a_depth = p.a_depth;
  args.b_depth = p.b_depth;
  args.b_column = p.b_column;
  args.batches = static_cast<uint32_t>(p.batch.elements());
  args.batch_rank = p.batch.rank();
  for (int d = 0; d < p.batch.rank(); ++d) args.batch[d] = DivisionBy(p.batch[d]);
  CopyStrides(p.a_batch, args.a_batch);
  CopyStrides(p.b_batch, args.b_batch);
  CopyStrides(p.bias_batch, args.bias_batch);
  if (p.has_bias) args.end.bias = &args;
  args.end.alpha = p.alpha;
  args.end.beta = p.beta;
  args.end.bias_row = p.bias_row;
  args.end.bias_column = p.bias_column;
  if (IsOneOperation(activation)) args.end.activation = activation.op;
  args.end.a = activation.a;
  args.end.b = activation.b;
  Grid grid;
  const int64_t row_tiles = CeilDiv(p.rows, kTile);
  if (row_tiles > 65535) return Unsupported("cuda: a product of ", p.rows, " rows");
  grid.x = static_cast<uint32_t>(CeilDiv(p.columns, kTile));
  grid.y = static_cast<uint32_t>(row_tiles);
  grid.z = std::min<uint32_t>(args.batches, 65535);
  return WithActivation(
      BoundLaunch<MatMulArgs>::Make(gpu, op.input(0).dtype == DType::kF64 ? kChainF64 : kChain,
                                    grid, args, FillMatMul),
      op, activation, gpu);
}

std::span<const Rule> MatMulRules() { return kMatMulRules; }

}  // namespace msrt::cuda
