// Recurrent layers: RNN, GRU and LSTM over whole sequences, in one or both directions. Sequences of
// a batch are independent; steps, gates and the hidden state depend on each other and stay whole.
#include <initializer_list>

#include "ops/families.h"
#include "ops/gradients.h"
#include "ops/infer.h"

namespace msrt {
namespace {

constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kInitialH = 5, kInitialC = 6,
                 kPeepholes = 7;

// The differences between the three: gates in the weights and activation functions for each
// direction.
struct Kind {
  int64_t gates, functions;
};
Kind KindOf(const OpView& op) {
  if (op.op() == "LSTM") return {4, 3};
  return op.op() == "GRU" ? Kind{3, 2} : Kind{1, 1};
}

int64_t DirectionsOf(const OpView& op) { return op.String("direction") == "bidirectional" ? 2 : 1; }
bool IsBatchFirst(const OpView& op) { return op.Int("layout") == 1; }

// ---- inference ----------------------------------------------------------------------------------

struct Sizes {
  int64_t steps = kUnknownDim, batch = kUnknownDim, inputs = kUnknownDim, hidden = kUnknownDim,
          directions = 1;
};

// A dim of an input: `times` times the size that it determines.
struct DimRule {
  int64_t* size;
  int64_t times = 1;
};

Status Match(const InferContext& c, size_t input, std::initializer_list<DimRule> rules) {
  if (!c.has_input(input) || !c.input(input).rank_known) return OkStatus();
  MSRT_RETURN_IF_ERROR(CheckRank(c, input, static_cast<int>(rules.size())));
  int axis = 0;
  for (const DimRule& rule : rules) {
    const int64_t dim = c.dims(input)[axis];
    int64_t& size = *rule.size;
    if (!IsKnown(dim)) {
      if (size == kUnknownDim && rule.times == 1) size = dim;
    } else if (dim % rule.times != 0 || (IsKnown(size) && size != dim / rule.times)) {
      return InvalidModel("input ", input, " of shape ", c.dims(input), ": dim ", axis, " is ", dim,
                          ", must be ", rule.times, " x ",
                          IsKnown(size) ? StrCat(size) : std::string("a whole number"));
    } else {
      size = dim / rule.times;
    }
    ++axis;
  }
  return OkStatus();
}

Result<Sizes> SizesOf(const InferContext& c) {
  const OpView& op = c.op();
  const int64_t gates = KindOf(op).gates;
  Sizes s;
  s.directions = DirectionsOf(op);
  if (op.Has("hidden_size")) s.hidden = op.Int("hidden_size");
  const DimRule steps{&s.steps}, batch{&s.batch}, inputs{&s.inputs}, hidden{&s.hidden},
      directions{&s.directions};
  MSRT_RETURN_IF_ERROR(Match(c, kR, {directions, {&s.hidden, gates}, hidden}));
  MSRT_RETURN_IF_ERROR(Match(c, kW, {directions, {&s.hidden, gates}, inputs}));
  MSRT_RETURN_IF_ERROR(Match(c, kB, {directions, {&s.hidden, 2 * gates}}));
  MSRT_RETURN_IF_ERROR(Match(c, kPeepholes, {directions, {&s.hidden, 3}}));
  MSRT_RETURN_IF_ERROR(Match(c, kLengths, {batch}));
  MSRT_RETURN_IF_ERROR(IsBatchFirst(op) ? Match(c, kX, {batch, steps, inputs})
                                        : Match(c, kX, {steps, batch, inputs}));
  for (size_t state : {kInitialH, kInitialC}) {
    MSRT_RETURN_IF_ERROR(IsBatchFirst(op) ? Match(c, state, {batch, directions, hidden})
                                          : Match(c, state, {directions, batch, hidden}));
  }
  return s;
}

// One list for each direction. ONNX's default for RNN always names two functions, regardless of the
// direction.
Status CheckActivations(const OpView& op) {
  const AttrValue* given = op.attrs().Find("activations");
  if (given == nullptr) return OkStatus();
  const auto count = static_cast<int64_t>(std::get<std::vector<std::string>>(*given).size());
  const int64_t functions = KindOf(op).functions, wanted = functions * DirectionsOf(op);
  if (count == wanted || count == 2 * functions) return OkStatus();
  return InvalidModel("activations has ", count, " names, must have ", wanted);
}

Status InferRecurrent(InferContext& c) {
  MSRT_RETURN_IF_ERROR(CheckActivations(c.op()));
  MSRT_ASSIGN_OR_RETURN(const Sizes s, SizesOf(c));
  const bool batch_first = IsBatchFirst(c.op());
  const Dims all = batch_first ? Dims{s.batch, s.steps, s.directions, s.hidden}
                               : Dims{s.steps, s.directions, s.batch, s.hidden};
  const Dims last =
      batch_first ? Dims{s.batch, s.directions, s.hidden} : Dims{s.directions, s.batch, s.hidden};
  c.SetOutput(0, c.dtype(kX), all);
  c.SetOutput(1, c.dtype(kX), last);
  c.SetOutput(2, c.dtype(kX), last);
  return OkStatus();
}

// ---- iteration space ----------------------------------------------------------------------------

// The axis of the batch in X, in a state and in Y.
struct BatchAxes {
  int x, state, y;
};
BatchAxes BatchAxesOf(const OpView& op) {
  return IsBatchFirst(op) ? BatchAxes{0, 0, 0} : BatchAxes{1, 1, 2};
}

Box CutAt(const Dims& dims, int axis, Interval interval) {
  Box box = Box::Whole(dims);
  box[axis] = interval;
  return box;
}

Status RecurrentAxes(const OpView& op, IterationSpace* space) {
  space->Add(AxisKind::kParallel, op.input(kX).dims[BatchAxesOf(op).x]);
  return OkStatus();
}

Status RecurrentOperands(const OpView& op, const Box& box, std::span<Box> inputs) {
  const BatchAxes at = BatchAxesOf(op);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!op.has_input(i)) continue;
    const Dims& dims = op.input(i).dims;
    if (i == kX) inputs[i] = CutAt(dims, at.x, box[0]);
    else if (i == kLengths) inputs[i] = box;
    else if (i == kInitialH || i == kInitialC) inputs[i] = CutAt(dims, at.state, box[0]);
    else inputs[i] = Box::Whole(dims);
  }
  return OkStatus();
}

Status RecurrentResults(const OpView& op, const Box& box, std::span<Box> outputs) {
  const BatchAxes at = BatchAxesOf(op);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (op.has_output(i)) outputs[i] = CutAt(op.output(i).dims, i == 0 ? at.y : at.state, box[0]);
  }
  return OkStatus();
}

constexpr SpaceDef kRecurrentSpace{
    .axes = RecurrentAxes, .operands = RecurrentOperands, .results = RecurrentResults};

// Each step multiplies the input and the state by the weights of each gate and direction.
Cost RecurrentCost(const OpView& op) {
  Cost cost = CostOfTraffic(op);
  const Dims &x = op.input(kX).dims, &w = op.input(kW).dims, &r = op.input(kR).dims;
  cost.flops = 2 * static_cast<double>(x[0]) * static_cast<double>(x[1]) *
               static_cast<double>(w.elements() + r.elements());
  return cost;
}

// ---- entries ------------------------------------------------------------------------------------

constexpr std::string_view kDirections[] = {"forward", "reverse", "bidirectional"};
constexpr std::string_view kFunctions[] = {
    "Relu",       "Tanh",        "Sigmoid", "Affine",   "LeakyRelu", "ThresholdedRelu",
    "ScaledTanh", "HardSigmoid", "Elu",     "Softsign", "Softplus"};
constexpr int kMaxFunctions = 6;

constexpr AttrDef kActivationsAttr{.name = "activations",
                                   .kind = AttrKind::kStrings,
                                   .choices = kFunctions,
                                   .max_count = kMaxFunctions};
// Parameters of the functions that have any, in the order of those functions.
constexpr AttrDef kAlphaAttr{
    .name = "activation_alpha", .kind = AttrKind::kFloats, .max_count = kMaxFunctions};
constexpr AttrDef kBetaAttr{
    .name = "activation_beta", .kind = AttrKind::kFloats, .max_count = kMaxFunctions};
constexpr AttrDef kClipAttr{
    .name = "clip", .kind = AttrKind::kFloat, .min_float = 0};  // absent: no clipping
constexpr AttrDef kDirectionAttr{.name = "direction",
                                 .kind = AttrKind::kString,
                                 .default_string = "forward",
                                 .choices = kDirections};
constexpr AttrDef kHiddenSizeAttr{.name = "hidden_size", .min_int = 1, .max_int = int64_t{1} << 31};
constexpr AttrDef kLayoutAttr{
    .name = "layout", .min_int = 0, .max_int = 1};  // 1: the batch comes first

constexpr AttrDef kRnnAttrs[] = {kActivationsAttr, kAlphaAttr,      kBetaAttr,  kClipAttr,
                                 kDirectionAttr,   kHiddenSizeAttr, kLayoutAttr};
constexpr AttrDef kGruAttrs[] = {
    kActivationsAttr, kAlphaAttr,
    kBetaAttr,        kClipAttr,
    kDirectionAttr,   kHiddenSizeAttr,
    kLayoutAttr,      {.name = "linear_before_reset", .min_int = 0, .max_int = 1},
};
constexpr AttrDef kLstmAttrs[] = {
    kActivationsAttr, kAlphaAttr,
    kBetaAttr,        kClipAttr,
    kDirectionAttr,   kHiddenSizeAttr,
    kLayoutAttr,      {.name = "input_forget", .min_int = 0, .max_int = 1},
};

constexpr ParamDef kLstmInputs[] = {
    {.name = "X", .types = kFloatTypes, .group = 1},
    {.name = "W", .types = kFloatTypes, .group = 1},
    {.name = "R", .types = kFloatTypes, .group = 1},
    {.name = "B", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
    {.name = "sequence_lens", .types = DTypeSet{DType::kI32}, .kind = ParamDef::kOptional},
    {.name = "initial_h", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
    {.name = "initial_c", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
    {.name = "P", .types = kFloatTypes, .kind = ParamDef::kOptional, .group = 1},
};
constexpr auto kRnnInputs =
    std::span<const ParamDef>(kLstmInputs).first(kInitialC);  // neither a cell nor peepholes

constexpr OpDef Recurrent(std::string_view name, std::span<const AttrDef> attrs,
                          std::span<const ParamDef> inputs, int outputs) {
  return {.name = name,
          .attrs = attrs,
          .inputs = inputs,
          .max_outputs = outputs,
          .infer = InferRecurrent,
          .grad = GradRecurrent,
          .space = &kRecurrentSpace,
          .cost = RecurrentCost};
}

constexpr OpDef kRecurrentOps[] = {
    Recurrent("RNN", kRnnAttrs, kRnnInputs, 2),
    Recurrent("GRU", kGruAttrs, kRnnInputs, 2),
    Recurrent("LSTM", kLstmAttrs, kLstmInputs, 3),
};

}  // namespace

std::span<const OpDef> RecurrentOps() { return kRecurrentOps; }

}  // namespace msrt
