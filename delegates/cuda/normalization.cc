// Normalizations: batch norm with given moments; layer, RMS, group and instance norm, whose moments
// are those of rows.
#include "delegates/cuda/activation.h"
#include "delegates/cuda/launch.h"
#include "delegates/cuda/spaces.h"

namespace msrt::cuda {
namespace {

constexpr KernelId<BatchNormArgs> kBatch{"normalization", "batch_norm_f32"},
    kBatchF64{"normalization", "batch_norm_f64"};
constexpr KernelId<RowNormArgs> kRow{"normalization", "row_norm_f32"},
    kRowF64{"normalization", "row_norm_f64"};

std::string FloatRefusal(const OpView& op) {
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (op.has_input(i) && !kFloatTypes.Has(op.input(i).dtype))
      return StrCat("elements of type ", op.input(i).dtype);
  }
  return {};
}

bool IsDouble(const OpView& op) { return op.input(0).dtype == DType::kF64; }
int32_t TypeOf(const Type& type) { return static_cast<int32_t>(type.dtype); }

// ---- batch norm ---------------------------------------------------------------------------------

std::string QueryBatch(const NodeInfo& node, const GpuProperties& gpu,
                       std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  if (std::string reason = FloatRefusal(op); !reason.empty()) return reason;
  if (!ActivationOf(op)) return StrCat("activation ", op.String("activation"));
  Candidate c = PlainCandidate(node, PassSeconds(gpu, node.bytes, node.flops), "pointwise");
  c.arithmetic = kArithmetic;
  c.in_place = {{0u, 0u}};
  out->push_back(std::move(c));
  return {};
}

Result<std::unique_ptr<BoundKernel>> BindBatch(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims& x = op.input(0).dims;
  const ActivationStep activation = *ActivationOf(op);
  BatchNormArgs args;
  args.type = TypeOf(op.input(0));
  args.scale_type = TypeOf(op.input(1));
  args.statistic_type = TypeOf(op.input(3));
  args.activation = activation.op;
  args.a = activation.a;
  args.b = activation.b;
  args.epsilon = op.Float("epsilon");
  args.elements = static_cast<uint32_t>(x.elements());
  args.plane = DivisionBy(x.rank() >= 2 ? x.product(2, x.rank()) : 1);
  args.channels = DivisionBy(x.rank() >= 2 ? x[1] : 1);
  return BoundLaunch<BatchNormArgs>::Make(gpu, IsDouble(op) ? kBatchF64 : kBatch,
                                          Grid::OfElements(x.elements()), args,
                                          [](const RunArgs& run, const Stream&, BatchNormArgs* a) {
                                            a->in = run.inputs[0].data;
                                            a->scale = run.inputs[1].data;
                                            a->bias = run.inputs[2].data;
                                            a->mean = run.inputs[3].data;
                                            a->variance = run.inputs[4].data;
                                            a->out = run.outputs[0].data;
                                          });
}

// ---- norms of rows ------------------------------------------------------------------------------

// How scale and bias belong to the elements of a row; nothing if kernels cannot tell.
struct Parameters {
  int64_t row_modulus = 1, row_step = 0, column_divisor = 1, column_step = 1;
};

// Layer and RMS norm: parameters of the dims that are normalised, or a single number.
std::optional<Parameters> ParametersOf(const OpView& op, size_t input) {
  const Dims &x = op.input(0).dims, &p = op.input(input).dims;
  const int axis = PositiveAxis(op.Int("axis"), x.rank());
  if (p.known() && p.elements() == 1) return Parameters{1, 0, 1, 0};
  // Leading ones broadcast.
  int lead = 0;
  while (lead < p.rank() && p[lead] == 1 && p.rank() - lead > x.rank() - axis) ++lead;
  if (p.rank() - lead != x.rank() - axis) return std::nullopt;
  for (int d = axis; d < x.rank(); ++d) {
    // Equal symbols are equal sizes.
    if (p[lead + d - axis] != x[d] || x[d] == kUnknownDim) return std::nullopt;
  }
  return Parameters{};
}

bool IsRowOp(const OpView& op) {
  return op.op() == "LayerNormalization" || op.op() == "RMSNormalization";
}

std::string QueryRows(const NodeInfo& node, const GpuProperties& gpu, std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  if (std::string reason = FloatRefusal(op); !reason.empty()) return reason;
  const bool has_bias = op.has_input(2);
  if (has_bias && op.input(2).dtype != op.input(1).dtype) return "scale and bias of two types";
  if (IsRowOp(op)) {
    if (!ParametersOf(op, 1) || (has_bias && !ParametersOf(op, 2)))
      return "a scale or bias that may broadcast within rows";
    if (has_bias &&
        node.typical->input(1).dims.elements() != node.typical->input(2).dims.elements())
      return "scale and bias of two sizes";
  }
  Candidate c = PlainCandidate(node, PassSeconds(gpu, 1.5 * node.bytes, 2 * node.flops),
                               "block for each row");
  c.arithmetic = kArithmetic;
  if (op.input(0).dtype == op.output(0).dtype) c.in_place = {{0u, 0u}};
  out->push_back(std::move(c));
  return {};
}

void FillRows(const RunArgs& run, const Stream&, RowNormArgs* a) {
  a->in = run.inputs[0].data;
  a->scale = run.inputs[1].data;
  if (run.inputs.size() > 2) a->bias = run.inputs[2].data;
  a->out = run.outputs[0].data;
  if (run.outputs.size() > 1) a->mean_out = run.outputs[1].data;
  if (run.outputs.size() > 2) a->deviation_out = run.outputs[2].data;
}

Result<std::unique_ptr<BoundKernel>> BindRowKernel(const OpView& op, int64_t rows, int64_t length,
                                                   const Parameters& parameters, Gpu& gpu) {
  RowNormArgs args;
  args.type = TypeOf(op.input(0));
  args.scale_type = TypeOf(op.input(1));
  args.out_type = TypeOf(op.output(0));
  for (size_t o = 1; o < op.output_count(); ++o) {
    if (op.has_output(o)) args.statistic_type = TypeOf(op.output(o));
  }
  args.epsilon = op.Float("epsilon");
  args.rows = static_cast<uint32_t>(rows);
  args.length = static_cast<uint32_t>(length);
  args.row_modulus = DivisionBy(parameters.row_modulus);
  args.row_step = static_cast<uint32_t>(parameters.row_step);
  args.column_divisor = DivisionBy(parameters.column_divisor);
  args.column_step = static_cast<uint32_t>(parameters.column_step);
  args.rms = op.op() == "RMSNormalization" ? 1 : 0;
  return BoundLaunch<RowNormArgs>::Make(gpu, IsDouble(op) ? kRowF64 : kRow,
                                        Grid::OfRows(rows, length), args, FillRows);
}

Result<std::unique_ptr<BoundKernel>> BindRows(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims& x = op.input(0).dims;
  const int axis = PositiveAxis(op.Int("axis"), x.rank());
  const auto parameters = ParametersOf(op, 1);
  if (!parameters) return Unsupported("cuda: a scale that broadcasts within rows");
  return BindRowKernel(op, x.product(0, axis), x.product(axis, x.rank()), *parameters, gpu);
}

Result<std::unique_ptr<BoundKernel>> BindGroups(const OpView& op, const Candidate&, Gpu& gpu) {
  const Dims& x = op.input(0).dims;
  const int64_t groups = op.op() == "GroupNormalization" ? op.Int("num_groups") : x[1];
  const int64_t channels = x[1] / groups, plane = x.product(2, x.rank());
  if (plane * channels == 0) return BoundNothing();
  return BindRowKernel(op, x[0] * groups, channels * plane,
                       {.row_modulus = groups, .row_step = channels, .column_divisor = plane}, gpu);
}

constexpr Rule kNormalizationRules[] = {
    {"", "BatchNormalization", QueryBatch, BindBatch},
    {"msrt", "FusedBatchNormalization", QueryBatch, BindBatch},
    {"", "LayerNormalization", QueryRows, BindRows},
    {"", "RMSNormalization", QueryRows, BindRows},
    {"", "InstanceNormalization", QueryRows, BindGroups},
    {"", "GroupNormalization", QueryRows, BindGroups},
};

}  // namespace

std::span<const Rule> NormalizationRules() { return kNormalizationRules; }

}  // namespace msrt::cuda
