// Element-wise functions, comparisons and casts with broadcasting, as programs of the pointwise
// kernels.
#include "delegates/cuda/activation.h"
#include "delegates/cuda/launch.h"
#include "delegates/cuda/spaces.h"

#include <cmath>
#include <limits>

namespace msrt::cuda {
namespace {

// The type that a kernel computes in.
enum class Domain { kF32, kF64, kSigned, kUnsigned };

Domain DomainOf(DType type) {
  if (type == DType::kF64) return Domain::kF64;
  if (kFloatTypes.Has(type)) return Domain::kF32;
  return kSignedTypes.Has(type) ? Domain::kSigned : Domain::kUnsigned;
}

constexpr KernelId<PointwiseArgs> kKernels[] = {{"pointwise", "pointwise_f32"},
                                                {"pointwise", "pointwise_f64"},
                                                {"pointwise", "pointwise_i64"},
                                                {"pointwise", "pointwise_u64"}};

// ---- programs -----------------------------------------------------------------------------------

struct Row {
  std::string_view op;
  PointwiseOp code;
  std::string_view a = {}, b = {};  // attributes that are the parameters
};

constexpr Row kUnaryRows[] = {
    {"Abs", kOpAbs},
    {"Neg", kOpNeg},
    {"Sign", kOpSign},
    {"Relu", kOpRelu},
    {"Not", kOpNot},
    {"BitwiseNot", kOpBitwiseNot},
    {"Ceil", kOpCeil},
    {"Floor", kOpFloor},
    {"Round", kOpRound},
    {"Sqrt", kOpSqrt},
    {"Reciprocal", kOpReciprocal},
    {"Exp", kOpExp},
    {"Log", kOpLog},
    {"Erf", kOpErf},
    {"Sin", kOpSin},
    {"Cos", kOpCos},
    {"Tan", kOpTan},
    {"Asin", kOpAsin},
    {"Acos", kOpAcos},
    {"Atan", kOpAtan},
    {"Sinh", kOpSinh},
    {"Cosh", kOpCosh},
    {"Tanh", kOpTanh},
    {"Asinh", kOpAsinh},
    {"Acosh", kOpAcosh},
    {"Atanh", kOpAtanh},
    {"Sigmoid", kOpSigmoid},
    {"LeakyRelu", kOpLeakyRelu, "alpha"},
    {"Elu", kOpElu, "alpha"},
    {"Selu", kOpSelu, "alpha", "gamma"},
    {"Celu", kOpCelu, "alpha"},
    {"ThresholdedRelu", kOpThresholdedRelu, "alpha"},
    {"HardSigmoid", kOpHardSigmoid, "alpha", "beta"},
    {"HardSwish", kOpHardSwish},
    {"Softplus", kOpSoftplus},
    {"Softsign", kOpSoftsign},
    {"Mish", kOpMish},
    {"Swish", kOpSwish, "alpha"},
    {"IsNaN", kOpIsNan},
    {"Shrink", kOpShrink, "lambd", "bias"},
};
constexpr Row kBinaryRows[] = {
    {"Add", kOpAdd},
    {"Sub", kOpSub},
    {"Mul", kOpMul},
    {"Div", kOpDiv},
    {"Pow", kOpPow},
    {"Max", kOpMax},
    {"Min", kOpMin},
    {"Sum", kOpAdd},
    {"Mean", kOpAdd},
    {"PRelu", kOpPRelu},
    {"BitwiseAnd", kOpAnd},
    {"BitwiseOr", kOpOr},
    {"BitwiseXor", kOpXor},
    {"And", kOpAnd},
    {"Or", kOpOr},
    {"Xor", kOpXor},
    {"Equal", kOpEqual},
    {"Greater", kOpGreater},
    {"GreaterOrEqual", kOpGreaterOrEqual},
    {"Less", kOpLess},
    {"LessOrEqual", kOpLessOrEqual},
};

const Row* Find(std::span<const Row> rows, std::string_view op) {
  for (const Row& row : rows) {
    if (row.op == op) return &row;
  }
  return nullptr;
}

// The operands, in the order of the steps, and the steps.
struct Program {
  Domain domain = Domain::kF32;
  std::vector<size_t> operands;  // inputs of the node
  std::vector<PointwiseStep> steps;

  void Add(PointwiseOp op, double a = 0, double b = 0) { steps.push_back({op, -1, a, b, 0, 0}); }
  void AddPair(PointwiseOp op, size_t input) {
    steps.push_back({op, static_cast<int32_t>(operands.size()), 0, 0, 0, 0});
    operands.push_back(input);
  }
};

int64_t Saturated(double x) {
  if (x >= 0x1p63) return std::numeric_limits<int64_t>::max();
  return x <= -0x1p63 ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(x);
}

// A bound is an attribute or an input. A fractional bound of integers is rounded inwards.
void AddClip(const OpView& op, Program* p) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool low = op.Has("min"), high = op.Has("max");
  if (low || high) {
    PointwiseStep step;
    step.op = kOpClip;
    step.a = low ? op.Float("min") : -kInfinity;
    step.b = high ? op.Float("max") : kInfinity;
    step.low = Saturated(std::ceil(step.a));
    step.high = Saturated(std::floor(step.b));
    if (p->domain == Domain::kUnsigned) {
      step.low = step.a <= 0 ? 0 : step.low;
      step.high = !high || step.b >= 0x1p63 ? -1 : std::max<int64_t>(0, step.high);
    }
    p->steps.push_back(step);
  }
  if (op.has_input(1)) p->AddPair(kOpClipLow, 1);
  if (op.has_input(2)) p->AddPair(kOpClipHigh, 2);
}

// Adds the steps of the node; returns why there are none.
std::string AddSteps(const OpView& op, Program* p) {
  const std::string_view name = op.op();
  const bool integers = p->domain == Domain::kSigned || p->domain == Domain::kUnsigned;
  if (name == "Clip") return AddClip(op, p), "";
  if (name == "Identity" || name == "StopGradient" || name == "Cast") return "";
  if (name == "Gelu") return p->Add(op.String("approximate") == "tanh" ? kOpGeluTanh : kOpGelu), "";
  if (name == "IsInf")
    return p->Add(kOpIsInf, static_cast<double>(op.Int("detect_positive")),
                  static_cast<double>(op.Int("detect_negative"))),
           "";
  if (name == "Where") {
    p->domain = DomainOf(op.input(1).dtype);
    p->AddPair(kOpWhere, 1);
    p->operands.push_back(2);
    return "";
  }
  if (name == "Mod") return p->AddPair(op.Int("fmod") != 0 ? kOpTruncMod : kOpFloorMod, 1), "";
  if (name == "BitShift")
    return p->AddPair(op.String("direction") == "LEFT" ? kOpShiftLeft : kOpShiftRight, 1), "";
  if (const Row* row = Find(kUnaryRows, name); row != nullptr) {
    if (integers && name == "Shrink") return "Shrink of integers";
    p->Add(row->code, row->a.empty() ? 0 : op.Float(row->a), row->b.empty() ? 0 : op.Float(row->b));
    return "";
  }
  const Row* row = Find(kBinaryRows, name);
  if (row == nullptr) return "no function";
  if (op.input_count() > kMaxOperands) return StrCat("more than ", kMaxOperands, " inputs");
  for (size_t i = 1; i < op.input_count(); ++i) p->AddPair(row->code, i);
  if (name == "Mean") p->Add(kOpDivideBy, static_cast<double>(op.input_count()));
  if (name != "Pow") return "";
  // An integer to a power that is a float is computed in double, as is f64.
  const bool float_power = kFloatTypes.Has(op.input(1).dtype);
  if (integers && float_power) p->domain = Domain::kF64;
  if (integers && kUnsignedTypes.Has(op.input(1).dtype) && BitsOf(op.input(1).dtype) == 64)
    return "a power of type u64";
  p->steps.back().high = op.output(0).dtype == DType::kI32 ? std::numeric_limits<int32_t>::max()
                                                           : std::numeric_limits<int64_t>::max();
  return "";
}

std::string MakeProgram(const OpView& op, Program* p) {
  p->domain = DomainOf(op.input(0).dtype);
  p->operands = {0};
  return AddSteps(op, p);
}

// ---- rule ---------------------------------------------------------------------------------------

// A cast from i64 and u64, and to f16 and bf16 from what f32 does not hold, rounds twice.
bool RoundsOnce(const OpView& op) {
  if (op.op() == "Clip" || op.op() != "Cast") return true;
  const DType from = op.input(0).dtype, to = op.output(0).dtype;
  const bool to_half = to == DType::kF16 || to == DType::kBF16;
  return !to_half || (from != DType::kF64 && BitsOf(from) <= 32 &&
                      (kFloatTypes.Has(from) || BitsOf(from) <= 16));
}

// Functions of one operation on f16 and bf16 are computed in f32 and rounded again, which is right
// for +, -, *, / and the square root: f32 has more than twice the digits.
std::string QueryPointwise(const NodeInfo& node, const GpuProperties& gpu,
                           std::vector<Candidate>* out) {
  const OpView& op = *node.op;
  for (size_t i = 0; i < op.input_count(); ++i) {
    if (!op.has_input(i)) continue;
    if (!IsElementType(op.input(i).dtype)) return StrCat("elements of type ", op.input(i).dtype);
  }
  if (!IsElementType(op.output(0).dtype)) return StrCat("results of type ", op.output(0).dtype);
  Program program;
  if (std::string reason = MakeProgram(op, &program); !reason.empty()) return reason;
  const auto elements = static_cast<double>(node.typical->output(0).dims.elements());
  const double flops = program.domain == Domain::kF32 ? 8 : 64;
  Candidate c = PlainCandidate(node, PassSeconds(gpu, node.bytes, flops * elements), "pointwise");
  c.arithmetic = RoundsOnce(op) ? ArithmeticOf(op) : kArithmetic;
  const Type& y = op.output(0);
  for (size_t i = 0; i < op.input_count(); ++i) {
    const bool same = op.has_input(i) && op.input(i).dims == y.dims &&
                      BitsOf(op.input(i).dtype) == BitsOf(y.dtype);
    if (same && op.input(i).concrete()) c.in_place.push_back({static_cast<uint32_t>(i), 0u});
  }
  out->push_back(std::move(c));
  return {};
}

void FillPointwise(const RunArgs& run, const Stream& stream, PointwiseArgs* args) {
  // operand[k].type holds the type; until here .data held the number of the input.
  for (int k = 0; k < args->operands; ++k) {
    const auto input = reinterpret_cast<uintptr_t>(args->operand[k].data);
    args->operand[k].data = run.inputs[input].data;
  }
  args->out = run.outputs[0].data;
  args->fault = stream.fault->word();
}

Result<std::unique_ptr<BoundKernel>> BindPointwise(const OpView& op, const Candidate&, Gpu& gpu) {
  Program program;
  if (const std::string reason = MakeProgram(op, &program); !reason.empty())
    return Unsupported("cuda: ", reason);
  const Dims& y = op.output(0).dims;
  PointwiseArgs args;
  args.out_type = static_cast<int32_t>(op.output(0).dtype);
  args.operands = static_cast<int32_t>(program.operands.size());
  args.steps = static_cast<int32_t>(program.steps.size());
  std::copy(program.steps.begin(), program.steps.end(), args.step);
  std::vector<Dims> strides;
  for (size_t input : program.operands)
    strides.push_back(BroadcastStrides(op.input(input).dims, y));
  std::vector<Dims*> lists;
  for (Dims& list : strides) lists.push_back(&list);
  const Dims dims = Merge(y, lists);
  args.space = SpaceOf(dims);
  args.contiguous = 1;
  for (size_t k = 0; k < program.operands.size(); ++k) {
    PointwiseOperand& operand = args.operand[k];
    operand.data = reinterpret_cast<const void*>(program.operands[k]);
    operand.type = static_cast<int32_t>(op.input(program.operands[k]).dtype);
    CopyStrides(strides[k], operand.strides);
    const bool own = dims.rank() == 0 || (dims.rank() == 1 && strides[k][0] == 1);
    if (!own) args.contiguous = 0;
  }
  return BoundLaunch<PointwiseArgs>::Make(gpu, kKernels[static_cast<size_t>(program.domain)],
                                          Grid::OfElements(y.elements()), args, FillPointwise);
}

constexpr auto kPointwiseRules = [] {
  constexpr std::string_view kOthers[] = {"Clip",  "Identity", "Gelu",    "IsInf",
                                          "Where", "Mod",      "BitShift"};
  std::array<Rule, std::size(kUnaryRows) + std::size(kBinaryRows) + std::size(kOthers) + 2> all{};
  auto* next = all.begin();
  for (const Row& row : kUnaryRows)
    *next++ = {row.op == "Swish" ? "msrt" : "", row.op, QueryPointwise, BindPointwise};
  for (const Row& row : kBinaryRows) *next++ = {"", row.op, QueryPointwise, BindPointwise};
  for (std::string_view op : kOthers) *next++ = {"", op, QueryPointwise, BindPointwise};
  *next++ = {"msrt", "StopGradient", QueryPointwise, BindPointwise};
  *next++ = {"", "Swish", QueryPointwise, BindPointwise};
  return all;
}();
constexpr Rule kCastRules[] = {{"", "Cast", QueryPointwise, BindPointwise}};

}  // namespace

std::span<const Rule> PointwiseRules() { return kPointwiseRules; }
std::span<const Rule> CastRules() { return kCastRules; }

// ---- activations of fused ops -------------------------------------------------------------------

std::optional<ActivationStep> ActivationOf(const OpView& op) {
  const std::string_view name =
      op.domain() == "msrt" ? op.String("activation") : std::string_view();
  if (name.empty()) return ActivationStep{};
  ActivationStep step;
  step.a = op.Float("activation_alpha");
  step.b = op.Float("activation_beta");
  if (name == "Clip") return step.op = kOpClip, step;
  if (name == "Gelu") return step.op = kOpGelu, step;
  if (name == "GeluTanh") return step.op = kOpGeluTanh, step;
  const Row* row = Find(kUnaryRows, name);
  if (row == nullptr) return std::nullopt;
  step.op = row->code;
  return step;
}

bool IsOneOperation(const ActivationStep& step) {
  return step.op < 0 || step.op == kOpRelu || step.op == kOpClip || step.op == kOpLeakyRelu;
}

Result<std::unique_ptr<BoundKernel>> BindActivation(const OpView& op, const ActivationStep& step,
                                                    Gpu& gpu) {
  const Type& y = op.output(0);
  PointwiseArgs args;
  args.out_type = args.operand[0].type = static_cast<int32_t>(y.dtype);
  args.operands = args.steps = args.contiguous = 1;
  args.step[0] = {step.op, -1, step.a, step.b, 0, 0};
  args.space = SpaceOf({y.dims.elements()});
  return BoundLaunch<PointwiseArgs>::Make(
      gpu, kKernels[static_cast<size_t>(DomainOf(y.dtype))], Grid::OfElements(y.dims.elements()),
      args, [](const RunArgs& run, const Stream& stream, PointwiseArgs* a) {
        a->operand[0].data = a->out = run.outputs[0].data;
        a->fault = stream.fault->word();
      });
}

Result<std::unique_ptr<BoundKernel>> WithActivation(Result<std::unique_ptr<BoundKernel>> main,
                                                    const OpView& op, const ActivationStep& step,
                                                    Gpu& gpu) {
  if (!main.ok() || IsOneOperation(step)) return main;
  MSRT_ASSIGN_OR_RETURN(auto activation, BindActivation(op, step, gpu));
  std::vector<std::unique_ptr<BoundKernel>> steps;
  steps.push_back(*std::move(main));
  steps.push_back(std::move(activation));
  return std::unique_ptr<BoundKernel>(std::make_unique<BoundSteps>(std::move(steps)));
}

}  // namespace msrt::cuda
